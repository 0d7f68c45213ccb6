"""The end of a rollout: whose words they were, times, parents, and the rows."""

from __future__ import annotations

from msgspec.structs import replace

from everest_pipelines.core.records import Channel, Role, Turn
from everest_pipelines.core.transcripts import codex_words, times
from everest_pipelines.core.transcripts.codex_session import Session
from everest_pipelines.core.transcripts.reading import Reading

AGENT = "codex"
_BEGINNINGS = frozenset({Channel.PROMPT, Channel.QUEUED, Channel.COMPACTION})


def finish(session: Session, reading: Reading) -> None:
    """Put the turns and what is known of the session into the reading."""
    dated = bool(session.stamps)
    at, replaced = times.mended(session.stamps or [None], session.start)
    reading.session_id = session.session_id if reading.records else ""
    reading.session_started_at = at[0] if dated else 0
    if session.began >= session.start and dated:
        reading.session_started_at = min(session.began, at[0])
    reading.last_at = max(at) if dated else 0
    reading.first_cwd = session.first_cwd
    reading.subagent = session.is_subagent
    chain = {  # before anything that later lines decide: a parent, once told, stays
        draft.turn_id
        for draft in session.drafts
        if draft.role is not Role.HARNESS or draft.channel is Channel.INTERRUPTION
    }
    _decide(session)
    reading.machine = "" if session.is_subagent else session.machine_of()
    if not reading.machine and session.is_scheduled():
        reading.machine = "scheduled"
    empty = {draft.turn_id for draft in session.drafts if draft.is_empty()}
    empty.update(session.moved)
    turns: list[Turn] = []
    begun = False
    before = ""
    for draft in session.drafts:
        if draft.turn_id in empty:
            continue
        if reading.machine and draft.role is Role.HUMAN:
            draft.role, draft.channel = Role.HARNESS, Channel.MACHINE
            draft.add_flags((f"machine:{reading.machine}",))
        flags: tuple[str, ...] = ()
        if not begun and draft.channel in _BEGINNINGS:
            begun = True
            flags = ("first_prompt",) if draft.role is Role.HUMAN else ()
        if draft.time in replaced:
            flags = (*flags, "time_corrected")
        up = session.moved.get(draft.up_turn, draft.up_turn)
        turn = draft.finished(
            occurred_at=at[draft.time],
            parent=up if up and up not in empty else before,
            path=session.path,
            started_at=reading.session_started_at,
            flags=flags,
            withdrawn=draft.turn_id in session.withdrawn,
        )
        turns.append(replace(turn, agent=AGENT))
        if draft.turn_id in chain:
            before = draft.turn_id
    reading.turns = turns


def _decide(session: Session) -> None:
    """Words in the user's role that no event tells are a person's where no event tells any.

    Newer versions write no events for them; where there are events, Codex itself put the rest in.
    """
    for turn_id, said in session.only_item.items():
        draft = session.by_id[turn_id]
        if draft.role is not Role.HUMAN or draft.channel is Channel.BASH:
            continue
        if said.stretch in session.told or codex_words.is_tagged("\n\n".join(draft.texts)):
            draft.role, draft.channel = Role.HARNESS, Channel.OTHER
            draft.add_flags(("unconfirmed",))
