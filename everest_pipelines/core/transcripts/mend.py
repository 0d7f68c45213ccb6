"""A line that does not decode as one record: find the whole records on it.

Two writers leave two objects without a newline between them, a crash leaves a cut record with
a whole one behind it, or a record inside another. What belongs to no whole record is returned
as a piece with its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from msgspec import Struct

from everest_pipelines.core.transcripts.wire import NotARecord, NotJson

ATTEMPTS = 64  # failed starts a line, and
FAILED_SCANS = 8  # lengths of the line scanned in vain, and
STRANGERS = 10_000  # objects that are no records: beyond these the rest of the line is one piece
_START = re.compile(r'\{\s*"')
_scanner = json.JSONDecoder(strict=False)


R = TypeVar("R")

# One record from the bytes of one JSON object; raises NotJson or NotARecord (see ``wire``).
Decode = Callable[[bytes], R]
# Whether an object has a record's fields; ``nested``: it may be only a part of one that was cut.
IsRecord = Callable[[dict[str, Any], bool], bool]


class Piece(Struct, Generic[R], frozen=True):
    """Bytes of a line: a whole record, or (record None) what could not be read, and why."""

    start: int
    content: bytes
    record: R | None = None
    reason: str = ""


def pieces(line: bytes, *, decode: Decode[R], is_record: IsRecord) -> list[Piece[R]]:
    """All of a line's bytes as pieces in order; white space between them is left out."""
    try:
        return [Piece(0, line, decode(line))]
    except NotARecord:
        return [Piece[R](0, line, None, "not_a_record")]
    except NotJson:
        pass
    found = _whole_records(line, decode, is_record)
    gaps = _gaps(line, found)
    if len(found) == 1 and len(gaps) == 2 and not gaps[0].start and gaps[1].start > found[0].start:
        joined = gaps[0].content + gaps[1].content  # a record that was written inside another
        try:
            outer = decode(joined)
        except (NotARecord, NotJson):
            pass
        else:
            return [Piece(0, joined, outer), found[0]]
    return sorted([*found, *gaps], key=lambda piece: piece.start)


def _whole_records(line: bytes, decode: Decode[R], is_record: IsRecord) -> list[Piece[R]]:
    text = line.decode("latin-1")  # one character a byte: places in the text are byte offsets
    found: list[Piece[R]] = []
    place, failures, scanned, strangers = 0, 0, 0, 0
    while (
        failures < ATTEMPTS
        and scanned <= FAILED_SCANS * len(text)
        and strangers < STRANGERS
        and (match := _START.search(text, place))
    ):
        start = match.start()
        try:
            value, end = _scanner.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            stopped = error.pos if isinstance(error, json.JSONDecodeError) else len(text)
            failures += 1
            scanned += max(stopped - start, 1)
            place = start + 1
            continue
        place = end
        nested = failures > 0  # perhaps only a part of the record that was cut
        piece = None
        if isinstance(value, dict) and is_record(cast("dict[str, Any]", value), nested):
            piece = _piece(line[start:end], start, decode)
        if piece is None:
            strangers += 1
        else:
            found.append(piece)
    return found


def _piece(content: bytes, start: int, decode: Decode[R]) -> Piece[R] | None:
    try:
        return Piece(start, content, decode(content))
    except (NotARecord, NotJson):
        return None


def _gaps(line: bytes, found: list[Piece[R]]) -> list[Piece[R]]:
    gaps: list[Piece[R]] = []
    place = 0
    for start, end in [*((p.start, p.start + len(p.content)) for p in found), (len(line),) * 2]:
        content = line[place:start]
        if content.strip():
            reason = "torn" if content.lstrip().startswith(b"{") or found else "not_json"
            gaps.append(Piece[R](place, content, None, reason))
        place = end
    return gaps
