"""What the three sensors share: earlier attempts, what is at work, and the request itself."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import dagster as dg

from everest_pipelines.core.records import EVERYWHERE
from everest_pipelines.defs.partitions import PROJECTS, range_tags
from everest_pipelines.defs.processes import fail_dead_runs
from everest_pipelines.defs.resources import ASKED, OUTCOME, STALE_ONLY, in_force

if TYPE_CHECKING:
    from everest_pipelines.night.sensing import Attempt, Decision
    from everest_pipelines.night.workspace import Workspace

_FINISHED = {
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
}
_AT_WORK = [status for status in dg.DagsterRunStatus if status not in _FINISHED]
WORKING_JOBS = frozenset({"ingest", "night", "publish"})


def now() -> int:
    """Microseconds UTC."""
    return time.time_ns() // 1000


def memory() -> "Workspace":
    """The memory for looking only: no lock is taken, nothing of the lake is written."""
    from everest_pipelines.night.workspace import open_workspace

    return open_workspace(*in_force())


def attempts_of(instance: dg.DagsterInstance) -> "Callable[[str], list[Attempt]]":
    """Earlier runs for a digest, oldest first."""
    from everest_pipelines.night.sensing import Attempt, Outcome

    def outcome(run: dg.DagsterRun) -> Outcome:
        if run.status not in _FINISHED:
            return Outcome.RUNNING
        if run.status is dg.DagsterRunStatus.SUCCESS:
            return Outcome.DONE
        return Outcome.BLOCKED if run.tags.get(OUTCOME) == "blocked" else Outcome.FAILED

    def find(digest: str) -> list[Attempt]:
        records = instance.get_run_records(dg.RunsFilter(tags={ASKED: digest}), ascending=True)
        return [
            Attempt(outcome(one.dagster_run), int((one.end_time or 0) * 1_000_000))
            for one in records
        ]

    return find


def at_work(instance: dg.DagsterInstance) -> str:
    """The run that works on the lake or waits to, named; "" when there is none.

    Runs of dead processes are marked failed first: the queue would wait for them for ever.
    """
    fail_dead_runs(instance)
    for record in instance.get_run_records(dg.RunsFilter(statuses=_AT_WORK)):
        if record.dagster_run.job_name in WORKING_JOBS:
            return f"the run {record.dagster_run.job_name} {record.dagster_run.run_id[:8]}"
    return ""


def answer(
    context: dg.SensorEvaluationContext,
    ws: "Workspace",
    decision: "Decision",
    job: str,
    *more: dg.RunRequest,
) -> dg.SensorResult:
    """A decision as a tick's result: new project keys, and one run over all projects or why none.

    The cursor is the decision's digest. `more` runs are asked for together with the first.
    """
    from everest_pipelines.night.projects import ProjectBook
    from everest_pipelines.night.sensing import missing_keys

    known = list(context.instance.get_dynamic_partitions(PROJECTS))
    keys = missing_keys([EVERYWHERE, *ProjectBook(ws.lake, ws.home).keys()], known)
    added = [dg.DynamicPartitionsDefinition(name=PROJECTS).build_add_request(keys)] if keys else []
    if not decision.ask:
        return dg.SensorResult(
            skip_reason=decision.why, dynamic_partitions_requests=added, cursor=decision.digest
        )
    run = dg.RunRequest(
        job_name=job,
        run_key=f"{job}:{decision.run_key}",
        tags={
            **range_tags(decision.first, decision.last, known + keys),
            ASKED: decision.digest,
            STALE_ONLY: "1",
        },
    )
    return dg.SensorResult(
        run_requests=[run, *more], dynamic_partitions_requests=added, cursor=decision.digest
    )
