"""Keeping a project out: nothing new of it is read, and what is there goes; and letting it in."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from everest_pipelines.core.records import ProjectKey
from everest_pipelines.core.transcripts.projects import canonical, is_under
from everest_pipelines.lake import raw
from everest_pipelines.lake.days import Days
from everest_pipelines.lake.operational import FileRow, ProjectRow, QuarantineRow
from everest_pipelines.night.derive import day_row
from everest_pipelines.night.projects import (
    IGNORE_FILE,
    add_ignored,
    drop_ignored,
    ignored_paths,
    is_kept_out,
    says_ignore,
)
from everest_pipelines.night.workspace import Workspace
from everest_pipelines.text import ledger
from everest_pipelines.text.errors import CallerError

_NEVER_READ = 0  # a reader version that asks for the file to be read again


class Hit(Struct, frozen=True, kw_only=True):
    """What keeping a directory out takes from the memory."""

    projects: tuple[ProjectKey, ...] = ()  # that are not kept out already
    sessions: int = 0
    turns: int = 0


class Undone(Struct, frozen=True, kw_only=True):
    """What `unignore` did."""

    paths: tuple[str, ...] = ()  # taken off the list
    projects: tuple[ProjectKey, ...] = ()  # that come back
    marked: tuple[str, ...] = ()  # roots that an ignore file keeps out all the same


def would_hit(ws: Workspace, path: str) -> Hit:
    """What `ignore` of this path would take; changes nothing."""
    rows: list[ProjectRow] = ws.lake.read_table("projects")
    projects = _below(rows, path)
    turns = ws.lake.read("transcripts", projects=sorted(projects)) if projects else []
    return Hit(
        projects=tuple(
            sorted({row.project for row in rows if row.project in projects and not row.ignored})
        ),
        sessions=len({turn.session_id for _, _, turn in turns}),
        turns=len(turns),
    )


def ignore(ws: Workspace, path: str) -> list[ProjectKey]:
    """Keep the projects at or below ``path`` out and empty their cells; returns their keys.

    The next night derives everything that rested on them again. The agent's own transcripts are
    not touched. The caller holds the lake's lock.
    """
    add_ignored(ws.home, path)
    hit = _below(ws.lake.read_table("projects"), path)
    _keep_out(ws, hit, path)
    return sorted(hit)


def unignore(ws: Workspace, path: str) -> Undone:
    """Let the projects at or below ``path`` in again: the next night reads their transcripts.

    What the agent has deleted since does not come back. Raises CallerError when nothing there is
    kept out, or when a directory above is. The caller holds the lake's lock.
    """
    place = canonical(path)
    rows: list[ProjectRow] = ws.lake.read_table("projects")
    above = [one for one in ignored_paths(ws.home) if one != place and is_under(place, one)]
    if above:
        raise CallerError(f"{above[0]} keeps it out.", f"everest ignore --undo {above[0]}")
    dropped = drop_ignored(ws.home, path)
    below = [row for row in rows if row.ignored and is_under(row.root or row.path, place)]
    if not dropped and not below:
        raise CallerError(f"Nothing at or below {place} is kept out.", "everest ignore")
    marked = {row.root for row in below if says_ignore(row.root)}
    back = {row.project for row in below if row.root not in marked}
    _let_in(ws, back, path)
    return Undone(paths=tuple(dropped), projects=tuple(sorted(back)), marked=tuple(sorted(marked)))


def follow_marks(ws: Workspace) -> bool:
    """Keep projects out, and let them in, as ``ignore.json`` and their ignore files say now.

    Returns whether a project came back, so that there is more to read. One whose directory has
    gone stays as it was: that no ignore file is seen there says nothing.
    """
    rows: list[ProjectRow] = ws.lake.read_table("projects")
    listed = ignored_paths(ws.home)
    out = {row.root: is_kept_out(row.root, listed) for row in rows if row.root}
    leaves = {row.project for row in rows if not row.ignored and out.get(row.root)}
    comes = {
        row.project
        for row in rows
        if row.ignored and not out.get(row.root, True) and Path(row.root).is_dir()
    }
    if leaves:
        _keep_out(ws, leaves, IGNORE_FILE)
    if comes:
        _let_in(ws, comes, IGNORE_FILE)
    return bool(comes)


def _below(rows: list[ProjectRow], path: str) -> set[ProjectKey]:
    return {row.project for row in rows if is_under(row.root or row.path, canonical(path))}


def _keep_out(ws: Workspace, projects: set[ProjectKey], why: str) -> None:
    """The flag comes last: where a kill leaves it out, the next `follow_marks` does it again."""
    _empty_cells(ws, projects)
    _drop_copies(ws, projects)
    _flag(ws, projects, ignored=True)
    _note(ws, "ignore", projects, why)


def _let_in(ws: Workspace, projects: set[ProjectKey], why: str) -> None:
    """A file whose turns were dropped has no cell that names the project: all are read again."""
    if not projects:
        return
    files: list[FileRow] = ws.lake.read_table("files")
    ws.lake.write_table("files", [_unread(ws, row) for row in files])
    _flag(ws, projects, ignored=False)
    _note(ws, "unignore", projects, why)


def _unread(ws: Workspace, row: FileRow) -> FileRow:
    """The bookmark of a file to be read again, and to be copied again where the copy was let go."""
    if raw.segments(ws.home, row.path):
        return replace(row, reader_version=_NEVER_READ)
    return replace(row, reader_version=_NEVER_READ, complete_offset=0, tail_sha="")


def _flag(ws: Workspace, projects: set[ProjectKey], *, ignored: bool) -> None:
    rows: list[ProjectRow] = ws.lake.read_table("projects")
    ws.lake.write_table(
        "projects",
        [replace(row, ignored=ignored) if row.project in projects else row for row in rows],
    )


def _note(ws: Workspace, rule: str, projects: set[ProjectKey], path: str) -> None:
    entry = {"rule": rule, "path": path, "projects": sorted(projects)}
    ledger.append(ws.home, "forget", entry, now=ws.now())


def _empty_cells(ws: Workspace, projects: set[ProjectKey]) -> None:
    cells = [cell for cell in ws.lake.cells("transcripts") if cell.project in projects]
    touched = sorted({cell.day for cell in cells})
    if not touched:
        return
    days = Days.load(ws.lake)
    days.open("transcripts", touched)
    for cell in cells:
        ws.lake.write_cell("transcripts", cell.day, cell.project, [])
    days.close([day_row(ws, "transcripts", ("transcripts",), day, "") for day in touched])


def _drop_copies(ws: Workspace, projects: set[ProjectKey]) -> None:
    """Raw lines and quarantined lines of files that belong to these projects alone."""
    files: list[FileRow] = ws.lake.read_table("files")
    gone = {
        row.path
        for row in files
        if row.cells and all(project in projects for _, project in row.cells)
    }
    for path in gone:
        raw.forget(ws.home, path)
    stored: list[QuarantineRow] = ws.lake.read_table("quarantine")
    ws.lake.write_table("quarantine", [row for row in stored if row.source_path not in gone])
    ws.lake.write_table(
        "files",
        [
            replace(row, cells=tuple(cell for cell in row.cells if cell[1] not in projects))
            for row in files
        ],
    )
