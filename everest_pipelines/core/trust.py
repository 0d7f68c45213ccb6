"""Trust: who may move a lesson where, the gate of every writer, the view of every reader."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

from everest_pipelines.core.records import (
    EVERYWHERE,
    VISIBLE_STATES,
    LessonKind,
    LessonRevision,
    Micros,
    State,
)
from everest_pipelines.core.sleep.strength import is_archived, strength_at
from everest_pipelines.text.ids import digest
from everest_pipelines.text.value_key import value_key

Entry = Mapping[str, Any]


class Actor(enum.StrEnum):
    """Who moves a lesson."""

    PERSON = "person"
    NIGHT = "night"  # the fold, counting what others said
    AGENT = "agent"
    MODEL = "model"
    IMPORTER = "importer"


class Via(enum.StrEnum):
    """The channel by which the move came."""

    TERMINAL = "terminal"  # the human channel: a controlling terminal and a challenge
    TRANSCRIPT = "transcript"  # the person's own words there
    FILE = "file"  # a rendered file, edited or deleted
    FOLD = "fold"
    INBOX = "inbox"
    MCP = "mcp"


_S = State
_SHOWN = (_S.STATED, _S.CORROBORATED, _S.DISPUTED)
_OPEN = (_S.CANDIDATE, *_SHOWN)
_NIGHTLY = (*_OPEN, _S.SUPERSEDED)


def _table() -> frozenset[tuple[State | None, State, Actor, Via]]:
    rows: set[tuple[State | None, State, Actor, Via]] = set()
    for actor, via in (
        (Actor.AGENT, Via.INBOX),
        (Actor.AGENT, Via.MCP),
        (Actor.MODEL, Via.FOLD),
        (Actor.IMPORTER, Via.INBOX),
        (Actor.IMPORTER, Via.FOLD),
    ):
        rows.add((None, _S.CANDIDATE, actor, via))
    for new in _OPEN:  # made by the night
        rows.add((None, new, Actor.NIGHT, Via.FOLD))
    # what the gate refuses lands on the rejection, under its own id
    rows.update((old, _S.REJECTED, Actor.NIGHT, Via.FOLD) for old in (None, *_NIGHTLY))
    for old in _NIGHTLY:  # counted, disputed, replaced, freed again, merged
        rows.update((old, new, Actor.NIGHT, Via.FOLD) for new in (*_NIGHTLY, _S.RETIRED))
    # the person's later words swap what was approved, not what was pinned
    rows.add((_S.APPROVED, _S.SUPERSEDED, Actor.PERSON, Via.TRANSCRIPT))
    rows.update((_S.RETIRED, new, Actor.PERSON, Via.TRANSCRIPT) for new in _OPEN)
    for old in State:
        for new in (_S.APPROVED, _S.PINNED, _S.REJECTED, _S.RETIRED):
            rows.add((old, new, Actor.PERSON, Via.TERMINAL))
    return frozenset(rows)


TRANSITIONS = _table()
HUMAN = "human"  # decided_by of what the person decided

ACTIONS: dict[str, State] = {
    "approve": State.APPROVED,
    "pin": State.PINNED,
    "edit": State.APPROVED,
    "reject": State.REJECTED,
    "wrong": State.REJECTED,
    "retire": State.RETIRED,
}
_BURIES = frozenset({"reject", "wrong"})
ACTIONS_ENDING = _BURIES | {"retire"}
_RAISES = frozenset({"approve", "pin", "edit"})
_NEEDS_PERSON = frozenset({LessonKind.SURPRISE, LessonKind.NOTE})  # the agent's own claims


def may(old: State | None, new: State, actor: Actor, via: Via) -> bool:
    """Whether the table has this move; staying in a state is always open."""
    return old == new or (old, new, actor, via) in TRANSITIONS


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """Ledger entries in id order, which is the order in which they were appended."""
    return sorted(entries, key=lambda entry: str(entry.get("id", "")))


def decided(entry: Entry) -> State | None:
    """The state that a review entry asks for, None when it is no review or not the person's.

    An entry without actor and channel was written by the review command: the human channel.
    """
    if entry.get("kind") != "review":
        return None
    state = ACTIONS.get(str(entry.get("action", "")))
    actor, via = entry.get("actor", Actor.PERSON), entry.get("channel", Via.TERMINAL)
    return state if (None, state, actor, via) in _BY_NAME else None


_BY_NAME = {(None, new, str(actor), str(via)) for _, new, actor, via in TRANSITIONS} & {
    (None, new, str(Actor.PERSON), str(Via.TERMINAL)) for new in ACTIONS.values()
}


def concerns(entry: Entry, scope: str | None) -> bool:
    """Whether an entry may speak about a lesson of ``scope``; one without a scope may."""
    told = entry.get("scope")
    return not told or scope is None or told == scope


def tombstones(entries: Iterable[Entry], *, scope: str | None = None) -> frozenset[str]:
    """The value keys that the person rejected or forgot in a scope, and did not raise again.

    A rejection in one project buries nothing in another; None asks for all scopes.
    """
    dead: set[str] = set()
    for entry in in_order(entries):
        if not concerns(entry, scope):
            continue
        keys = keys_of(entry)
        if entry.get("kind") == "forget":
            dead |= keys
            continue
        if decided(entry) is None:
            continue
        if entry["action"] in _BURIES:
            dead |= keys
        elif entry["action"] in _RAISES:
            dead -= keys
            if entry.get("text"):
                dead.discard(value_key(str(entry["text"])))
    return frozenset(dead)


def keys_of(entry: Entry) -> set[str]:
    """The value keys that an entry names."""
    keys = {str(key) for key in entry.get("value_keys") or ()}
    if entry.get("value_key"):
        keys.add(str(entry["value_key"]))
    return keys


def gate(
    revision: LessonRevision,
    dead: AbstractSet[str],
    *,
    previous: State | None = None,
    actor: Actor = Actor.NIGHT,
    via: Via = Via.FOLD,
) -> str | None:
    """Why this revision may not be written, None when it may. Every writer asks here.

    ``dead`` are the tombstones; ``previous`` the state of the lesson's last revision.
    """
    visible = revision.state in VISIBLE_STATES
    by_person = revision.decided_by == HUMAN
    if not revision.text.strip() and visible:
        return "a visible lesson needs a text"
    if revision.value_key != value_key(revision.text):
        return "the value key is not that of the text"
    if visible and revision.value_key in dead:
        return "the person rejected this value"
    if revision.state in (State.APPROVED, State.PINNED) and not by_person:
        return "only the person approves and pins"
    if visible and revision.lesson_kind in _NEEDS_PERSON and not by_person:
        return "an agent's own claim is shown only when the person confirms it"
    if visible and revision.scope == EVERYWHERE and not by_person:
        return "only what the person approved holds everywhere"
    if not may(previous, revision.state, actor, via):
        return f"{actor} may not move {previous or 'nothing'} to {revision.state} by {via}"
    return None


def sealed(revision: LessonRevision) -> LessonRevision:
    """The revision with the digest of its wire form."""
    bare = msgspec.structs.replace(revision, hash="")
    return msgspec.structs.replace(bare, hash=digest(msgspec.json.encode(bare).decode()))


def newest(revisions: Iterable[LessonRevision]) -> dict[str, LessonRevision]:
    """The last revision of each lesson."""
    last: dict[str, LessonRevision] = {}
    for row in revisions:
        known = last.get(row.lesson_id)
        if known is None or (row.valid_from, row.revision) > (known.valid_from, known.revision):
            last[row.lesson_id] = row
    return last


def resolve(entry: Entry, last: Mapping[str, LessonRevision]) -> str | None:
    """The lesson that an entry is about: by id or alias, then value key, then largest overlap."""
    named = str(entry.get("lesson_id", ""))
    for row in last.values():
        if named and named in row.source_lesson_ids and row.scope != EVERYWHERE:
            return row.lesson_id
    if named in last:
        return named
    own = [row for row in last.values() if concerns(entry, row.scope)]
    keys = keys_of(entry)
    alike = sorted(row.lesson_id for row in own if row.value_key in keys)
    if alike:
        return alike[0]
    sources = set(entry.get("sources") or ())
    shared = [(-len(sources & set(row.source_episode_ids)), row.lesson_id) for row in own]
    shared = [pair for pair in shared if pair[0] < 0]
    return min(shared)[1] if shared else None


def apply_entries(
    revisions: Sequence[LessonRevision], entries: Iterable[Entry]
) -> list[LessonRevision]:
    """The revisions with the reviews that the fold did not know yet, as further revisions.

    A review counts for a lesson only when it is younger than the lesson's last revision: what the
    fold wrote later knew the review. Agents' entries and entries that resolve to nothing change
    nothing here; see ``unresolved``.
    """
    result = list(revisions)
    last = newest(revisions)
    for entry in in_order(entries):
        state = decided(entry)
        lesson_id = resolve(entry, last) if state is not None else None
        if state is None or lesson_id is None:
            continue
        row, at = last[lesson_id], int(entry["recorded_at"])
        if entry["action"] == "edit" and row.state == State.PINNED:
            state = State.PINNED
        if at < row.valid_from or not may(row.state, state, Actor.PERSON, Via.TERMINAL):
            continue
        text = str(entry.get("text") or row.text) if entry["action"] == "edit" else row.text
        ended = at if state in (State.REJECTED, State.RETIRED) else None
        row = sealed(
            msgspec.structs.replace(
                row,
                revision=row.revision + 1,
                text=text,
                value_key=value_key(text),
                state=state,
                strength=strength_at(row, at),
                valid_from=at,
                valid_to=ended,
                decided_by=HUMAN,
                reason=str(entry["action"]),
            )
        )
        last[lesson_id] = row
        result.append(row)
        if raises_everywhere(entry) and row.scope != EVERYWHERE:
            beyond = shared(row, entry)
            if beyond.lesson_id not in last:
                last[beyond.lesson_id] = beyond
                result.append(beyond)
    return result


def raises_everywhere(entry: Entry) -> bool:
    """Whether the person approves or pins a lesson beyond its project."""
    return bool(entry.get("everywhere")) and decided(entry) in (State.APPROVED, State.PINNED)


def shared(source: LessonRevision, entry: Entry) -> LessonRevision:
    """The row that holds everywhere what ``entry`` raises beyond the project of ``source``."""
    at = int(entry["recorded_at"])
    return sealed(
        msgspec.structs.replace(
            source,
            lesson_id=digest(
                "lesson", source.lesson_kind.value, EVERYWHERE, source.source_episode_ids[0]
            ),
            revision=1,
            scope=EVERYWHERE,
            state=decided(entry) or source.state,
            strength=strength_at(source, at),
            source_lesson_ids=(source.lesson_id, *source.source_lesson_ids),
            valid_from=at,
            valid_to=None,
            decided_by=HUMAN,
            reason=f"{entry['action']} everywhere",
        )
    )


def unresolved(revisions: Sequence[LessonRevision], entries: Iterable[Entry]) -> list[Entry]:
    """The reviews that no lesson answers to: listed, never dropped."""
    last = newest(revisions)
    return [
        entry
        for entry in in_order(entries)
        if decided(entry) is not None and resolve(entry, last) is None
    ]


def vetoes(entries: Iterable[Entry]) -> list[Entry]:
    """What hides lessons until the person decides in review: called wrong, a file taken away."""
    open_: list[Entry] = []
    for entry in in_order(entries):
        names = _names(entry)
        lifts = entry.get("kind") == "veto" and entry.get("action") == "lift"
        if lifts or (decided(entry) is not None and entry["action"] not in ACTIONS_ENDING):
            open_ = [one for one in open_ if not names & _names(one)]
        elif entry.get("kind") == "veto":
            open_.append(entry)
    return open_


def _names(entry: Entry) -> set[str]:
    return keys_of(entry) | {str(entry.get("lesson_id", ""))} - {""}


def vetoed(entries: Iterable[Entry], last: Mapping[str, LessonRevision]) -> frozenset[str]:
    """Ids and value keys that open vetoes hide; also the lesson that they resolve to by now."""
    hidden: set[str] = set()
    for entry in vetoes(entries):
        hidden |= _names(entry)
        hidden.add(resolve(entry, last) or "")
    return frozenset(hidden - {""})


def visible(
    revisions: Sequence[LessonRevision],
    entries: Sequence[Entry],
    overlay: AbstractSet[str],
    *,
    at: Micros,
    scope: str | None = None,
) -> list[LessonRevision]:
    """THE view: what a reader may see at ``at`` (microseconds UTC), strongest first.

    ``entries`` are all that count (a caller who asks about the past leaves later ones out);
    ``overlay`` holds lesson ids and value keys hidden at once. ``scope`` keeps one project and what
    holds everywhere; None means all projects, each row for its own scope only.
    """
    current = newest(row for row in revisions if row.valid_from <= at)
    rows = newest(apply_entries(list(current.values()), entries)).values()
    rows = list(rows)
    dead = {name: tombstones(entries, scope=name) for name in {row.scope for row in rows}}
    hidden = vetoed(entries, {row.lesson_id: row for row in rows}) | overlay
    shown = [
        row
        for row in rows
        if row.state in VISIBLE_STATES
        and (scope is None or row.scope in (scope, EVERYWHERE))
        and (row.valid_to is None or row.valid_to > at)
        and row.value_key not in dead[row.scope]
        and not hidden & {row.lesson_id, row.value_key}
        and not is_archived(row, at)
    ]
    shared = {old for row in shown if row.scope == EVERYWHERE for old in row.source_lesson_ids}
    return sorted(
        (row for row in shown if row.lesson_id not in shared),
        key=lambda row: (-strength_at(row, at), row.lesson_id),
    )
