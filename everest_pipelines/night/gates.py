"""What must hold before anything is published. Pure functions of the candidate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

from msgspec import Struct

from everest_pipelines.core.records import (
    EVERYWHERE,
    VISIBLE_STATES,
    Day,
    Episode,
    LessonKind,
    LessonRevision,
    ProjectKey,
    State,
)
from everest_pipelines.core.sleep.guard import clash, stance
from everest_pipelines.text.redact import secrets_in

REMOVED_SHARE = 0.2  # a night that takes more than a fifth of what agents read …
REMOVED_LEAST = 10  # … and at least ten lessons is more likely a fault than a change of mind
ACCEPTABLE = frozenset({"counts", "removal", "opposites"})


class Candidate(Struct, kw_only=True):
    """What would be published, and what was before."""

    visible: Sequence[LessonRevision]
    published: Sequence[LessonRevision] = ()  # of the generation in force
    project_of_episode: dict[str, ProjectKey] = {}
    episodes: dict[str, Episode] = {}  # the sources of visible lessons
    rejected_keys: dict[ProjectKey, set[str]] = {}  # tombstones, by scope
    rejected_ids: frozenset[str] = frozenset()  # taken away by a person
    refused_episodes: frozenset[str] = frozenset()  # sources of what a person refused
    missing: dict[ProjectKey, list[tuple[str, Day]]] = {}  # (stage, day) expected and not good
    forgotten: Sequence[str] = ()


class GateResult(Struct, frozen=True, kw_only=True):
    """One gate's verdict on one project ("" for all)."""

    gate: str
    project: ProjectKey
    passed: bool
    sentence: str
    next_command: str = ""
    accepted: bool = False


Verdicts = Iterable[tuple[ProjectKey, str]]  # what is wrong, by project


def _leak(candidate: Candidate) -> Verdicts:
    for lesson in candidate.visible:
        words = "\n".join((lesson.text, lesson.quote, lesson.fix, lesson.wording))
        if secrets_in(words):
            yield "", f"lesson {lesson.lesson_id[:8]} holds what looks like a secret"
        if any(text and text in words for text in candidate.forgotten):
            yield "", f"lesson {lesson.lesson_id[:8]} holds a forgotten text"


def _scope(candidate: Candidate) -> Verdicts:
    for lesson in candidate.visible:
        if lesson.scope == EVERYWHERE:
            if lesson.state not in (State.APPROVED, State.PINNED) and any(
                candidate.project_of_episode.get(source, EVERYWHERE) != EVERYWHERE
                for source in lesson.source_episode_ids
            ):
                yield EVERYWHERE, f"lesson {lesson.lesson_id[:8]} is shared and nobody approved it"
            continue
        foreign = {
            candidate.project_of_episode[source]
            for source in lesson.source_episode_ids
            if candidate.project_of_episode.get(source, lesson.scope) != lesson.scope
        }
        if foreign:
            yield (
                lesson.scope,
                f"lesson {lesson.lesson_id[:8]} rests on episodes of {sorted(foreign)[0]}",
            )


def _forbidden(candidate: Candidate) -> Verdicts:
    for lesson in candidate.visible:
        if lesson.state not in VISIBLE_STATES:
            yield (
                lesson.scope,
                f"lesson {lesson.lesson_id[:8]} is {lesson.state} and shown",
            )
        if lesson.value_key in candidate.rejected_keys.get(lesson.scope, ()):
            yield lesson.scope, f"lesson {lesson.lesson_id[:8]} was rejected by value"


def _counts(candidate: Candidate) -> Verdicts:
    for project, missing in sorted(candidate.missing.items()):
        stage, day = missing[0]
        yield project, f"{len(missing)} stage days are missing or open, the first {stage} {day}"


def _removal(candidate: Candidate) -> Verdicts:
    now = {lesson.lesson_id for lesson in candidate.visible}
    for project in sorted({lesson.scope for lesson in candidate.published}):
        before = {
            lesson.lesson_id
            for lesson in candidate.published
            if lesson.scope == project and lesson.lesson_id not in candidate.rejected_ids
        }
        gone = before - now
        if len(gone) >= REMOVED_LEAST and len(gone) > REMOVED_SHARE * len(before):
            yield project, f"{len(gone)} of {len(before)} lessons would go in one night"


def _opposites(candidate: Candidate) -> Verdicts:
    for lesson in candidate.visible:
        if lesson.lesson_kind is not LessonKind.RULE:
            continue
        said = [
            candidate.episodes[source].quote
            for source in lesson.source_episode_ids
            if source in candidate.episodes
        ]
        stances = [stance(text) for text in sorted(set(said))]
        if any(clash(one, two) for one, two in combinations(stances, 2)):
            yield lesson.scope, f"lesson {lesson.lesson_id[:8]} holds a rule and its opposite"


GATES: dict[str, Callable[[Candidate], Verdicts]] = {
    "leak": _leak,
    "scope": _scope,
    "forbidden": _forbidden,
    "counts": _counts,
    "removal": _removal,
    "opposites": _opposites,
}


def evaluate(candidate: Candidate, accept: Sequence[str] = ()) -> list[GateResult]:
    """Every gate's verdicts: one passed result where nothing is wrong, else one per project."""
    results: list[GateResult] = []
    for gate, look in GATES.items():
        wrong: dict[ProjectKey, list[str]] = {}
        for project, sentence in look(candidate):
            wrong.setdefault(project, []).append(sentence)
        if not wrong:
            results.append(GateResult(gate=gate, project="", passed=True, sentence="holds"))
        for project, sentences in sorted(wrong.items()):
            more = f" (and {len(sentences) - 1} more)" if len(sentences) > 1 else ""
            accepted = gate in accept and gate in ACCEPTABLE
            results.append(
                GateResult(
                    gate=gate,
                    project=project,
                    passed=accepted,
                    accepted=accepted,
                    sentence=sentences[0] + more,
                    next_command=_next(gate),
                )
            )
    return results


def _next(gate: str) -> str:
    if gate == "counts":
        return "everest night"
    return f"everest publish --accept {gate}" if gate in ACCEPTABLE else "everest doctor"


def blocked_projects(results: Iterable[GateResult]) -> set[ProjectKey]:
    """Projects that keep their last good rows; "" blocks the whole publication."""
    return {result.project for result in results if not result.passed}
