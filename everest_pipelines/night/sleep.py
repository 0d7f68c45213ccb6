"""The stage ``sleep``: the fold of all days up to the horizon into lessons and predictions."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow.compute as pc

from everest_pipelines.core.records import (
    EVERYWHERE,
    Day,
    Episode,
    LessonRevision,
    ProjectKey,
)
from everest_pipelines.core.sleep.everywhere import fold_everywhere
from everest_pipelines.core.sleep.fold import Folded, fold
from everest_pipelines.lake.columns import ArrowTable
from everest_pipelines.lake.days import Days
from everest_pipelines.lake.lake import CellResult
from everest_pipelines.lake.operational import DayRow
from everest_pipelines.night import wording
from everest_pipelines.night.derive import day_row, write_day
from everest_pipelines.night.models import spaces
from everest_pipelines.night.workspace import StageResult, Stopwatch, Workspace
from everest_pipelines.text import ledger
from everest_pipelines.text.ids import digest

STAGE = "sleep"
FOLD_VERSION = 2  # raise it when the fold changes what it makes: every day is then folded anew
TABLES = ("lessons", "merges", "verifications", "predictions")
Made = dict[Day, dict[str, dict[ProjectKey, list[Any]]]]  # day -> table -> project -> rows
DECISIONS = ("review", "veto", "forget", "recall")  # the ledger's kinds that the fold obeys


def sleep(ws: Workspace, horizon: Day) -> StageResult:
    """Bring every day from the earliest stale one to ``horizon`` up to date.

    The fold is pure and cheap, so it always runs over the whole history; only cells whose content
    changed are written. Days after the horizon are never folded.
    """
    watch = Stopwatch()
    result = StageResult(stage=STAGE)
    days = Days.load(ws.lake)
    wanted = input_hashes(ws, days, horizon)
    stale = [
        day for day, (input_hash, _) in wanted.items() if not days.good(STAGE, day, input_hash)
    ]
    ws.progress.begin(STAGE, len(stale), "days")
    notes: dict[str, int] = {}
    if stale:
        days.open(STAGE, stale)
        made = _fold_all(ws, horizon)
        notes = _word(ws, made)
        wanted = input_hashes(ws, days, horizon)  # a model's new answers are an input too
        stale = [day for day, (name, _) in wanted.items() if not days.good(STAGE, day, name)]
        days.open(STAGE, stale)
        # What a day holds depends on nothing later, so all up to the last good day stand. Days
        # between it and the first stale one may hold predictions that fell due meanwhile.
        good = max((day for day in wanted if day < stale[0]), default="")
        for day in sorted({*made, *stale, *_days_with_cells(ws, horizon)}):
            if day <= good:
                continue
            result.cells += write_day(ws, day, made.get(day, {table: {} for table in TABLES}))
        days.close([_row(ws, day, wanted) for day in wanted if day >= stale[0]])
        ws.progress.advance(len(stale))
    ws.progress.end()
    result.counts = _counts(result.cells) | {"days": len(stale)} | notes
    result.seconds = watch.seconds
    return result


def stale(ws: Workspace, horizon: Day) -> list[Day]:
    """Closed days whose fold is not what their inputs ask for."""
    days = Days.load(ws.lake)
    return [
        day
        for day, (input_hash, _) in input_hashes(ws, days, horizon).items()
        if not days.good(STAGE, day, input_hash)
    ]


def input_hashes(ws: Workspace, days: Days, horizon: Day) -> dict[Day, tuple[str, str]]:
    """Day -> (input hash, that of the day before): a chain, so a change reaches all later days.

    The days are those with episodes, those with decisions in the ledger, and the horizon.
    """
    decisions: dict[Day, list[str]] = defaultdict(list)
    for entry in ledger.read(ws.home, DECISIONS).entries:
        day = ws.calendar.day_of(int(entry["recorded_at"]))
        decisions[day].append(f"{entry['id']}:{entry.get('forgotten', '')}")
    made_of = {
        row.day: (row.output_hash, _vector_hash(days, row.day)) for row in days.rows("episodes")
    }
    known = {day for day in (*made_of, *decisions) if day <= horizon}
    chain: dict[Day, tuple[str, str]] = {}
    space = spaces.space_of(ws.home, ws.settings)
    version = f"{FOLD_VERSION}:{space}:{spaces.calibration_for(ws.home, space).tag}:"
    version += wording.tag(ws)
    previous = ""
    for day in sorted(known | ({horizon} if known else set())):
        input_hash = digest(version, previous, day, *made_of.get(day, ()), *decisions[day])
        chain[day] = (input_hash, previous)
        previous = input_hash
    return chain


def _vector_hash(days: Days, day: Day) -> str:
    row = days.row("vectors", day)
    return row.output_hash if row else ""


def _row(ws: Workspace, day: Day, wanted: dict[Day, tuple[str, str]]) -> DayRow:
    input_hash, previous = wanted[day]
    return day_row(ws, STAGE, TABLES, day, input_hash, previous)


def _days_with_cells(ws: Workspace, horizon: Day) -> set[Day]:
    return {cell.day for table in TABLES for cell in ws.lake.cells(table) if cell.day <= horizon}


def _fold_all(ws: Workspace, horizon: Day) -> Made:
    """Every row of the four tables, by day, table and project."""
    episodes: dict[ProjectKey, list[tuple[Day, Episode]]] = defaultdict(list)
    for day, project, episode in ws.history.rows("episodes"):
        if day <= horizon:
            episodes[project].append((day, episode))
    vectors: dict[ProjectKey, dict[str, Any]] = defaultdict(dict)
    space = spaces.space_of(ws.home, ws.settings)
    for table in ws.history.tables("vectors", horizon):
        for of_project, identifier, row in _vectors(table, space, horizon):
            # A later row of the same episode adds a fix, not words: the first vector stands.
            vectors[of_project].setdefault(identifier, row)
    entries = ledger.read(ws.home, DECISIONS, until=ws.calendar.day_end(horizon)).entries
    made: Made = {}
    calibration = spaces.calibration_for(ws.home, space)
    revisions: list[tuple[Day, LessonRevision]] = []
    for scope in sorted(key for key in episodes if key != EVERYWHERE):
        folded = fold(
            episodes[scope],
            vectors[scope],
            scope=scope,
            horizon=horizon,
            day_end=ws.calendar.day_end,
            entries=entries,
            calibration=calibration,
        )
        revisions += folded.lessons
        _collect(made, scope, folded)
    shared = fold_everywhere(revisions, entries, horizon=horizon, day_end=ws.calendar.day_end)
    _collect(made, EVERYWHERE, shared)
    return made


def _word(ws: Workspace, made: Made) -> dict[str, int]:
    """Adds a model's wordings to the lessons, asking for those of the newest revisions."""
    if not wording.model_of(ws):
        return {}
    newest: dict[str, LessonRevision] = {}
    for day in sorted(made):
        for rows in made[day]["lessons"].values():
            newest.update((row.lesson_id, row) for row in rows)
    done = wording.ask(ws, [newest[name] for name in sorted(newest)])
    for tables in made.values():
        for scope, rows in tables["lessons"].items():
            tables["lessons"][scope] = wording.worded(ws, rows)
    wording.keep(ws, done)
    refused = sum(done.refused.values())
    return {"worded": done.kept, "wordings_refused": refused, "model_failures": int(bool(done.why))}


def _vectors(
    table: ArrowTable, space: str, horizon: Day
) -> Iterator[tuple[ProjectKey, str, np.ndarray[Any, Any]]]:
    """(project, episode_id, float32 vector) of one space, in the order of the days."""
    kept = table.filter(
        (pc.field("space") == space) & (pc.field("day") <= dt.date.fromisoformat(horizon))
    ).combine_chunks()
    if not kept.num_rows:
        return
    vectors: Any = kept.column("vector").combine_chunks()
    flat = vectors.flatten().to_numpy(zero_copy_only=False)
    matrix = flat.astype(np.float32, copy=False).reshape(kept.num_rows, -1)
    places = zip(
        kept.column("project").to_pylist(), kept.column("episode_id").to_pylist(), strict=True
    )
    for (project, identifier), row in zip(places, matrix, strict=True):
        yield project, identifier, row


def _collect(made: Made, scope: ProjectKey, folded: Folded) -> None:
    for table in TABLES:
        for day, row in getattr(folded, table):
            cells = made.setdefault(day, {name: {} for name in TABLES})
            cells[table].setdefault(scope, []).append(row)


def _counts(cells: list[CellResult]) -> dict[str, int]:
    return {
        table: sum(cell.rows for cell in cells if cell.table == table and cell.changed)
        for table in TABLES
    }
