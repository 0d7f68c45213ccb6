"""Files that are one JSON document: its records one by one, with bounded memory.

An export may hold hundreds of megabytes between two brackets. Blocks are scanned for brackets and
strings only; each outermost object is handed over as if it stood on a line of its own, so that
``walk`` reads documents, JSON lines and concatenated objects alike. A record that is broken costs
only itself: the scan begins again at the next place that looks like a record's beginning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import orjson

from everest_pipelines.core.transcripts.lines import (
    KEPT_OF_A_CAPPED_LINE,
    LINE_CAP,
    Line,
    Redact,
    Sink,
    Suspects,
    drop_payloads,
    unredacted,
)
from everest_pipelines.core.transcripts.wire import NotJson, load, mend_characters

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\]"]', re.DOTALL)
_BETWEEN = re.compile(rb"[ \t\r\n\0,\[\]\xef\xbb\xbf]*")  # what may stand between records
RESTARTS = 64  # broken records in a row before all that is held is given up


class _Scan:
    """The bytes held so far and where they stand in the file."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks = iter(blocks)
        self.held = b""
        self.at = 0  # the first byte that is not let go
        self._base = 0  # offset of the first held byte in the file
        self.line = 1  # that ``at`` stands on
        self.ended = False

    @property
    def offset(self) -> int:
        """Where ``at`` is in the file."""
        return self._base + self.at

    @property
    def left(self) -> int:
        """Bytes that are held and not let go."""
        return len(self.held) - self.at

    def more(self) -> bool:
        """Hold one more block; False at the end of the file."""
        block = next(self._blocks, None)
        if block is None:
            self.ended = True
            return False
        self._base += self.at
        self.held, self.at = self.held[self.at :] + block, 0
        return True

    def drop(self, count: int) -> bytes:
        """Let go of so many bytes and return them."""
        gone = self.held[self.at : self.at + count]
        self.at += count
        self.line += gone.count(b"\n")
        return gone


def records(
    blocks: Iterable[bytes],
    *,
    begins: re.Pattern[bytes],
    redact: Redact = unredacted,
    suspects: Suspects | None = None,
    sink: Sink | None = None,
) -> Iterator[Line]:
    """Every outermost object of a document as a line: compact JSON, redacted.

    ``begins`` matches how a record of this format begins: where a broken one is left. What
    belongs to no object comes as a line too, for the quarantine. ``sink`` gets every whole record
    as a line of its own, with its offset in the file.
    """
    scan = _Scan(blocks)
    broken = 0
    while (strange := _begin(scan)) >= 0:
        if strange:
            yield _stranger(scan, strange, redact, whole=True)
            continue
        end = _end(scan)
        content = _compact(scan.held[scan.at : scan.at + end]) if end else None
        if content is None:
            broken += 1
            found = begins.search(scan.held, scan.at + 1) if broken < RESTARTS else None
            stop = found.start() - scan.at if found else end or scan.left
            yield _stranger(scan, stop, redact, whole=bool(found or end or not scan.ended))
            continue
        broken = 0
        line, offset = scan.line, scan.offset
        scan.drop(end)
        if suspects is None or suspects(content):
            content = redact(content)
        if sink is not None:
            sink(offset, content + b"\n")
        # The comma or bracket behind it stands for the newline.
        yield Line(line, offset, content, end, scan.left > 0)


def _begin(scan: _Scan) -> int:
    """Let punctuation go; 0: an object begins, more: bytes of something else, -1: the end."""
    while True:
        between = _BETWEEN.match(scan.held, scan.at)
        scan.drop(between.end() - scan.at if between else 0)
        place = scan.held.find(b"{", scan.at)
        if place >= 0:
            return place - scan.at
        if scan.left > LINE_CAP or not scan.more():
            return scan.left or -1


def _end(scan: _Scan) -> int:
    """Bytes of the object that begins here; 0 when it does not end (in the file, below the cap)."""
    place, depth = 0, 0
    while True:
        start = scan.at
        for token in _TOKEN.finditer(scan.held, start + place):
            sign = scan.held[token.start()]
            if sign == 0x22:  # a quote: a whole string, or the beginning of one
                if token.end() - token.start() == 1:
                    place = token.start() - start
                    break
            elif sign in b"{[":
                depth += 1
            else:
                depth -= 1
                if depth <= 0:
                    return token.end() - start
            place = token.end() - start
        if scan.left > LINE_CAP or not scan.more():
            return 0


def _compact(raw: bytes) -> bytes | None:
    """One object as JSON on one line, without images; None when it is no JSON."""
    raw = raw.replace(b"\0", b"") if b"\0" in raw else raw
    try:
        content = orjson.dumps(load(mend_characters(raw)))
    except (NotJson, RecursionError, TypeError):
        return None
    return drop_payloads(content)


def _stranger(scan: _Scan, count: int, redact: Redact, *, whole: bool) -> Line:
    """Bytes that are no record, redacted, as a line for the quarantine."""
    line, offset = scan.line, scan.offset
    raw = scan.drop(count)
    content = raw[:KEPT_OF_A_CAPPED_LINE].replace(b"\0", b"").replace(b"\r", b"")
    content = redact(content.replace(b"\n", b" ").strip())
    return Line(line, offset, content, count, whole, count > LINE_CAP)
