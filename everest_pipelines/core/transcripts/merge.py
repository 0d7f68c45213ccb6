"""Two copies of one turn become one row, whatever order they arrive in.

Resumed and forked sessions copy records with their ids; a file that grew is read again from its
first byte. The owner of a turn is the copy of the session that began first, so arrival order does
not matter; what only another copy knows (the result of a call, the end of a text) is kept.
"""

from __future__ import annotations

from msgspec.structs import replace

from everest_pipelines.core.records import ToolCall, Turn


def provenance(turn: Turn) -> tuple[int, str, str]:
    """What decides the owner among copies: the smallest wins."""
    return (turn.session_started_at, turn.session_id, turn.source_path)


def merge_turn(stored: Turn, incoming: Turn) -> Turn:
    """The row of a turn of which a copy is stored and another one comes.

    For copies from different files the result is the same whichever was stored. A second reading
    of one file replaces the first, except that nothing known is unlearnt.
    """
    if stored == incoming:
        return stored
    if provenance(stored) == provenance(incoming):
        base, other = incoming, stored
        text = stored.text if stored.text.startswith(incoming.text) else incoming.text
    else:
        base, other = sorted((stored, incoming), key=provenance)
        text = max(base.text, other.text, key=lambda one: (len(one), one))
    return replace(
        base,
        text=text,
        tool_calls=_merge_calls(base.tool_calls, other.tool_calls),
        parent=base.parent or other.parent,
        withdrawn=base.withdrawn or other.withdrawn,
        duplicate_of=base.duplicate_of or other.duplicate_of,
    )


def _merge_calls(base: tuple[ToolCall, ...], other: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    if base == other or not other:
        return base
    elsewhere = {call.id: call for call in other}
    merged = [_answered(call, elsewhere.pop(call.id, call)) for call in base]
    return (*merged, *elsewhere.values())


def _answered(call: ToolCall, copy: ToolCall) -> ToolCall:
    return copy if call.output is None and copy.output is not None else call


def families(started: dict[str, int], links: list[tuple[str, str]]) -> dict[str, str]:
    """Session id -> family id (the session of the family that began first; ties by id).

    ``started`` gives every session's first time, ``links`` pairs of sessions that share a turn.
    Pairs that name an unknown session are ignored.
    """
    leader = {session: session for session in started}

    def find(session: str) -> str:
        while leader[session] != session:
            leader[session] = leader[leader[session]]
            session = leader[session]
        return session

    for one, two in links:
        if one in leader and two in leader:
            low, high = sorted((find(one), find(two)), key=lambda s: (started[s], s))
            leader[high] = low
    return {session: find(session) for session in started}
