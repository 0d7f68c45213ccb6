"""The end of a file: times, machine sessions, parents, and the rows."""

from __future__ import annotations

from everest_pipelines.core.records import Channel, Role, Turn
from everest_pipelines.core.transcripts import times
from everest_pipelines.core.transcripts.claude_session import Session
from everest_pipelines.core.transcripts.draft import Draft
from everest_pipelines.core.transcripts.reading import Reading

# What a session can begin with; after a plan or a summary no prompt is the first.
_BEGINNINGS = frozenset(
    {Channel.PROMPT, Channel.COMMAND, Channel.QUEUED, Channel.PLAN, Channel.COMPACTION}
)


def finish(session: Session, reading: Reading) -> None:
    """Put the turns and what is known of the session into the reading."""
    dated = bool(session.stamps)
    at, replaced = times.mended(session.stamps or [None], session.start)
    reading.session_id = session.session_id or (session.stem if reading.records else "")
    reading.session_started_at = at[0] if dated else 0
    reading.last_at = max(at) if dated else 0
    reading.first_cwd = session.first_cwd
    reading.subagent = bool(session.file_agent)
    reading.machine = machine_of(session)
    _make_machine(session.drafts, reading)
    empty = {draft.turn_id for draft in session.drafts if draft.is_empty()}
    empty.update(session.moved)
    entries = {entry.turn_id: entry for entry in session.queue.entries}
    ancestors = _Ancestors(session, empty)
    turns: list[Turn] = []
    begun = False
    for draft in session.drafts:
        if draft.turn_id in empty:
            continue
        flags: tuple[str, ...] = ()
        entry = entries.get(draft.turn_id)
        human = draft.role is Role.HUMAN
        if not begun and draft.channel in _BEGINNINGS and not (entry and entry.duplicate_of):
            begun = True
            flags = ("first_prompt",) if human else ()
        if draft.time in replaced:
            flags = (*flags, "time_corrected")
        if human and entry is not None and entry.is_undelivered():
            flags = (*flags, "undelivered")
        turns.append(
            draft.finished(
                occurred_at=at[draft.time],
                parent=ancestors.of(draft),
                path=session.path,
                started_at=reading.session_started_at,
                flags=flags,
                withdrawn=entry is not None and entry.withdrawn,
                duplicate_of=entry.duplicate_of if entry is not None else "",
            )
        )
    turns.sort(key=lambda turn: turn.line_from)
    reading.turns = turns


def machine_of(session: Session) -> str:
    """Why no person led the session, or an empty string.

    The entry point alone is no sign: the desktop app's prompts come through the SDK too.
    """
    if session.place:
        return session.place
    if session.prompted:
        return session.prompted
    if session.sdk and not session.person:
        return "sdk"
    return ""


def _make_machine(drafts: list[Draft], reading: Reading) -> None:
    """Take the words of a machine's session out of persons' mouths.

    Through the SDK, or on a schedule, a person may still have spoken: a record that says so, or
    words beside the scheduled prompt, are theirs.
    """
    whole = reading.machine not in ("", "sdk")
    for draft in drafts:
        if draft.role is Role.HUMAN and reading.machine and (whole or not draft.person):
            draft.role = Role.HARNESS
            draft.channel = Channel.MACHINE
            draft.add_flags((f"machine:{reading.machine}",))
    machines = [draft for draft in drafts if draft.channel is Channel.MACHINE]
    if machines and not reading.machine and not any(d.role is Role.HUMAN for d in drafts):
        reading.machine = "scheduled"
        for draft in machines:
            draft.add_flags(("machine:scheduled",))


class _Ancestors:
    """The nearest turn up the chain of records; every record is walked past once."""

    def __init__(self, session: Session, empty: set[str]) -> None:
        self._up = session.up
        self._owner = {record: turn for record, turn in session.owner.items() if turn not in empty}
        self._empty = empty
        self._moved = session.moved
        self._known: dict[str, str] = {}

    def of(self, draft: Draft) -> str:
        known = self._moved.get(draft.up_turn, draft.up_turn)
        if known and known not in self._empty:
            return known
        record = draft.up
        passed: list[str] = []
        seen: set[str] = set()
        found = ""
        while record and record not in seen:
            seen.add(record)
            owner = self._owner.get(record)
            if owner is None:
                if record in self._known:
                    found = self._known[record]
                    break
                passed.append(record)
            elif owner != draft.turn_id:
                found = owner
                break
            record = self._up.get(record, "")
        self._known.update((one, found) for one in passed)
        return found if found != draft.turn_id else ""
