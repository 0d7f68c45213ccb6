"""Redacted raw lines, kept for a while apart from the tables: what a mended reader reads again.

One folder a source file, named by a digest of its path; in it one zstd file a segment of bytes
that was read at once, and an index. Nothing here is derived from, and nothing is ever changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import pyarrow as pa

from everest_pipelines.core.records import Micros
from everest_pipelines.lake.parquet import growing
from everest_pipelines.text.atomic import write_atomic
from everest_pipelines.text.errors import DamagedError
from everest_pipelines.text.home import Home
from everest_pipelines.text.ids import digest

_INDEX = "index.json"
_LEVEL = 2  # level 9 saves 9 % of the bytes for five times the CPU
_BLOCK = 4 << 20


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes [start, end) of a source file as they were read, redacted. `last_at`: newest record."""

    source_path: str
    start: int
    end: int
    name: str
    last_at: Micros


class _Index(msgspec.Struct, frozen=True, kw_only=True):
    source_path: str
    segments: tuple[Segment, ...] = ()


def write_segment(
    home: Home,
    source_path: str,
    start: int,
    end: int,
    content: bytes | Iterable[bytes],
    *,
    last_at: Micros,
) -> tuple[Segment, bool]:
    """Keep redacted lines of a source file; durable on return. Returns it, and whether it is new.

    `content` may come in pieces, memory is bounded by one of them; `start` and `end` are byte
    offsets in the source. The same bytes of the same place are kept once.
    """
    folder = _folder(home, source_path)
    index = _load(folder, source_path)
    pieces = [content] if isinstance(content, bytes) else content
    total = hashlib.sha256()
    codec = pa.Codec("zstd", compression_level=_LEVEL)
    with growing(folder, "segment") as made:
        for block in _blocks(pieces):
            total.update(block)
            made.file.write(codec.compress(block, asbytes=True))
        name = f"{start}-{end}.{total.hexdigest()[:8]}.jsonl.zst"
        for known in index.segments:
            if known.name == name and (folder / name).exists():
                return known, False
        made.keep(folder / name, sync=False)  # the index stands beside it, written next
    segment = Segment(source_path=source_path, start=start, end=end, name=name, last_at=last_at)
    others = [s for s in index.segments if s.name != name]
    _save(folder, _Index(source_path=source_path, segments=(*others, segment)))
    return segment, True


def segments(home: Home, source_path: str) -> list[Segment]:
    """What is kept of a source file, in the order in which it was written."""
    return list(_load(_folder(home, source_path), source_path).segments)


def sources(home: Home) -> list[str]:
    """The source files of which something is kept, sorted."""
    return sorted(_load(folder, "").source_path for folder in _folders(home))


def read_segment(home: Home, segment: Segment) -> Iterator[bytes]:
    """The redacted bytes of a segment, in blocks. Raises DamagedError when they are not whole."""
    path = _folder(home, segment.source_path) / segment.name
    total = hashlib.sha256()
    try:
        with pa.input_stream(str(path), compression="zstd") as stream:
            while block := stream.read(_BLOCK):
                total.update(block)
                yield block
    except OSError as error:
        raise DamagedError(f"{path} cannot be read ({error}).", "everest doctor") from error
    if f".{total.hexdigest()[:8]}." not in segment.name:
        raise DamagedError(f"{path} is not what was written.", "everest doctor")


def prune(home: Home, before: Micros) -> int:
    """Remove segments that were read before `before` (microseconds UTC, by their files' times).

    Returns how many. Only for whoever holds the lake's lock, as is `forget`.
    """
    removed = 0
    for folder in _folders(home):
        index = _load(folder, "")
        kept = tuple(s for s in index.segments if _read_at(folder / s.name) >= before)
        if len(kept) != len(index.segments):
            removed += len(index.segments) - len(kept)
            _shrink(folder, _Index(source_path=index.source_path, segments=kept))
    return removed


def _read_at(path: Path) -> Micros:
    """When a segment was kept; a file that is not there is as old as can be."""
    try:
        return path.stat().st_mtime_ns // 1000
    except FileNotFoundError:
        return 0


def forget(home: Home, source_path: str) -> int:
    """Remove all that is kept of a source file. Returns how many segments that was."""
    folder = _folder(home, source_path)
    removed = len(_load(folder, source_path).segments)
    if folder.is_dir():
        _shrink(folder, _Index(source_path=source_path))
    return removed


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


def _shrink(folder: Path, index: _Index) -> None:
    """Make the index say less, then remove every file that it no longer names."""
    named = {segment.name for segment in index.segments}
    if named:
        _save(folder, index)
        named.add(_INDEX)
    for path in sorted(folder.iterdir()):
        if path.name not in named:
            path.unlink(missing_ok=True)
    if not named:
        folder.rmdir()


def _folder(home: Home, source_path: str) -> Path:
    return home.raw / digest(source_path)


def _folders(home: Home) -> list[Path]:
    return sorted(path.parent for path in home.raw.glob(f"*/{_INDEX}"))


def _load(folder: Path, source_path: str) -> _Index:
    path = folder / _INDEX
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Index)
    except FileNotFoundError:
        return _Index(source_path=source_path)
    except msgspec.MsgspecError as error:
        raise DamagedError(f"{path} cannot be read.", "everest doctor") from error


def _save(folder: Path, index: _Index) -> None:
    write_atomic(folder / _INDEX, msgspec.json.encode(index) + b"\n")
