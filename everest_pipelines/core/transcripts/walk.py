"""The walk over a file's lines that every reader of JSON lines takes.

A line is decoded as it stands; what does not decode is searched for whole records. What is left
goes to quarantine with line, offset and reason, and costs nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from everest_pipelines.core.records import BadLine
from everest_pipelines.core.transcripts.lines import Line
from everest_pipelines.core.transcripts.mend import Decode, IsRecord, Piece, pieces
from everest_pipelines.core.transcripts.reading import Reading
from everest_pipelines.core.transcripts.wire import NotARecord, NotJson

KEPT_OF_A_BAD_LINE = 64 * 1024  # bytes that go to quarantine
TYPE_NAME = 60  # characters of an unknown type's name

R = TypeVar("R")


def walk(
    lines: Iterable[Line],
    reading: Reading,
    *,
    path: str,
    decode: Decode[R],
    is_record: IsRecord,
    take: Callable[[R, int, bytes], str],
) -> None:
    """Hand every record to ``take`` (record, line number, redacted bytes), in file order.

    ``take`` returns the name of a type that it does not know, else an empty string: such a record
    is counted and kept. Lines, records, offsets and what could not be read go into ``reading``.
    """
    for line in lines:
        reading.size = line.offset + line.size + line.whole
        if not line.content or line.content.isspace():
            if line.whole:
                reading.complete_offset = reading.size
            continue
        reading.lines += 1
        if line.capped:
            _refuse(reading, path, line, Piece[R](0, line.content, None, "too_long"))
            reading.complete_offset = reading.size if line.whole else reading.complete_offset
            continue
        try:
            record = decode(line.content)
        except (NotARecord, NotJson):
            pass
        else:
            reading.records += 1
            if unknown := take(record, line.number, line.content):
                _count(reading, path, line, Piece(0, line.content, record), unknown)
            reading.complete_offset = reading.size
            continue
        found = pieces(line.content, decode=decode, is_record=is_record)
        reading.complete_offset = reading.size
        for piece in found:
            if piece.record is not None:
                reading.records += 1
                if unknown := take(piece.record, line.number, piece.content):
                    _count(reading, path, line, piece, unknown)
            elif piece is found[-1] and not line.whole and piece.reason != "not_a_record":
                reading.torn_tail = True  # a writer is at work: the rest will come
                start = piece.start if _is_unchanged(line) else 0
                reading.complete_offset = line.offset + start
            else:
                _refuse(reading, path, line, piece)


def _count(reading: Reading, path: str, line: Line, piece: Piece[R], unknown: str) -> None:
    unknown = unknown[:TYPE_NAME]
    reading.unknown[unknown] = reading.unknown.get(unknown, 0) + 1
    _refuse(
        reading, path, line, Piece[R](piece.start, piece.content, None, f"unknown_type:{unknown}")
    )


def _refuse(reading: Reading, path: str, line: Line, piece: Piece[R]) -> None:
    whole = len(piece.content) == len(line.content)
    reading.add_bad(
        BadLine(
            source_path=path,
            line=line.number,
            byte_offset=line.offset + (piece.start if _is_unchanged(line) else 0),
            reason=piece.reason,
            content=piece.content[:KEPT_OF_A_BAD_LINE],
            size=line.size if whole else len(piece.content),
        )
    )


def _is_unchanged(line: Line) -> bool:
    """Whether places in the cleaned line are places in the file (no NULs, nothing redacted)."""
    return len(line.content) == line.size
