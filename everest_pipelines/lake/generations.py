"""Generations: folders of whole nights, of which `current` names one.

A reader that resolved a generation keeps it: it stays for a day after it was last current, and the
last one of each of 14 days stays.
"""

from __future__ import annotations

import datetime as dt
import os
import shutil
from pathlib import Path

import msgspec

from everest_pipelines.core.records import Day, Micros, moment
from everest_pipelines.lake.months import PublishedFile
from everest_pipelines.text.atomic import (
    FILE_MODE,
    FOLDER_MODE,
    make_dir,
    sync_folder,
    temporary_name,
)
from everest_pipelines.text.errors import DamagedError, MissingError
from everest_pipelines.text.home import Home

MANIFEST = "manifest.json"
DATABASE = "everest.duckdb"
BUILDING = ".building"
KEPT_HOURS = 24
KEPT_DAYS = 14


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a generation holds. `last_entry` is the newest ledger entry that it knows.

    `derived` is a digest of all that is a function of transcripts and ledger: it is equal wherever
    the same inputs were folded to the same horizon. `extra`: other files, name -> SHA-256.
    """

    generation: str
    horizon: Day
    last_entry: str
    derived: str
    tables: dict[str, tuple[PublishedFile, ...]]
    extra: dict[str, str]
    format: int = 1


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    """A published generation. `changed`: whether `current` names it only since this call."""

    name: str
    path: Path
    changed: bool
    manifest: Manifest

    @property
    def files(self) -> dict[str, tuple[PublishedFile, ...]]:
        """Table -> its files."""
        return self.manifest.tables


def names(home: Home) -> list[str]:
    """The generations there are, by name (so by horizon)."""
    try:
        found = os.listdir(home.published)
    except FileNotFoundError:
        return []
    return sorted(n for n in found if n.startswith("g-") and (home.published / n).is_dir())


def current_name(home: Home) -> str | None:
    """The name of the current generation, or None before the first."""
    try:
        return os.readlink(home.current)
    except FileNotFoundError:
        return None


def resolve(home: Home, generation: str | None = None) -> Path:
    """The folder of a generation, by default the current one; it stays for a day at least.

    Raises MissingError when there is none.
    """
    name = generation or current_name(home)
    if name is None:
        raise MissingError("Nothing is published yet.", "everest night")
    path = home.published / name
    if "/" in name or not (path / MANIFEST).is_file():
        raise MissingError(f"There is no generation {name}.", "everest status")
    return path


def manifest_of(path: Path) -> Manifest:
    """The manifest of a generation's folder. Raises DamagedError when it cannot be read."""
    try:
        return msgspec.json.decode((path / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.MsgspecError) as error:
        raise DamagedError(f"{path / MANIFEST} cannot be read.", "everest publish") from error


def current(home: Home) -> Generation | None:
    """The current generation, or None before the first. Raises DamagedError as `manifest_of`."""
    name = current_name(home)
    if name is None:
        return None
    path = home.published / name
    return Generation(name=name, path=path, changed=False, manifest=manifest_of(path))


def settle(folder: Path) -> None:
    """Make everything below `folder` the owner's alone, and durable."""
    for root, folders, files in os.walk(folder, topdown=False):
        for name in files:
            path = Path(root) / name
            path.chmod(FILE_MODE)
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        for name in folders:
            (Path(root) / name).chmod(FOLDER_MODE)
        sync_folder(Path(root))


def make_current(home: Home, name: str, now: Micros) -> bool:
    """Let `current` name this generation: the commit. Returns whether it did not before.

    `now` (microseconds UTC) is noted as the time at which the old one was last current.
    """
    before = current_name(home)
    for touched in (before, name):
        if touched is not None and (home.published / touched).is_dir():
            os.utime(home.published / touched, ns=(now * 1000, now * 1000))
    # First, and the same for ever: once there is a generation, its database has its name.
    _link(home.duckdb, f"{home.published.name}/{home.current.name}/{DATABASE}")
    if before != name:
        _link(home.current, name)
    return before != name


def collect(home: Home, now: Micros) -> list[str]:
    """Remove what nobody can be reading any more; returns the names of removed generations.

    Only for whoever holds the lock. A generation whose manifest cannot be read keeps all files.
    """
    there = names(home)
    keep = _kept(home, there, now)
    removed = [name for name in there if name not in keep]
    for name in removed:
        aside = home.published / f"{BUILDING}.{name}"  # first out of sight, then in pieces
        (home.published / name).rename(aside)
        shutil.rmtree(aside)
    for leftover in home.published.glob(f"{BUILDING}.*"):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        manifests = [manifest_of(home.published / name) for name in sorted(keep)]
    except DamagedError:
        return removed
    used = {f.name for m in manifests for files in m.tables.values() for f in files}
    for path in sorted(home.published_files.glob("*/*")):
        if f"{path.parent.name}/{path.name}" not in used:
            path.unlink(missing_ok=True)
    return removed


def _kept(home: Home, there: list[str], now: Micros) -> set[str]:
    keep = {current_name(home) or ""} & set(there)
    last: dict[dt.date, tuple[int, str]] = {}
    for name in there:
        touched = (home.published / name).stat().st_mtime_ns // 1000
        if now - touched < KEPT_HOURS * 3_600_000_000:
            keep.add(name)
        day = moment(touched).date()
        last[day] = max(last.get(day, (0, "")), (touched, name))
    for day in sorted(last, reverse=True)[:KEPT_DAYS]:
        keep.add(last[day][1])
    return keep


def _link(path: Path, target: str) -> None:
    """Make a symbolic link, or replace it, in one step."""
    if path.is_symlink() and os.readlink(path) == target:
        return
    make_dir(path.parent)
    waiting = temporary_name(path)
    waiting.symlink_to(target)
    waiting.replace(path)
    sync_folder(path.parent)
