"""The state a lesson has earned: by its sources, its opposites and the person's decisions."""

from __future__ import annotations

from collections.abc import Iterable

from everest_pipelines.core.records import VISIBLE_STATES, LessonKind, Micros, State
from everest_pipelines.core.sleep import guard
from everest_pipelines.core.sleep.lesson import Lesson, Source

# Errors that teach nothing about the place: the tool's own rules, or work in progress.
NOISE = frozenset(
    {
        "build_error", "ci_failed", "edit_ambiguous", "edit_no_match", "edit_noop", "edit_stale",
        "edit_without_read", "harness_unavailable", "lint_error", "network", "path_not_found",
        "task_handle", "test_failure", "timeout", "too_large", "tool_misuse",
    }
)  # fmt: skip
# Errors that are facts about the place even when no fix is known.
FACTS = frozenset({"command_not_found", "missing_dependency", "environment"})
_SETTLED = frozenset({State.APPROVED, State.PINNED})
_ENDED = frozenset({State.REJECTED, State.RETIRED})


def earned(lesson: Lesson) -> tuple[State, str]:
    """The state by the lesson's own sources and decision, and why."""
    decision = lesson.decision
    if decision is not None and decision.state is not None:
        restated = decision.state == State.RETIRED and _said_after(lesson, decision.at)
        if not restated:
            return decision.state, decision.reason
    if lesson.near_rejected:
        return State.CANDIDATE, f"near the rejected lesson {lesson.near_rejected}"
    if lesson.kind not in (LessonKind.RULE, LessonKind.ERROR):
        return State.CANDIDATE, "the agent's own claim"
    counted = [source for source in lesson.sources.values() if _counts(lesson, source)]
    families = len({source.family for source in counted})
    days = len({source.day for source in counted})
    if lesson.kind == LessonKind.ERROR and not _has_substance(counted):
        return State.CANDIDATE, "nothing to tell about it yet"
    if families >= 2 and days >= 2:
        return State.CORROBORATED, f"{families} sessions on {days} days"
    if any(source.states for source in counted):
        return State.STATED, "the person said so"
    return State.CANDIDATE, "not yet on two days in two sessions"


def settle(lesson: Lesson, opposites: Iterable[Lesson]) -> tuple[State, str, Micros | None]:
    """State, reason and end (None while it holds) once its opposites are taken into account."""
    state, reason = earned(lesson)
    if lesson.into:
        return State.RETIRED, f"merged into {lesson.into}", None
    if state in _ENDED:
        return state, reason, lesson.decision.at if lesson.decision else None
    if state not in VISIBLE_STATES:
        return state, reason, None
    disputed = ""
    for other in sorted(opposites, key=lambda x: x.lesson_id):
        if other.into or earned(other)[0] not in VISIBLE_STATES:
            continue
        if beaten_at := _beaten(lesson, state, other):
            return State.SUPERSEDED, f"superseded by {other.lesson_id}", beaten_at
        if _beaten(other, earned(other)[0], lesson) is None:
            disputed = disputed or other.lesson_id
    if disputed and state not in _SETTLED:
        return State.DISPUTED, f"disputed with {disputed}", None
    return state, reason, None


class Words:
    """Which rules share words: only those can contradict each other."""

    def __init__(self) -> None:
        self._by_word: dict[str, set[str]] = {}
        self._of: dict[str, frozenset[str]] = {}

    def put(self, lesson: Lesson) -> None:
        """Takes in the words of a lesson's sources so far."""
        words = frozenset[str]().union(*(stance.words for stance in _stances(lesson)))
        self._of[lesson.lesson_id] = words
        for word in words:
            self._by_word.setdefault(word, set()).add(lesson.lesson_id)

    def near(self, lesson: Lesson) -> list[str]:
        """The ids of other lessons that share two words, or one where either has but two."""
        counts: dict[str, int] = {}
        own = self._of[lesson.lesson_id]
        for word in own:
            for name in self._by_word[word]:
                counts[name] = counts.get(name, 0) + 1
        return sorted(
            name
            for name, shared in counts.items()
            if name != lesson.lesson_id and (shared >= 2 or min(len(own), len(self._of[name])) <= 2)
        )


def contradict(a: Lesson, b: Lesson) -> bool:
    """Whether two rules cannot both be followed."""
    return any(
        guard.clash(one, other) or guard.replaces(one, other) or guard.replaces(other, one)
        for one in _stances(a)
        for other in _stances(b)
    )


def _beaten(lesson: Lesson, state: State, other: Lesson) -> Micros | None:
    """Since when ``other`` replaces ``lesson``: by decision or by an explicit swap."""
    if state == State.PINNED:
        return None
    decided = lesson.decision.at if lesson.decision and lesson.decision.state else 0
    chosen = other.decision
    if chosen is not None and chosen.state in _SETTLED and state not in _SETTLED:
        return chosen.at if chosen.at > lesson.last_statement() else None
    later, earlier = other.last_statement(), max(lesson.last_statement(), decided)
    if later <= earlier:
        return None
    swapped = all(
        any(guard.replaces(new, old) for new in _stances(other)) for old in _stances(lesson)
    )
    return later if swapped else None


def _stances(lesson: Lesson) -> list[guard.Stance]:
    """The different stances of a rule, which are all in the person's own words."""
    return [sign for sign in lesson.signs if isinstance(sign, guard.Stance)]


def _counts(lesson: Lesson, source: Source) -> bool:
    """Whether a source corroborates: sure, and not the echo of the lesson having been shown."""
    if not source.episode.sure:
        return False
    shown = lesson.shown_to.get(source.family)
    return source.human or shown is None or shown > source.episode.occurred_at


def _has_substance(sources: Iterable[Source]) -> bool:
    told = [source.episode for source in sources]
    if any(episode.sub in NOISE for episode in told):
        return False
    return any(episode.fix or episode.sub in FACTS for episode in told)


def _said_after(lesson: Lesson, at: Micros) -> bool:
    return any(s.states and s.episode.occurred_at > at for s in lesson.sources.values())
