"""What is new in the watched folders, by ``stat`` alone."""

from __future__ import annotations

import fnmatch
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from everest_pipelines.core.transcripts.registry import BESIDE, FORMATS, Format
from everest_pipelines.lake import raw
from everest_pipelines.lake.operational import FileRow
from everest_pipelines.night.workspace import Failure, Workspace
from everest_pipelines.text.settings import Settings

# Raise it when a reader or the redaction is mended: every file is then read again, from the
# lake's own copy where the source has gone.
READER_VERSION = 3


class PendingFile(Struct, frozen=True):
    """A transcript to be read. ``gone``: its source vanished, the lake's own copy is read."""

    path: str
    format: str  # of the watched root; the content decides when it is read
    size: int
    mtime_ns: int
    gone: bool = False


class Look(Struct, kw_only=True):
    """One look over all watched folders."""

    pending: list[PendingFile] = []
    seen: int = 0
    bytes: int = 0
    quiet: int = 0  # left alone because they changed within the last ``quiet_seconds``
    unreadable: list[Failure] = []

    @property
    def pending_bytes(self) -> int:
        return sum(one.size for one in self.pending)


def roots(settings: Settings) -> list[tuple[Format, Path, str]]:
    """Formats with their watched folder and file pattern; those that are not set are left out."""
    found: list[tuple[Format, Path, str]] = []
    for format_ in FORMATS:
        root: Path | None = getattr(settings, format_.root)
        if root is not None:
            for glob in format_.globs:
                folder, pattern = f"/{glob}".split("/**/")
                place = (root / folder.lstrip("/"), pattern)
                if all(place != (known, taken) for _, known, taken in found):
                    found.append((format_, *place))
    return found


def look(ws: Workspace, *, quiet_seconds: int = 0) -> Look:
    """Compare every watched file with its bookmark. Opens no file.

    A file is pending when its size or time differs from the bookmark, when reading it failed, or
    when its reader has been mended since. ``quiet_seconds`` leaves out files that were written to
    so recently. A stat error is reported and never taken for a deletion.
    """
    rows: dict[str, FileRow] = {row.path: row for row in ws.lake.read_table("files")}
    result = Look()
    seen: set[str] = set()
    newest = ws.now() * 1000 - quiet_seconds * 1_000_000_000
    for format_, root, pattern in roots(ws.settings):
        if not _is_folder(root, result.unreadable):
            continue
        for path, status in _files(str(root), pattern, result.unreadable):
            if path in seen or os.path.basename(path) in BESIDE:
                continue
            seen.add(path)
            result.seen += 1
            result.bytes += status.st_size
            row = rows.get(path)
            if row is not None and _is_read(row, status):
                continue
            if quiet_seconds and status.st_mtime_ns > newest:
                result.quiet += 1
                continue
            result.pending.append(
                PendingFile(path, format_.name, status.st_size, status.st_mtime_ns)
            )
    result.pending += _gone(ws, rows, seen)
    result.pending.sort(key=lambda one: (-one.mtime_ns, one.path))  # newest days first
    return result


def _is_read(row: FileRow, status: os.stat_result) -> bool:
    return (
        row.size == status.st_size
        and row.mtime_ns == status.st_mtime_ns
        and not row.error
        and row.reader_version == READER_VERSION
    )


def _gone(ws: Workspace, rows: dict[str, FileRow], seen: set[str]) -> list[PendingFile]:
    """Files whose source vanished before their reader was mended: read again from the lake.

    Where a copy there is damaged, it may be that of any file without one: reading then says so.
    """
    gone = [
        row
        for path, row in rows.items()
        if path not in seen and row.reader_version != READER_VERSION and not Path(path).exists()
    ]
    if not gone:
        return []
    kept = set(raw.sources(ws.home))
    return [
        PendingFile(row.path, row.format, row.size, row.mtime_ns, gone=True)
        for row in gone
        if row.path in kept or raw.damaged(ws.home)
    ]


def _files(
    folder: str, pattern: str, unreadable: list[Failure]
) -> Iterator[tuple[str, os.stat_result]]:
    """Every file below ``folder`` whose name fits, with its stat, in the order of their paths."""
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        unreadable.append(Failure(folder, f"cannot be listed: {error.strerror}"))
        return
    for entry in found:
        if not _is_utf8(entry.name):
            shown = entry.path.encode("utf-8", "replace").decode()
            unreadable.append(Failure(shown, "has a name that is no UTF-8"))
            continue
        try:
            if entry.is_dir():
                if not _leads_back(entry, folder):
                    yield from _files(entry.path, pattern, unreadable)
            elif fnmatch.fnmatch(entry.name, pattern):
                status = entry.stat()
                if stat.S_ISREG(status.st_mode):
                    yield entry.path, status
                else:  # opening a pipe would wait for ever
                    unreadable.append(Failure(entry.path, "is no regular file"))
        except FileNotFoundError:
            if entry.is_symlink():
                unreadable.append(Failure(entry.path, "is a link to nothing"))
            continue  # else it went while we looked: the next look knows more
        except OSError as error:
            unreadable.append(Failure(entry.path, f"cannot be looked at: {error.strerror}"))


def _is_folder(root: Path, unreadable: list[Failure]) -> bool:
    """Whether a watched folder is there; one that is something else, or out of reach, is named."""
    try:
        if stat.S_ISDIR(root.stat().st_mode):
            return True
        unreadable.append(Failure(str(root), "is no folder"))
    except FileNotFoundError:
        pass  # an agent that is not in use
    except OSError as error:
        unreadable.append(Failure(str(root), f"cannot be looked at: {error.strerror}"))
    return False


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # bytes that no table could hold
        return False
    return True


def _leads_back(entry: os.DirEntry[str], folder: str) -> bool:
    """Whether a linked folder is one of those that we came through."""
    if not entry.is_symlink():
        return False
    target = os.path.realpath(entry.path)
    return os.path.commonpath([target, os.path.realpath(folder)]) == target
