"""Redacted raw lines, kept for a while apart from the tables: what a mended reader reads again.

One file a batch of source files that were read together (a *bundle*): zstd frames, a segment after
the other, and last the list of the segments in a skippable frame, so that ``zstd -dc`` shows all
lines. Its number tells the order in which bundles were written, its digest what is in it: a bundle
is never changed, only replaced by one that holds less. Nothing here is derived from.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import struct
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import msgspec
import pyarrow as pa

from everest_pipelines.core.records import Micros
from everest_pipelines.lake.parquet import growing
from everest_pipelines.text.atomic import sync_folder
from everest_pipelines.text.errors import DamagedError
from everest_pipelines.text.home import Home

SUFFIX = ".jsonl.zst"
_DIGITS = 16  # of a digest
_NAME = re.compile(rf"\d{{8}}-[0-9a-f]{{{_DIGITS}}}{re.escape(SUFFIX)}")
_LEVEL = 2  # level 9 saves 9 % of the bytes for five times the CPU
_BLOCK = 4 << 20
_SKIPPED = 0x184D2A5E  # a frame that zstd passes over (RFC 8878, 3.1.2)
_TAIL = struct.Struct("<I4s")  # length of the list, and a mark
_MARK = b"EVRW"

# Lines in the order of the file -> each with whether it is to go.
Marked = Callable[[Iterable[bytes]], Iterable[tuple[bytes, bool]]]


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes [start, end) of a source file as they were read, redacted. `last_at`: newest record.

    They stand at [offset, offset + size) of the bundle, compressed; `sha` is a digest of that.
    """

    source_path: str
    start: int
    end: int
    offset: int
    size: int
    sha: str
    last_at: Micros
    bundle: str = ""

    @property
    def same(self) -> tuple[str, int, int, str]:
        """What two copies of one segment share, wherever they stand."""
        return self.source_path, self.start, self.end, self.sha


class Bundle:
    """Takes the raw lines of one source file after the other, see `bundle`."""

    def __init__(self, home: Home, file: IO[bytes]) -> None:
        self._home = home
        self._file = file
        self.segments: list[Segment] = []

    def add(
        self,
        source_path: str,
        start: int,
        end: int,
        content: bytes | Iterable[bytes],
        *,
        last_at: Micros,
    ) -> None:
        """Take redacted lines of a source file.

        `content` may come in pieces, memory is bounded by one of them; `start` and `end` are byte
        offsets in the source. The same bytes of the same place are kept once.
        """
        offset = self._file.tell()
        try:
            size, sha = _pack(self._file, [content] if isinstance(content, bytes) else content)
        except Exception:
            self._back_to(offset)
            raise
        segment = Segment(
            source_path=source_path,
            start=start,
            end=end,
            offset=offset,
            size=size,
            sha=sha,
            last_at=last_at,
        )
        known = [*segments(self._home, source_path), *self.segments]
        if any(one.same == segment.same for one in known):
            self._back_to(offset)
        else:
            self.segments.append(segment)

    def _back_to(self, offset: int) -> None:
        self._file.seek(offset)
        self._file.truncate()


@contextmanager
def bundle(home: Home) -> Generator[Bundle]:
    """A new bundle; what was added is durable and to be found when the block ends without error."""
    with growing(home.raw, "bundle") as made:
        taking = Bundle(home, made.file)
        yield taking
        if taking.segments:
            number = max((int(name[:8]) for name in _names(home)), default=0) + 1
            made.keep(home.raw / _finish(made.file, number, taking.segments))


def write_segment(
    home: Home,
    source_path: str,
    start: int,
    end: int,
    content: bytes | Iterable[bytes],
    *,
    last_at: Micros,
) -> bool:
    """Keep lines of one source file in a bundle of their own; whether they are new."""
    with bundle(home) as taking:
        taking.add(source_path, start, end, content, last_at=last_at)
    return bool(taking.segments)


def segments(home: Home, source_path: str) -> list[Segment]:
    """What is kept of a source file, in the order in which it was written."""
    found: dict[tuple[str, int, int, str], Segment] = {}
    for name in _names(home):
        for segment in _by_source(home, name).get(source_path, ()):
            found.setdefault(segment.same, segment)
    return list(found.values())


def sources(home: Home) -> list[str]:
    """The source files of which something is kept, sorted."""
    return sorted({path for name in _names(home) for path in _by_source(home, name)})


def read_segment(home: Home, segment: Segment) -> Iterator[bytes]:
    """The redacted bytes of a segment, in blocks. Raises DamagedError when they are not whole."""
    path = home.raw / segment.bundle
    try:
        with path.open("rb") as file:
            if _digest(_range(file, segment.offset, segment.size)) != segment.sha:
                raise DamagedError(f"{path} is not what was written.", "everest doctor")
        with pa.OSFile(str(path)) as file:
            stream = file.get_stream(segment.offset, segment.size)
            with pa.CompressedInputStream(stream, "zstd") as plain:
                while block := plain.read(_BLOCK):
                    yield block
    except OSError as error:
        raise DamagedError(f"{path} cannot be read ({error}).", "everest doctor") from error


def lines(home: Home, source_path: str) -> Iterator[bytes]:
    """All lines that are kept of a source file, by their place in it."""
    for segment in sorted(segments(home, source_path), key=lambda one: (one.start, one.end)):
        yield from _lines(read_segment(home, segment))


def prune(home: Home, before: Micros) -> int:
    """Remove what was read before `before` (microseconds UTC, by the bundles' times).

    Returns how many segments that was. Only for whoever holds the lake's lock, as are `forget` and
    `rewrite`.
    """
    removed = 0
    for name in _names(home):
        path = home.raw / name
        if path.stat().st_mtime_ns // 1000 < before:
            removed += len(_listed(home, name))
            path.unlink()
    return removed


def forget(home: Home, source_path: str) -> int:
    """Remove all that is kept of a source file. Returns how many segments that was."""
    _drop_damaged(home)
    removed = 0
    for name in _names(home):
        gone = _by_source(home, name).get(source_path, [])
        if gone:
            _replace(home, name, {segment.offset: None for segment in gone})
            removed += len(gone)
    return removed


def without(blocks: Iterable[bytes], marked: Marked) -> Iterator[bytes]:
    """Lines without those that `marked` lets go; an empty line stays in their place."""
    for line, drops in marked(_lines(blocks)):
        yield b"\n" if drops else line


def rewrite(home: Home, source_path: str, marked: Marked) -> int:
    """Take out the lines of a source file that `marked` lets go, by their place in it.

    An empty line stays in their place. A segment without any other line goes. Returns how many
    lines went. A kill leaves old or new bundles, or both: then it is to be done again.
    """
    _drop_damaged(home)
    dropped = 0
    with ExitStack() as open_files:
        changed: dict[str, dict[int, IO[bytes] | None]] = {}
        for segment in sorted(_copies(home, source_path), key=lambda one: (one.start, one.end)):
            file = open_files.enter_context(tempfile.TemporaryFile(dir=str(home.raw)))
            gone, left = _filtered(file, marked(_lines(read_segment(home, segment))))
            if gone:
                dropped += gone
                changed.setdefault(segment.bundle, {})[segment.offset] = file if left else None
        for name, contents in changed.items():
            _replace(home, name, contents)
    return dropped


def damaged(home: Home) -> list[Path]:
    """Bundles of which it cannot be told what is in them."""
    return [home.raw / name for name in _names(home) if _read_list(str(home.raw), name) is None]


def _drop_damaged(home: Home) -> None:
    """Nobody can tell whether they hold what is to be forgotten."""
    for path in damaged(home):
        path.unlink()


def _copies(home: Home, source_path: str) -> list[Segment]:
    """The segments of a source file, copies too."""
    return [one for name in _names(home) for one in _by_source(home, name).get(source_path, ())]


def _filtered(file: IO[bytes], marked: Iterable[tuple[bytes, bool]]) -> tuple[int, bool]:
    """Pack lines into a file without those that go; how many those are, and whether any is left."""
    gone, left = 0, False

    def pieces() -> Iterator[bytes]:
        nonlocal gone, left
        for line, drops in marked:
            gone += drops
            left = left or (not drops and bool(line.strip()))
            yield b"\n" if drops else line

    _pack(file, pieces())
    return gone, left


def _replace(home: Home, name: str, contents: Mapping[int, IO[bytes] | None]) -> None:
    """A bundle with other contents (None: without) at some offsets, as old as it was before."""
    old = home.raw / name
    path = old
    with growing(home.raw, "bundle") as made, old.open("rb") as file:
        listed: list[Segment] = []
        for segment in _listed(home, name):
            place = made.file.tell()
            packed = contents.get(segment.offset, file)
            if packed is None:
                continue
            if packed is file:
                made.file.writelines(_range(file, segment.offset, segment.size))
                listed.append(msgspec.structs.replace(segment, offset=place))
                continue
            size, sha = packed.tell(), _digest(_range(packed, 0, packed.tell()))
            made.file.writelines(_range(packed, 0, size))
            listed.append(msgspec.structs.replace(segment, offset=place, size=size, sha=sha))
        if listed:
            path = home.raw / _finish(made.file, int(name[:8]), listed)
            made.file.flush()  # else closing it would make it young again
            found = old.stat()
            os.utime(made.waiting, ns=(found.st_atime_ns, found.st_mtime_ns))
            made.keep(path)
    if path != old or not listed:
        old.unlink()
        sync_folder(home.raw)


def _pack(file: IO[bytes], pieces: Iterable[bytes]) -> tuple[int, str]:
    """Write bytes as zstd frames; how many those take, and their digest."""
    size, total = 0, hashlib.sha256()
    codec = pa.Codec("zstd", compression_level=_LEVEL)
    for block in _blocks(pieces):
        packed = codec.compress(block, asbytes=True)
        total.update(packed)
        file.write(packed)
        size += len(packed)
    return size, total.hexdigest()[:_DIGITS]


def _digest(blocks: Iterable[bytes]) -> str:
    total = hashlib.sha256()
    for block in blocks:
        total.update(block)
    return total.hexdigest()[:_DIGITS]


def _range(file: IO[bytes], offset: int, size: int) -> Iterator[bytes]:
    """Bytes [offset, offset + size) of a file, in blocks."""
    file.seek(offset)
    while size and (block := file.read(min(size, _BLOCK))):
        size -= len(block)
        yield block


def _finish(file: IO[bytes], number: int, listed: list[Segment]) -> str:
    """Write the list of the segments behind them; returns the bundle's name."""
    plain = [msgspec.structs.replace(segment, bundle="") for segment in listed]
    content = msgspec.json.encode(plain)
    size = len(content) + _TAIL.size
    file.write(struct.pack("<II", _SKIPPED, size) + content + _TAIL.pack(len(content), _MARK))
    return f"{number:08}-{hashlib.sha256(content).hexdigest()[:_DIGITS]}{SUFFIX}"


def _names(home: Home) -> list[str]:
    """The bundles, oldest first."""
    try:
        return sorted(name for name in os.listdir(home.raw) if _NAME.fullmatch(name))
    except FileNotFoundError:
        return []


def _listed(home: Home, name: str) -> tuple[Segment, ...]:
    return _read_list(str(home.raw), name) or ()


def _by_source(home: Home, name: str) -> dict[str, list[Segment]]:
    return _sorted_list(str(home.raw), name)


# Cached by name, which holds a digest of what is listed: other content has another name.
@functools.lru_cache(maxsize=4096)
def _sorted_list(folder: str, name: str) -> dict[str, list[Segment]]:
    found: dict[str, list[Segment]] = {}
    for segment in _read_list(folder, name) or ():
        found.setdefault(segment.source_path, []).append(segment)
    return found


@functools.lru_cache(maxsize=4096)
def _read_list(folder: str, name: str) -> tuple[Segment, ...] | None:
    """What is in a bundle; None when that cannot be read."""
    try:
        with (Path(folder) / name).open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(end - _TAIL.size, 0))
            size, mark = _TAIL.unpack(file.read(_TAIL.size))
            if mark != _MARK:
                return None
            file.seek(end - _TAIL.size - size)
            content = file.read(size)
        if hashlib.sha256(content).hexdigest()[:_DIGITS] != name[9 : 9 + _DIGITS]:
            return None
        found = msgspec.json.decode(content, type=tuple[Segment, ...])
    except (OSError, ValueError, struct.error, msgspec.MsgspecError):
        return None
    return tuple(msgspec.structs.replace(segment, bundle=name) for segment in found)


def _blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Regroup bytes into blocks; each becomes a zstd frame, so small ones would pack badly."""
    waiting: list[bytes] = []
    held = 0
    for piece in pieces:
        waiting.append(piece)
        held += len(piece)
        if held >= _BLOCK:
            yield b"".join(waiting)
            waiting, held = [], 0
    if held:
        yield b"".join(waiting)


def _lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines with their newlines; the last one may lack it."""
    rest = b""
    for block in blocks:
        *whole, rest = (rest + block).split(b"\n")
        yield from (line + b"\n" for line in whole)
    if rest:
        yield rest
