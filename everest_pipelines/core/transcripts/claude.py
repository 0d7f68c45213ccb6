"""The reader of Claude Code's session files (CLI 1.0 to 2.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from everest_pipelines.core.records import BadLine, Micros
from everest_pipelines.core.transcripts.claude_agent import add_assistant
from everest_pipelines.core.transcripts.claude_finish import finish
from everest_pipelines.core.transcripts.claude_person import (
    add_attachment,
    add_queue_operation,
    add_system,
    add_user,
)
from everest_pipelines.core.transcripts.claude_session import Session
from everest_pipelines.core.transcripts.lines import (
    Line,
    Redact,
    Sink,
    Suspects,
    lines,
    unredacted,
)
from everest_pipelines.core.transcripts.mend import Piece, pieces
from everest_pipelines.core.transcripts.reading import Reading
from everest_pipelines.core.transcripts.wire import NotARecord, NotJson, Record, decode

NAME = "claude-code"
KEPT_OF_A_BAD_LINE = 64 * 1024  # bytes that go to quarantine
TYPE_NAME = 60  # characters of an unknown type's name
# Records that hold nothing that memory needs; progress repeats what sub-agents' files hold.
SILENT = frozenset(
    [
        "progress",
        "file-history-snapshot",
        "last-prompt",
        "custom-title",
        "mode",
        "permission-mode",
        "summary",
        "pr-link",
        "frame-link",
    ]
)
_BEGINNING = re.compile(
    rb'\{\s*"(?:parentUuid|type|sessionId|uuid|isSidechain|messageId|leafUuid|timestamp|summary)"'
)
_TYPE = re.compile(
    rb'"type":\s*"(?:user|assistant|system|progress|attachment|queue-operation|custom-title|'
    rb'last-prompt|mode|permission-mode|pr-link)"'
)
LOOKED_AT = 50  # lines of a file's beginning


def recognises(head: bytes, path: str) -> bool:
    """Whether the beginning of a file looks like Claude Code's records; the name says nothing."""
    del path
    for line in head.replace(b"\0", b"").split(b"\n")[:LOOKED_AT]:
        line = line.lstrip(b"\xef\xbb\xbf \t\r")
        if not _BEGINNING.match(line):
            continue
        if b'"sessionId"' in line and _TYPE.search(line):
            return True
        if b'"leafUuid"' in line and b'"summary"' in line:
            return True
        if b'"file-history-snapshot"' in line and b'"snapshot"' in line:
            return True
    return False


def read(
    blocks: Iterable[bytes],
    *,
    path: str,
    start: Micros,
    redact: Redact = unredacted,
    suspects: Suspects | None = None,
    sink: Sink | None = None,
) -> Reading:
    """Read a whole file from its first byte; ``blocks`` may be cut anywhere.

    ``start``: no time before it is believed (microseconds UTC). ``redact`` is applied to every
    line before it is decoded (see ``lines`` for ``suspects``); ``sink`` gets the redacted whole
    lines with their offsets. Never raises on any content: what cannot be read is in ``bad``, named
    with line, offset, reason.
    """
    session = Session(path, start)
    reading = Reading()
    for line in lines(blocks, redact=redact, suspects=suspects, sink=sink):
        reading.size = line.offset + line.size + line.whole
        if not line.content or line.content.isspace():
            if line.whole:
                reading.complete_offset = reading.size
            continue
        reading.lines += 1
        if line.capped:
            reading.add_bad(_bad(path, line, Piece(0, line.content, None, "too_long")))
            reading.complete_offset = reading.size if line.whole else reading.complete_offset
            continue
        try:
            record = decode(line.content)
        except (NotARecord, NotJson):
            reading.complete_offset = _read_pieces(session, reading, line)
        else:
            _take(session, reading, line, Piece(0, line.content, record), record)
            reading.complete_offset = reading.size
    finish(session, reading)
    return reading


def _take(session: Session, reading: Reading, line: Line, piece: Piece, record: Record) -> None:
    """One record to the room that its type names; of an unknown type: counted and kept."""
    reading.records += 1
    source = session.meet(record, line.number, piece.content)
    kind = record.type
    unknown = ""
    if kind == "assistant":
        add_assistant(session, source)
    elif kind == "user":
        add_user(session, source)
    elif kind in SILENT:
        return
    elif kind == "queue-operation":
        add_queue_operation(session, source)
    elif kind == "system":
        add_system(session, source)
    elif kind == "attachment":
        unknown = add_attachment(session, source)
    else:
        unknown = kind
    if unknown:
        unknown = unknown[:TYPE_NAME]
        reading.unknown[unknown] = reading.unknown.get(unknown, 0) + 1
        named = Piece(piece.start, piece.content, None, f"unknown_type:{unknown}")
        reading.add_bad(_bad(session.path, line, named))


def _read_pieces(session: Session, reading: Reading, line: Line) -> int:
    """Keep what can be read of a damaged line; returns the offset up to which all is complete."""
    found = pieces(line.content)
    for piece in found:
        if piece.record is not None:
            _take(session, reading, line, piece, piece.record)
        elif piece is found[-1] and not line.whole and piece.reason != "not_a_record":
            reading.torn_tail = True  # a writer is at work: the rest will come
            return line.offset + (piece.start if _is_unchanged(line) else 0)
        else:
            reading.add_bad(_bad(session.path, line, piece))
    return reading.size


def _is_unchanged(line: Line) -> bool:
    """Whether places in the cleaned line are places in the file (no NULs, nothing redacted)."""
    return len(line.content) == line.size


def _bad(path: str, line: Line, piece: Piece) -> BadLine:
    whole = len(piece.content) == len(line.content)
    return BadLine(
        source_path=path,
        line=line.number,
        byte_offset=line.offset + (piece.start if _is_unchanged(line) else 0),
        reason=piece.reason,
        content=piece.content[:KEPT_OF_A_BAD_LINE],
        size=line.size if whole else len(piece.content),
    )
