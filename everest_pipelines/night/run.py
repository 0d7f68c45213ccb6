"""The chain of a night as plain function calls: what the Dagster job does, without Dagster.

Tests and benchmarks run it; the owner's nights go through the job, so that the UI shows them.
"""

from __future__ import annotations

from collections.abc import Callable

from everest_pipelines.core.records import Day
from everest_pipelines.lake import lock
from everest_pipelines.night import derive
from everest_pipelines.night.early import joined, read_newest_first
from everest_pipelines.night.ingest import ingest
from everest_pipelines.night.look import look
from everest_pipelines.night.publish import Publication, publish
from everest_pipelines.night.render import render
from everest_pipelines.night.sleep import sleep
from everest_pipelines.night.workspace import StageResult, Workspace, horizon_of

STEPS: tuple[Callable[[Workspace], StageResult], ...] = (
    derive.sessions,
    derive.episodes,
    derive.vectors,
)


def run(ws: Workspace, horizon: Day | None = None) -> tuple[list[StageResult], Publication]:
    """Bring every day up to ``horizon`` (the last closed day by default) and publish.

    Takes the lake's lock and waits for it.
    """
    through = horizon or horizon_of(ws)
    with lock.held(ws.home, "night"):
        looked = look(ws)
        early = read_newest_first(ws, through, looked)
        results = [joined(early, ingest(ws, None if early else looked))]
        results += [step(ws) for step in STEPS]
        results.append(sleep(ws, through))
        published = publish(ws, through)
        render(ws)
    return results, published
