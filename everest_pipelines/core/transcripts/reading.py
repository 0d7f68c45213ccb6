"""What a reader hands back: the turns of one file and everything that was not understood."""

from __future__ import annotations

from msgspec import Struct, field

from everest_pipelines.core.records import BadLine, Micros, Turn


class Reading(Struct, kw_only=True):
    """One whole transcript file, read from its first byte.

    ``turns`` stand in file order (of their first line). ``unknown`` counts records by a type
    that no reader knows; each of them is also in ``bad``. ``complete_offset`` is the byte
    offset after the last whole line: a torn last line (a writer at work) lies behind it and is
    no fault. Times are microseconds since the epoch, UTC; 0 where the file shows none.
    """

    turns: list[Turn] = field(default_factory=list[Turn])
    bad: list[BadLine] = field(default_factory=list[BadLine])
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
    machine: str = ""  # why the session is a machine's: sdk, own, memory_tool; empty: a person's
    subagent: bool = False  # a sub-agent's file: part of its parent's session
