"""What a reader hands back: the turns of one file and everything that was not understood."""

from __future__ import annotations

from msgspec import Struct, field
from msgspec.structs import replace

from everest_pipelines.core.records import BadLine, Micros, Turn

# Of one file, lest a foreign one of gigabytes fills memory and quarantine.
BAD_LINES = 10_000
BAD_BYTES = 8 * 1024 * 1024


class Event(Struct, frozen=True, kw_only=True):
    """A note that a program left: the open event format. ``key`` tells it apart for ever."""

    key: str
    project: str  # a directory, a project's key, or a name
    text: str
    kind: str = "note"
    occurred_at: Micros = 0  # 0: when it is read
    agent: str = ""


class Reading(Struct, kw_only=True):
    """One whole transcript file, read from its first byte.

    ``turns`` stand in file order (of their first line). ``unknown`` counts records by a type
    that no reader knows; each of them is also in ``bad``. ``complete_offset`` is the byte
    offset after the last whole line: a torn last line (a writer at work) lies behind it and is
    no fault. Times are microseconds since the epoch, UTC; 0 where the file shows none.
    """

    turns: list[Turn] = field(default_factory=list[Turn])
    events: list[Event] = field(default_factory=list[Event])
    bad: list[BadLine] = field(default_factory=list[BadLine])
    bad_lines: int = 0  # all of them; ``bad`` holds no more than a file may cost
    unknown: dict[str, int] = field(default_factory=dict[str, int])
    lines: int = 0  # lines that are not blank, a torn last one included
    records: int = 0  # records that decoded, known or not
    size: int = 0  # bytes read
    complete_offset: int = 0
    torn_tail: bool = False
    session_id: str = ""
    session_started_at: Micros = 0
    last_at: Micros = 0
    first_cwd: str = ""
    machine: str = ""  # why no person led the session (see ``machine``); empty: a person did
    subagent: bool = False  # a sub-agent's file: part of its parent's session
    _kept: int = 0  # bytes of the contents in ``bad``

    def adopt(self, sessions: Reading) -> None:
        """Take over the turns of a file's sessions, and what is known of the first of them."""
        self.turns = sessions.turns
        self.session_id = sessions.session_id
        self.session_started_at = sessions.session_started_at
        self.last_at = sessions.last_at
        self.first_cwd = sessions.first_cwd
        self.machine = sessions.machine

    def add_bad(self, bad: BadLine) -> None:
        """Count what was not understood and, within what a file may cost, keep it."""
        self.bad_lines += 1
        if len(self.bad) < BAD_LINES:
            content = bad.content[: max(BAD_BYTES - self._kept, 0)]
            self._kept += len(content)
            self.bad.append(bad if content == bad.content else replace(bad, content=content))
