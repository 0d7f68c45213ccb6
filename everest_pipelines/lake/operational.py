"""Rows of the tables that say how the work stands. They are excluded from equality tests."""

from __future__ import annotations

import pyarrow as pa
from msgspec import Struct

from everest_pipelines.core.records import BadLine, Day, Micros, ProjectKey

_LEVEL = 9  # what could not be read is small and kept long


class FileRow(Struct, frozen=True, kw_only=True):
    """How far one transcript file was read."""

    path: str
    agent: str = ""
    format: str = ""
    size: int = 0
    mtime_ns: int = 0
    head_sha: str = ""
    tail_sha: str = ""
    complete_offset: int = 0
    lines: int = 0
    records: int = 0
    turns: int = 0
    session_id: str = ""
    session_started_at: Micros = 0
    last_at: Micros = 0
    linked_sessions: tuple[str, ...] = ()
    cells: tuple[tuple[Day, ProjectKey], ...] = ()
    sessions: tuple[tuple[str, Day, ProjectKey], ...] = ()  # where a file holds more than one
    events: int = 0
    unknown: tuple[tuple[str, int], ...] = ()
    bad_lines: int = 0
    machine: str = ""
    error: str = ""
    attempts: int = 0
    retry_after: int = 0
    reader_version: int = 1


class ProjectRow(Struct, frozen=True, kw_only=True):
    """Which project a folder belongs to."""

    path: str
    project: ProjectKey
    root: str = ""
    why: str = ""
    folders: tuple[str, ...] = ()
    ignored: bool = False


class QuarantineRow(Struct, frozen=True, kw_only=True):
    """A line that no reader understood; `content` is a zstd frame, see `unpack`."""

    source_path: str
    line: int
    byte_offset: int
    reason: str
    size: int
    content: bytes

    @staticmethod
    def of(bad: BadLine) -> QuarantineRow:
        """A bad line as it is kept."""
        return QuarantineRow(
            source_path=bad.source_path,
            line=bad.line,
            byte_offset=bad.byte_offset,
            reason=bad.reason,
            size=bad.size,
            content=pack(bad.content),
        )


class CellState(Struct, frozen=True):
    """What a stage left in one cell."""

    table: str
    project: ProjectKey
    sha256: str
    bytes: int
    rows: int


class DayRow(Struct, frozen=True, kw_only=True):
    """One stage's work on one day."""

    stage: str
    day: Day
    state: str = "open"  # open, closed
    input_hash: str = ""
    prev_hash: str = ""  # output hash of the day before, where the stage depends on it
    output_hash: str = ""
    rows: int = 0
    cells: tuple[CellState, ...] = ()


class LedgerRow(Struct, frozen=True, kw_only=True):
    """A ledger entry as the audit trail shows it."""

    id: str
    kind: str
    recorded_at: Micros
    actor: str = ""
    lesson_id: str = ""
    detail: str = "{}"  # the entry's other fields, JSON
    chain: str = ""  # keyed digest of this entry and the one before


def pack(content: bytes) -> bytes:
    """Bytes to one zstd frame."""
    return pa.Codec("zstd", compression_level=_LEVEL).compress(content, asbytes=True)


def unpack(frame: bytes) -> bytes:
    """The bytes that `pack` was given. Raises OSError when it is no zstd frame."""
    if not frame:
        return b""
    with pa.input_stream(pa.py_buffer(frame), compression="zstd") as stream:
        return stream.read()
