"""A working lesson written down as a revision, through the gate."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import msgspec

from everest_pipelines.core import trust
from everest_pipelines.core.records import LessonRevision, Micros, Origin, State
from everest_pipelines.core.sleep import guard
from everest_pipelines.core.sleep.lesson import Lesson, choose_text, fix_of
from everest_pipelines.text.value_key import value_key

_DECIDED = frozenset({State.APPROVED, State.PINNED, State.REJECTED, State.RETIRED})
# What may differ without the lesson having changed: time alone makes no revision.
_TIMELY = ("revision", "strength", "valid_from", "hash")


def revision_of(
    lesson: Lesson, *, dead: AbstractSet[str], ordinal: int, now: Micros
) -> tuple[LessonRevision | None, str]:
    """The revision that ``now`` calls for, and why the gate refused what was wanted.

    None when nothing changed. A refused lesson is written as rejected: the write lands on the
    rejection, under its own id, and is never shown.
    """
    buried = frozenset(dead) if lesson.state not in (State.REJECTED, State.RETIRED) else frozenset()
    text, source = choose_text(lesson, buried)
    refused = ""
    if not text:
        text, source = choose_text(lesson, frozenset())
        refused = "the person rejected this value"
        lesson.state, lesson.reason = State.REJECTED, refused
    lesson.text, lesson.key = text, value_key(text)
    episodes = [own.episode for own in lesson.sources.values()]
    sign = source.sign if source is not None else None
    human = any(own.human for own in lesson.sources.values())
    person = lesson.decision is not None and lesson.state in _DECIDED and not lesson.into
    ended = lesson.state in (State.REJECTED, State.RETIRED)
    row = LessonRevision(
        lesson_id=lesson.lesson_id,
        revision=lesson.row.revision + 1 if lesson.row else 1,
        text=text,
        lesson_kind=lesson.kind,
        polarity=sign.polarity if isinstance(sign, guard.Stance) else 0,
        scope=lesson.scope,
        state=lesson.state,
        strength=lesson.strength(ordinal),
        seen=len({episode.turn_id or episode.episode_id for episode in episodes}),
        first_seen_at=min(episode.occurred_at for episode in episodes),
        last_seen_at=max(episode.occurred_at for episode in episodes),
        source_episode_ids=tuple(own.episode.episode_id for own in lesson.ordered()),
        source_lesson_ids=tuple(sorted(lesson.merged)),
        families=len(lesson.families()),
        days=len({own.day for own in lesson.sources.values()}),
        quote=source.episode.quote if source is not None else "",
        valid_from=now,
        valid_to=lesson.ended_at or (now if ended else None),
        value_key=lesson.key,
        decided_by=trust.HUMAN if person else "night",
        reason=lesson.reason,
        origin=Origin.HUMAN if human else max(episode.origin for episode in episodes),
        fix=fix_of(lesson),
    )
    if lesson.row is not None and _same(row, lesson.row):
        return None, refused
    previous = lesson.row.state if lesson.row else None
    actor, via = _mover(lesson, previous, person=person)
    why = trust.gate(row, dead, previous=previous, actor=actor, via=via)
    if why is not None and row.state != State.REJECTED:
        lesson.state, lesson.reason = State.CANDIDATE, why
        row = msgspec.structs.replace(row, state=State.CANDIDATE, reason=why, valid_to=None)
        refused = why
        if lesson.row is not None and _same(row, lesson.row):
            return None, refused
    lesson.row = trust.sealed(row)
    return lesson.row, refused


def _mover(
    lesson: Lesson, previous: State | None, *, person: bool
) -> tuple[trust.Actor, trust.Via]:
    if person:
        return trust.Actor.PERSON, trust.Via.TERMINAL
    if previous in (State.APPROVED, State.RETIRED):
        return trust.Actor.PERSON, trust.Via.TRANSCRIPT
    return trust.Actor.NIGHT, trust.Via.FOLD


def _same(row: LessonRevision, other: LessonRevision) -> bool:
    def timeless(one: LessonRevision) -> dict[str, object]:
        whole = msgspec.structs.asdict(one)
        if one.state in (State.REJECTED, State.RETIRED):
            whole.pop("valid_to")
        return {name: value for name, value in whole.items() if name not in _TIMELY}

    return timeless(row) == timeless(other)
