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

PAYLOAD_LINE = 16 * 1024  # bytes; shorter lines hold no image worth a search
_PAYLOAD_KEYS = (b'"data":"', b'"base64":"', b'"data": "', b'"base64": "')
_BASE64 = re.compile(rb"[A-Za-z0-9+/\\]{1024,}={0,2}")
_DATA_URL = b";base64,"
_DATA = re.compile(rb"(?:[A-Za-z0-9+/]+|\\/)+={0,2}")
_BOM = b"\xef\xbb\xbf"

Redact = Callable[[bytes], bytes]
Suspects = Callable[[bytes], bool]
Sink = Callable[[int, bytes], None]


class Line(Struct, frozen=True, gc=False):
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
    not handed over, and of a line above the cap only its beginning. Lines are redacted and handed
    over in blocks of about the size of ``blocks``.
    """
    number = 1
    for chunk, offset, size, whole in _chunks(blocks):
        if size > LINE_CAP and size != len(chunk):  # one line, of which the beginning is kept
            pieces, capped = [chunk.removesuffix(b"\n")], True
        else:
            pieces, capped = chunk.split(b"\n"), False
            if whole:
                pieces.pop()  # behind the last newline
        contents = pieces
        if size <= LINE_CAP and _is_plain(chunk, offset):
            if suspects is None or suspects(chunk):
                contents = [redact(piece) if piece else piece for piece in pieces]
        else:
            contents = [_cleaned(piece) for piece in pieces]
            if not offset and contents[0].startswith(_BOM):
                contents[0] = contents[0][3:]
            if suspects is None or suspects(b"\n".join(contents)):
                contents = [redact(content) if content else content for content in contents]
        if sink is not None and whole:
            sink(offset, chunk if contents is pieces else b"\n".join(contents) + b"\n")
        for content, piece in zip(contents, pieces, strict=True):
            length = size - whole if capped else len(piece)
            yield Line(number, offset, content, length, whole, length > LINE_CAP)
            offset += length + 1
            number += 1


def _is_plain(chunk: bytes, offset: int) -> bool:
    """Whether nothing in these lines is to be cleaned."""
    return (
        b"\0" not in chunk
        and b"\r" not in chunk
        and b'"base64"' not in chunk
        and _DATA_URL not in chunk
        and (offset > 0 or not chunk.startswith(_BOM))
    )


def _cleaned(content: bytes) -> bytes:
    if len(content) > LINE_CAP:
        content = content[:KEPT_OF_A_CAPPED_LINE]
    if b"\0" in content:
        content = content.replace(b"\0", b"")
    if b"\r" in content:
        content = content.replace(b"\r", b"")
    if len(content) > PAYLOAD_LINE:
        content = drop_payloads(content)
    return content


def _chunks(blocks: Iterable[bytes]) -> Iterator[tuple[bytes, int, int, bool]]:
    """Bytes as (whole lines, offset, size, True), the last line perhaps (line, …, False).

    A line above the cap comes alone: its beginning, and the size that it had (with its newline).
    """
    offset = 0
    parts: list[bytes] = []  # of a line that began in an earlier block
    held = 0  # its bytes so far
    for block in blocks:
        end = block.rfind(b"\n") + 1
        if end and held:
            first = block.find(b"\n") + 1
            size = held + first
            if size - 1 > LINE_CAP:
                _hold(parts, held, block[:first])
                yield b"".join(parts), offset, size, True
                offset += size
                block, end = block[first:], end - first
            else:
                parts.append(block[:end])
                yield b"".join(parts), offset, held + end, True
                offset += held + end
                block, end = block[end:], 0
            parts, held = [], 0
        if end:
            yield block[:end], offset, end, True
            offset += end
        if end < len(block):
            _hold(parts, held, block[end:])
            held += len(block) - end
    if held:
        yield b"".join(parts), offset, held, False


def _hold(parts: list[bytes], held: int, piece: bytes) -> None:
    """Keep a piece of an unfinished line; above the cap only the line's beginning stays."""
    parts.append(piece)
    if held + len(piece) > LINE_CAP:
        parts[:] = [b"".join(parts)[:KEPT_OF_A_CAPPED_LINE]]
