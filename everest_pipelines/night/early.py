"""A large first import shows its newest days first: a generation of them, then the rest is read.

The early generation is marked as partial. Nothing is compared with it and no gate protects what it
shows, so that the end is what a single pass would have made.
"""

from __future__ import annotations

from msgspec.structs import replace

from everest_pipelines.core.records import Day
from everest_pipelines.night import derive, published
from everest_pipelines.night.ingest import ingest
from everest_pipelines.night.look import Look
from everest_pipelines.night.publish import publish
from everest_pipelines.night.render import render
from everest_pipelines.night.sleep import sleep
from everest_pipelines.night.workspace import StageResult, Workspace

EARLY_DAYS = 30
# Older bytes from which it pays: reading them takes some ten seconds, an early generation two.
WORTH_BYTES = 256 << 20
_DAY_NS = 86_400_000_000_000


def newest_part(looked: Look, *, now_ns: int, worth: int) -> Look | None:
    """The files written to in the last 30 days of a look, or None when the others are small.

    The days count back from the newest file; one of the future is as new as ``now_ns``. ``worth``:
    bytes of the others that are not small.
    """
    if not looked.pending:
        return None
    newest = min(max(one.mtime_ns for one in looked.pending), now_ns)
    since = newest - EARLY_DAYS * _DAY_NS
    part = [one for one in looked.pending if one.mtime_ns >= since]
    older = sum(one.size for one in looked.pending if one.mtime_ns < since)
    return replace(looked, pending=part) if part and older >= worth else None


def read_newest_first(ws: Workspace, horizon: Day, looked: Look) -> StageResult | None:
    """Publish a generation of the newest days of a large first import; what was read of them.

    None, and nothing done, for a small import and for a memory that has a generation. The caller
    looks again and reads the rest.
    """
    if published.current(ws.home) is not None:
        return None
    part = newest_part(looked, now_ns=ws.now() * 1000, worth=WORTH_BYTES)
    if part is None:
        return None
    read = ingest(ws, part)
    for stage in (derive.sessions, derive.episodes, derive.vectors):
        stage(ws)
    sleep(ws, horizon)
    publish(ws, horizon, partial=True)
    render(ws)
    return read


def joined(first: StageResult | None, rest: StageResult) -> StageResult:
    """The result of a stage that worked in two parts; what failed in the first, the rest tried."""
    if first is None:
        return rest
    cells = {(one.table, one.day, one.project): one for one in first.cells}
    for one in rest.cells:
        earlier = cells.get((one.table, one.day, one.project))
        changed = one.changed or (earlier is not None and earlier.changed)
        cells[one.table, one.day, one.project] = replace(one, changed=changed)
    names = [*first.counts, *(name for name in rest.counts if name not in first.counts)]
    return StageResult(
        stage=rest.stage,
        cells=[cells[key] for key in sorted(cells)],
        counts={name: first.counts.get(name, 0) + rest.counts.get(name, 0) for name in names},
        failures=rest.failures,
        seconds=round(first.seconds + rest.seconds, 3),
    )
