"""What keeps Dagster's own storage small: old ticks, old logs, and runs that nothing points to."""

import datetime as dt
import shutil
from pathlib import Path

import dagster as dg

from everest_pipelines.defs.processes import fail_dead_runs

KEPT_DAYS = 30  # runs younger than this always stay, for whoever asks what happened
LOG_DAYS = 14
RUNS_AT_ONCE = 50  # each asks once per cell it wrote, some 2 ms
_FINISHED = [
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
]


@dg.op(description="Prune ticks, compute logs, and runs whose every cell came again later.")
def prune(context: dg.OpExecutionContext) -> None:
    """Deleting a run removes its cells from the grid, so only runs that no cell rests on go."""
    now = dt.datetime.now(tz=dt.UTC)
    dead = fail_dead_runs(context.instance, but=context.run_id)
    runs = prune_runs(context.instance, before=now - dt.timedelta(days=KEPT_DAYS))
    ticks = prune_ticks(context.instance, before=now - dt.timedelta(days=LOG_DAYS))
    logs = prune_logs(context.instance, before=now - dt.timedelta(days=LOG_DAYS))
    context.log.info(
        f"{len(dead)} dead runs marked, {len(runs)} runs, {ticks} sensors' ticks"
        f" and {logs} logs pruned"
    )


def prune_runs(instance: dg.DagsterInstance, *, before: dt.datetime) -> list[str]:
    """Delete finished runs older than `before` that hold no cell's newest event."""
    records = instance.get_run_records(
        dg.RunsFilter(statuses=_FINISHED, updated_before=before), ascending=True
    )
    gone: list[str] = []
    for record in records:
        if len(gone) >= RUNS_AT_ONCE:
            break
        if not _is_needed(instance, record.dagster_run.run_id):
            instance.delete_run(record.dagster_run.run_id)
            gone.append(record.dagster_run.run_id)
    return gone


def prune_ticks(instance: dg.DagsterInstance, *, before: dt.datetime) -> int:
    """Purge old ticks of every sensor; returns for how many."""
    states = instance.all_instigator_state()
    for state in states:
        instance.purge_ticks(
            state.instigator_origin_id, state.selector_id, before.timestamp(), None
        )
    return len(states)


def prune_logs(instance: dg.DagsterInstance, *, before: dt.datetime) -> int:
    """Delete the compute logs of runs that are gone or older than `before`."""
    folder = Path(instance.storage_directory()).parent  # both lie in our one storage folder
    deleted = 0
    for logs in folder.glob("*/compute_logs"):
        old = logs.stat().st_mtime < before.timestamp()
        if old or instance.get_run_by_id(logs.parent.name) is None:
            shutil.rmtree(logs)
            deleted += 1
    return deleted


def _is_needed(instance: dg.DagsterInstance, run_id: str) -> bool:
    events = instance.get_records_for_run(
        run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION
    ).records
    for record in events:
        materialization = record.asset_materialization
        if materialization is None:
            continue
        partition = materialization.partition
        latest = instance.fetch_materializations(
            dg.AssetRecordsFilter(
                asset_key=materialization.asset_key,
                asset_partitions=[partition] if partition else None,
            ),
            limit=1,
        ).records
        if latest and latest[0].run_id == run_id:
            return True
    return False


@dg.job(
    description="Prune what Dagster keeps of ticks, logs and runs; the lake is not touched.",
    tags={"everest/night": "maintenance"},
)
def maintenance() -> None:
    """Once a day, after the night."""
    prune()
