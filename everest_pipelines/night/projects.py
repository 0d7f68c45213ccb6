"""Which project a working directory belongs to: remembered once, so that it never changes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from everest_pipelines.core.records import EVERYWHERE, ProjectKey
from everest_pipelines.core.transcripts.projects import (
    canonical,
    is_under,
    project_key,
    root_for,
    worktree_parent,
)
from everest_pipelines.lake.lake import Lake
from everest_pipelines.lake.operational import ProjectRow
from everest_pipelines.text.atomic import write_atomic
from everest_pipelines.text.errors import DamagedError
from everest_pipelines.text.home import Home

IGNORE_FILE = ".everest-ignore"


class ProjectBook:
    """The table ``projects``: every project's root, and what is known of git below it.

    A record's project is a function of its directory, its session's first directory and the git
    root alone, never of what was read before: the order of the transcripts changes nothing. A git
    root that was once seen is remembered, so that a directory may go.
    """

    def __init__(self, lake: Lake, home: Home) -> None:
        self._lake = lake
        self._rows: dict[str, ProjectRow] = {row.path: row for row in lake.read_table("projects")}
        self._ignored = ignored_paths(home)
        self._changed = False
        self._kept_out: set[ProjectKey] | None = None
        self._roots: dict[tuple[str, str], str] = {}

    def key(self, cwd: str, first_cwd: str, folder: str) -> ProjectKey:
        """The project of a record. ``folder`` is the agent's own folder, for the rendering."""
        asked = (cwd or first_cwd or folder, first_cwd)
        if asked not in self._roots:
            self._roots[asked] = self._root(*asked)
        row = self._rows[self._roots[asked]]
        at_home = not cwd or canonical(cwd) == canonical(first_cwd)
        if folder and at_home and folder not in row.folders:
            row = replace(row, folders=tuple(sorted({*row.folders, folder})))
            self._put(row)
        return row.project

    def is_ignored(self, project: ProjectKey) -> bool:
        """Whether the owner keeps the project out."""
        if self._kept_out is None:
            self._kept_out = {row.project for row in self._rows.values() if row.ignored}
        return project in self._kept_out

    def keys(self) -> list[ProjectKey]:
        """All project keys by path, the shared one first."""
        return [EVERYWHERE, *dict.fromkeys(row.project for row in self._rows.values())]

    def save(self) -> None:
        """Write the table if anything is new."""
        if self._changed:
            self._lake.write_table("projects", list(self._rows.values()))
            self._changed = False

    def _put(self, row: ProjectRow) -> None:
        self._rows[row.path] = row
        self._changed = True
        self._kept_out = None

    def _root(self, cwd: str, first_cwd: str) -> str:
        path = canonical(cwd)
        root, why = root_for(cwd, first_cwd, lambda _: None), "cwd"
        if git := self._git_root(path):
            root, why = canonical(git), "git"
        elif parent := worktree_parent(root):
            root, why = canonical(parent), "alias"
        for place in {root, path} if why == "git" else {root}:
            if place not in self._rows:
                self._put(self._new(place, root, why))
        return root

    def _new(self, path: str, root: str, why: str) -> ProjectRow:
        ignored = is_kept_out(root, self._ignored)
        return ProjectRow(path=path, project=project_key(root), root=root, why=why, ignored=ignored)

    def _git_root(self, path: str) -> str | None:
        known = self._rows.get(path)
        if known is not None and known.why == "git":
            return known.root
        return git_root(path)


def git_root(path: str) -> str | None:
    """The repository that holds an existing directory; a linked worktree gives its repository."""
    place = Path(path)
    if not place.is_absolute():
        return None
    try:
        for folder in (place, *place.parents):
            mark = folder / ".git"
            if mark.is_dir():
                return str(folder)
            if mark.is_file():
                return _main_repository(mark) or str(folder)
    except OSError:
        return None  # not ours to read: the session's own directory decides
    return None


def _main_repository(mark: Path) -> str | None:
    """A worktree's ``.git`` file reads ``gitdir: <repository>/.git/worktrees/<name>``."""
    text = mark.read_text(encoding="utf-8", errors="replace").strip()
    if not text.startswith("gitdir:"):
        return None
    target = (mark.parent / text.removeprefix("gitdir:").strip()).resolve()
    if target.parent.name == "worktrees" and target.parent.parent.name == ".git":
        return str(target.parent.parent.parent)
    return None


def is_kept_out(root: str, listed: Iterable[str]) -> bool:
    """Whether a project's root is at or below a listed directory, or holds an ignore file."""
    return any(is_under(root, one) for one in listed) or says_ignore(root)


def says_ignore(root: str) -> bool:
    """Whether a file in the project's root keeps it out."""
    try:
        return (Path(root) / IGNORE_FILE).exists()
    except OSError:
        return False


def ignored_paths(home: Home) -> list[str]:
    """The directories that the owner keeps out, canonical.

    Raises DamagedError when the list cannot be read: nothing may be read in ignorance of it.
    """
    try:
        found: Any = json.loads(home.ignore.read_bytes())
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise DamagedError(f"{home.ignore} is no list of paths.", "everest doctor") from error
    if not isinstance(found, list):
        raise DamagedError(f"{home.ignore} is no list of paths.", "everest doctor")
    return [str(path) for path in cast("list[object]", found)]


def add_ignored(home: Home, path: str) -> list[str]:
    """Keep a directory out from now on; returns all that are."""
    return _list_ignored(home, {*ignored_paths(home), canonical(path)})


def drop_ignored(home: Home, path: str) -> list[str]:
    """Take a directory, and those below it, off the list; returns what was taken off."""
    listed = ignored_paths(home)
    dropped = [one for one in listed if is_under(one, canonical(path))]
    if dropped:
        _list_ignored(home, set(listed) - set(dropped))
    return dropped


def _list_ignored(home: Home, listed: set[str]) -> list[str]:
    paths = sorted(listed)
    write_atomic(home.ignore, json.dumps(paths, indent=1, ensure_ascii=False).encode() + b"\n")
    return paths
