"""What a run tells Dagster: one event for each cell that changed, and no other.

A run covers a range of days and all projects, most of whose cells are empty. Dagster would record a
materialization for every one of them; the result that `recorded` returns records none, and the
cells with rows are logged one by one (about 5 ms and 6 KB each). Metadata are numbers and digests:
no text of a transcript may enter the instance.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import dagster as dg

from everest_pipelines.defs.partitions import cell, register_projects
from everest_pipelines.defs.resources import NightRun

if TYPE_CHECKING:
    from everest_pipelines.core.records import Day, ProjectKey
    from everest_pipelines.lake.lake import CellResult
    from everest_pipelines.night.workspace import StageResult

# Dagster's own mark for an output whose function reported its events itself; a test holds that it
# still works, and the version is pinned below 1.14.
_REPORTED = {"__source_asset_observation__": True}
# A job with this tag plans no materialization either, so that a failed run reddens no empty cell.
DEFERRED = {"dagster/defer_asset_events": "true"}
# Cells that have rows and no event (a run was killed, or worked outside of Dagster) get one, the
# newest first and so many a run and table: 2.5 s at most.
MENDED = 500


Reported = dg.MaterializeResult | dg.AssetCheckResult


def recorded(key: str | None = None) -> dg.MaterializeResult:
    """The result of an asset that reported its own events."""
    return dg.MaterializeResult(asset_key=key, metadata=_REPORTED)


def report_cells(
    context: dg.AssetExecutionContext, night: NightRun, result: "StageResult", table: str
) -> None:
    """Log one materialization for each cell of `table` that this run changed or was asked for."""
    asked = night.asked
    cells: dict[tuple[Day, ProjectKey], CellResult] = {
        (one.day, one.project): one
        for one in result.cells
        if one.table == table and (one.changed or (asked is not None and one.day in asked))
    }
    metadata = {
        place: {"rows": one.rows, "bytes": one.bytes, "sha256": one.sha256}
        for place, one in cells.items()
    }
    metadata |= _unreported(context, night, result.stage, table, metadata)
    if not metadata:
        return
    register_projects(context.instance, night.projects())
    for (day, project), numbers in sorted(metadata.items()):
        context.log_event(
            dg.AssetMaterialization(asset_key=table, partition=cell(day, project), metadata=numbers)
        )


def report(
    context: dg.AssetExecutionContext, key: str, metadata: Mapping[str, object]
) -> dg.MaterializeResult:
    """Log the materialization of an unpartitioned asset."""
    context.log_event(dg.AssetMaterialization(asset_key=key, metadata=dict(metadata)))
    return recorded(key)


def _unreported(
    context: dg.AssetExecutionContext,
    night: NightRun,
    stage: str,
    table: str,
    known: Iterable[tuple["Day", "ProjectKey"]],
) -> dict[tuple["Day", "ProjectKey"], dict[str, object]]:
    from everest_pipelines.lake.days import Days

    told = {str(key) for key in context.instance.get_materialized_partitions(dg.AssetKey(table))}
    told |= {f"{day}|{project}" for day, project in known}
    there = [
        ((row.day, one.project), one)
        for row in Days.load(night.ws.lake).rows(stage)
        for one in row.cells
        if one.table == table and one.rows and f"{row.day}|{one.project}" not in told
    ]
    newest = sorted(there, key=lambda one: one[0], reverse=True)[:MENDED]
    return {
        place: {"rows": one.rows, "bytes": one.bytes, "sha256": one.sha256} for place, one in newest
    }
