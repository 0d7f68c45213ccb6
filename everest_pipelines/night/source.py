"""Reading one transcript: its bytes, the digests that tell a rewriting, what is kept of them."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator
from itertools import islice
from typing import IO

from msgspec import Struct

from everest_pipelines.core.records import Day, Micros, ProjectKey, Turn
from everest_pipelines.core.transcripts.lines import lines
from everest_pipelines.core.transcripts.reading import Reading
from everest_pipelines.core.transcripts.registry import HEAD_BYTES, format_of
from everest_pipelines.lake import raw
from everest_pipelines.lake.operational import FileRow
from everest_pipelines.night.compressed import opened
from everest_pipelines.night.look import PendingFile
from everest_pipelines.night.scan import Scan
from everest_pipelines.night.workspace import Workspace
from everest_pipelines.text.atomic import make_dir
from everest_pipelines.text.errors import DamagedError

BLOCK = 1 << 18  # bytes read at once; lines are redacted in blocks of this size
HEAD = 4096
LOOKED_AT, LOOKED_AT_BYTES = 50, 8192  # lines, and bytes of each, that may tell a format
SPOOLED = 8 << 20  # redacted lines of one file that wait in memory; more waits on disk

Located = tuple[Day, ProjectKey, Turn]


class Read(Struct, kw_only=True):
    """One file as it was just read."""

    pending: PendingFile
    format: str
    agent: str
    reading: Reading
    head_sha: str
    prefix_sha: str  # of all whole lines
    same_prefix: bool  # what was read before still stands unchanged at the front
    located: list[Located] = []


def read_file(
    ws: Workspace,
    one: PendingFile,
    old: FileRow | None,
    start: Micros,
    *,
    scan: Scan,
    bundle: raw.Bundle,
    keeps: Callable[[Reading], bool],
) -> Read | None:
    """Read one file whole, its redacted raw lines into the bundle; None when no format knows it.

    ``keeps`` tells whether its lines may be kept. Raises OSError when the file cannot be opened or
    read.
    """
    source = _Source(ws, one, old)
    blocks = source.blocks()
    first = next(blocks, b"")
    format_ = format_of(first.lstrip(b"\0")[:HEAD_BYTES], one.path)
    if format_ is None:
        beginnings = b"\n".join(source.beginnings())
        format_ = format_of(beginnings, one.path)
        if format_ is None and beginnings.strip():
            return None  # an empty file costs nothing and is no fault
    reading = (
        Reading()
        if format_ is None
        else format_.read(
            source.all(first, blocks),
            path=one.path,
            start=max(start, one.mtime_ns // 1000) if format_.undated else start,
            redact=scan.redact,
            suspects=scan.suspects,
            sink=source.keep,
        )
    )
    source.finish(reading, bundle if keeps(reading) else None)
    return Read(
        pending=one,
        format=format_.name if format_ else one.format,
        agent=format_.agent if format_ else "",
        reading=reading,
        head_sha=source.head.hexdigest(),
        prefix_sha=source.prefix_sha,
        same_prefix=source.same_prefix,
    )


class _Source:
    """The bytes of one file, with the digests that tell whether it was rewritten."""

    def __init__(self, ws: Workspace, one: PendingFile, old: FileRow | None) -> None:
        self.ws, self.one, self.old = ws, one, old
        self.head = hashlib.sha256()
        self.prefix = hashlib.sha256()
        self.prefix_sha = ""
        self.same_prefix = one.gone or self._still_stands()
        self._read = 0
        self._keep_from = old.complete_offset if old and self.same_prefix else 0
        self._kept_from = -1
        self._keeps = bool(ws.settings.raw_days) and not one.gone
        self._kept: list[bytes] = []  # waits in memory, then in the file
        self._kept_size = 0
        self._kept_file: IO[bytes] | None = None

    def _still_stands(self) -> bool:
        """Whether all that was read before is unchanged at the front of the file."""
        if self.old is None or not self.old.complete_offset:
            return True
        return self._digest_of(self.old.complete_offset) == self.old.tail_sha

    def _digest_of(self, end: int) -> str:
        digest_ = hashlib.sha256()
        left = end
        with opened(self.one.path) as file:
            while left and (block := file.read(min(BLOCK, left))):
                digest_.update(block)
                left -= len(block)
        return digest_.hexdigest()

    def beginnings(self) -> Iterator[bytes]:
        """How the first lines begin, however long they are."""
        for line in islice(lines(self.blocks()), LOOKED_AT):
            yield line.content[:LOOKED_AT_BYTES]

    def blocks(self) -> Iterator[bytes]:
        if self.one.gone:
            kept = raw.segments(self.ws.home, self.one.path)
            if not kept:
                raise DamagedError("the lake's copy of its lines is damaged", "everest doctor")
            for segment in kept:
                yield from raw.read_segment(self.ws.home, segment)
            return
        with opened(self.one.path) as file:
            # Up to what is kept already, so that ``keep`` sees where that ends; then the rest.
            left = self._keep_from
            while block := file.read(min(BLOCK, left) or BLOCK):
                left = max(left - len(block), 0)
                yield block

    def all(self, first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
        for block in _chain(first, rest):
            if self._read < HEAD:
                self.head.update(block[: HEAD - self._read])
            self.prefix.update(block)
            self._read += len(block)
            yield block

    def keep(self, offset: int, whole: bytes) -> None:
        """Redacted whole lines from ``offset`` on; what is kept already is let go."""
        # Redacted lines are shorter than they were: only the source tells where they end.
        if not self._keeps or self._read <= self._keep_from:
            return
        if self._kept_from < 0:
            self._kept_from = offset
        self._kept.append(whole)
        self._kept_size += len(whole)
        if self._kept_size > SPOOLED:
            if self._kept_file is None:
                # Closed when it is read; a name of its own it never has, so a kill leaves nothing.
                folder = make_dir(self.ws.home.raw)
                self._kept_file = tempfile.TemporaryFile(dir=str(folder))  # noqa: SIM115
            self._kept_file.writelines(self._kept)
            self._kept, self._kept_size = [], 0

    def _kept_lines(self) -> Iterator[bytes]:
        """All that was kept, in pieces."""
        if self._kept_file is not None:
            with self._kept_file as file:
                file.seek(0)
                while block := file.read(BLOCK):
                    yield block
        yield from self._kept

    def finish(self, reading: Reading, bundle: raw.Bundle | None) -> None:
        """Digest what is whole and put the kept lines into the bundle."""
        end = reading.complete_offset
        if self.one.gone:
            self.prefix_sha = self.old.tail_sha if self.old else ""
        else:
            whole = end == self._read
            self.prefix_sha = self.prefix.hexdigest() if whole else self._digest_of(end)
        if self._kept_from >= 0 and bundle is not None:
            bundle.add(
                self.one.path,
                self._kept_from,
                end,
                self._kept_lines(),
                last_at=reading.last_at,
            )


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from rest
