"""Keeping a project out: nothing new of it is read, and what is there goes."""

from __future__ import annotations

from msgspec.structs import replace

from everest_pipelines.core.records import ProjectKey
from everest_pipelines.core.transcripts.projects import canonical, is_under
from everest_pipelines.lake import raw
from everest_pipelines.lake.days import Days
from everest_pipelines.lake.operational import FileRow, ProjectRow, QuarantineRow
from everest_pipelines.night.derive import day_row
from everest_pipelines.night.projects import add_ignored, says_ignore
from everest_pipelines.night.workspace import Workspace
from everest_pipelines.text import ledger


def ignore(ws: Workspace, path: str) -> list[ProjectKey]:
    """Keep the projects at or below ``path`` out and empty their cells; returns their keys.

    The next night derives everything that rested on them again. The agent's own transcripts are
    not touched. The caller holds the lake's lock.
    """
    add_ignored(ws.home, path)
    rows: list[ProjectRow] = ws.lake.read_table("projects")
    hit = {row.project for row in rows if is_under(row.root or row.path, canonical(path))}
    ws.lake.write_table(
        "projects", [replace(row, ignored=row.ignored or row.project in hit) for row in rows]
    )
    _empty_cells(ws, hit)
    _drop_copies(ws, hit)
    ledger.append(
        ws.home, "forget", {"rule": "ignore", "path": path, "projects": sorted(hit)}, now=ws.now()
    )
    return sorted(hit)


def ignore_marked(ws: Workspace) -> list[ProjectKey]:
    """`ignore` for each known project whose root holds an ignore file now; returns their keys."""
    rows: list[ProjectRow] = ws.lake.read_table("projects")
    marked = {row.root for row in rows if row.root and not row.ignored and says_ignore(row.root)}
    return [key for root in sorted(marked) for key in ignore(ws, root)]


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
