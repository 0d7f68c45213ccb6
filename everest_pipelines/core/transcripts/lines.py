"""Blocks of bytes to lines, with number and byte offset.

Split on ``\\n`` only: line separators such as U+2028 are legal inside JSON strings. NUL bytes
(left by crashes) and ``\\r`` are stripped, embedded base64 payloads (images stand twice on a
line) are replaced by their size and hash, then the redactor sees the line.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

LINE_CAP = 64 * 1024 * 1024  # bytes; a longer line is named and dropped: memory stays bounded
KEPT_OF_A_CAPPED_LINE = 64 * 1024
SINK_BLOCK = 256 * 1024  # lines are redacted and handed over in blocks of about this size

PAYLOAD_LINE = 16 * 1024  # bytes; shorter lines hold no image worth a search
_PAYLOAD_KEYS = (b'"data":"', b'"base64":"', b'"data": "', b'"base64": "')
_BASE64 = re.compile(rb"[A-Za-z0-9+/\\]{1024,}={0,2}")
_DATA_URL = b";base64,"
_DATA = re.compile(rb"(?:[A-Za-z0-9+/]+|\\/)+={0,2}")
_BOM = b"\xef\xbb\xbf"

Redact = Callable[[bytes], bytes]
Suspects = Callable[[bytes], bool]
Sink = Callable[[int, bytes], None]


class Line(Struct, frozen=True):
    """One line of a file, cleaned and redacted; ``size`` counts its bytes as they were."""

    number: int  # 1-based
    offset: int
    content: bytes
    size: int
    whole: bool  # ended by a newline
    capped: bool = False


def unredacted(data: bytes) -> bytes:
    """The redactor that changes nothing, for tests and for text that was redacted before."""
    return data


def drop_payloads(line: bytes) -> bytes:
    """Replace long base64 strings of images and documents by their size and hash."""
    if _DATA_URL in line:
        line = _drop_data_urls(line)
    if b'"base64"' not in line:
        return line
    for key in _PAYLOAD_KEYS:
        parts: list[bytes] = []
        done = 0
        place = line.find(key)
        while place >= 0:
            begin = place + len(key)
            end = line.find(b'"', begin)
            if end < 0:
                break
            if end - begin >= 1024 and _BASE64.fullmatch(line, begin, end):
                parts += [line[done:begin], _mark_of(line[begin:end])]
                done = end
            place = line.find(key, end)
        if parts:
            line = b"".join([*parts, line[done:]])
    return line


def _drop_data_urls(line: bytes) -> bytes:
    head, *rest = line.split(_DATA_URL)
    parts = [head]
    for piece in rest:
        found = _DATA.match(piece)
        if found is not None and found.end() >= 1024:
            piece = _mark_of(found.group()) + piece[found.end() :]
        parts += [_DATA_URL, piece]
    return b"".join(parts)


def _mark_of(payload: bytes) -> bytes:
    digest = hashlib.sha256(payload).hexdigest()[:16]
    return f"[base64 {len(payload)} bytes sha256:{digest}]".encode()


def lines(
    blocks: Iterable[bytes],
    *,
    redact: Redact = unredacted,
    suspects: Suspects | None = None,
    sink: Sink | None = None,
) -> Iterator[Line]:
    """All lines of a file in order, the last one with or without its newline.

    ``redact`` is applied to each line by itself; only to those of blocks that ``suspects``
    says True of, where it is given: False of many lines is certain for each of them.
    ``sink`` gets (offset in the file, redacted whole lines) for keeping; a torn last line is
    not handed over, and of a line above the cap only its beginning.
    """
    number = 1
    for group in _groups(blocks):
        contents = [content for content, *_ in group]
        block = b"\n".join(contents)
        if suspects is None or suspects(block):
            contents = [redact(content) if content else content for content in contents]
            block = b"\n".join(contents)
        if sink is not None:
            if group[-1][3]:
                sink(group[0][1], block + b"\n")
            elif len(group) > 1:
                sink(group[0][1], block[: len(block) - len(contents[-1])])
        for content, (_, offset, size, whole) in zip(contents, group, strict=True):
            yield Line(number, offset, content, size, whole, size > LINE_CAP)
            number += 1


def _groups(blocks: Iterable[bytes]) -> Iterator[list[tuple[bytes, int, int, bool]]]:
    """Cleaned lines as ``_split`` gives them, as many as make a block."""
    group: list[tuple[bytes, int, int, bool]] = []
    held = 0
    for raw, offset, size, whole in _split(blocks):
        content = raw
        if not offset and content.startswith(_BOM):
            content = content[3:]
        if b"\0" in content:
            content = content.replace(b"\0", b"")
        if b"\r" in content:
            content = content.replace(b"\r", b"")
        if len(content) > PAYLOAD_LINE:
            content = drop_payloads(content)
        group.append((content, offset, size, whole))
        held += len(content) + 1
        if held >= SINK_BLOCK:
            yield group
            group, held = [], 0
    if group:
        yield group


def _split(blocks: Iterable[bytes]) -> Iterator[tuple[bytes, int, int, bool]]:
    """(line without newline, offset, size, ended by a newline); a long line is cut, not kept."""
    offset = 0
    parts: list[bytes] = []  # of a line that began in an earlier block
    held = 0  # its bytes so far
    for block in blocks:
        if not block:
            continue
        pieces = block.split(b"\n")
        last = pieces.pop()
        if pieces and held:
            head = pieces[0]
            _hold(parts, held, head)
            size = held + len(head)
            yield b"".join(parts), offset, size, True
            offset += size + 1
            parts, held = [], 0
            del pieces[0]
        for piece in pieces:
            size = len(piece)
            yield (piece if size <= LINE_CAP else piece[:KEPT_OF_A_CAPPED_LINE]), offset, size, True
            offset += size + 1
        if last:
            _hold(parts, held, last)
            held += len(last)
    if held:
        yield b"".join(parts), offset, held, False


def _hold(parts: list[bytes], held: int, piece: bytes) -> None:
    """Keep a piece of an unfinished line; above the cap only the line's beginning stays."""
    parts.append(piece)
    if held + len(piece) > LINE_CAP:
        parts[:] = [b"".join(parts)[:KEPT_OF_A_CAPPED_LINE]]
