"""Moving every turn of the archive to its day in another zone."""

from __future__ import annotations

import json
from collections import defaultdict

from msgspec.structs import replace

from everest_pipelines.core.records import Day, ProjectKey, Turn
from everest_pipelines.lake.calendar import Calendar
from everest_pipelines.lake.days import DayRow, Days
from everest_pipelines.lake.lake import Lake
from everest_pipelines.lake.operational import FileRow
from everest_pipelines.night.derive import day_row
from everest_pipelines.night.workspace import Progress, Workspace
from everest_pipelines.text.atomic import write_atomic
from everest_pipelines.text.home import Home
from everest_pipelines.text.settings import Settings

STAGE = "transcripts"


def move(place: Home, settings: Settings, *, tz: str, start: Day, progress: Progress) -> Workspace:
    """Write the archive anew under days of ``tz``; returns the workspace in the new zone.

    The days are opened first and the zone is written last before they are closed, so that a kill
    leaves open days behind and the same command goes on. Turns before ``start`` stay on its day.
    """
    lake = Lake(place)
    calendar = Calendar(tz, start)
    before = lake.cells(STAGE)
    days = Days.load(lake)
    days.open(STAGE, sorted({cell.day for cell in before}))
    progress.begin("rezone", len(before), "cells")
    moved: dict[tuple[Day, ProjectKey], dict[str, Turn]] = defaultdict(dict)
    cells_of: dict[str, set[tuple[Day, ProjectKey]]] = defaultdict(set)
    for cell in before:
        turn: Turn
        for turn in lake.read_cell(STAGE, cell.day, cell.project):
            day = max(calendar.day_of(turn.occurred_at), start)
            moved[day, cell.project][turn.turn_id] = turn
            cells_of[turn.source_path].add((day, cell.project))
        progress.advance()
    for day, project in sorted(moved):
        lake.write_cell(STAGE, day, project, list(moved[day, project].values()))
    for cell in before:
        if (cell.day, cell.project) not in moved:
            lake.write_cell(STAGE, cell.day, cell.project, [])
    progress.end()
    files: list[FileRow] = lake.read_table("files")
    lake.write_table("files", [replace(row, cells=_cells(row, cells_of)) for row in files])
    write_atomic(place.zone_file, json.dumps({"tz": tz, "start": start}).encode() + b"\n")
    ws = Workspace(place, settings, lake, calendar, progress)
    touched = sorted({day for day, _ in moved} | {cell.day for cell in before})
    closed: list[DayRow] = [day_row(ws, STAGE, (STAGE,), day, "") for day in touched]
    days.close(closed)
    return ws


def _cells(
    row: FileRow, cells_of: dict[str, set[tuple[Day, ProjectKey]]]
) -> tuple[tuple[Day, ProjectKey], ...]:
    return tuple(sorted(cells_of.get(row.path, ())))
