"""A decision of the owner is published without waiting for the night."""

import contextlib

import dagster as dg

from everest_pipelines.defs import sensors
from everest_pipelines.defs.jobs import publish
from everest_pipelines.text.errors import BusyError

DECISIONS = ("review", "veto", "forget")  # what publishing applies on top of the fold


@dg.sensor(
    job=publish,
    default_status=dg.DefaultSensorStatus.RUNNING,
    minimum_interval_seconds=60,
    description=(
        "Asks for `publish` when the ledger holds a review, veto or forget rule that the last"
        " publication does not know. Notes are left to `transcript_sensor`, which finds their day"
        " stale; recalls and renders ask for nothing."
    ),
)
def ledger_sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
    """The newest decision becomes one run request, or none."""
    from everest_pipelines.lake import generations
    from everest_pipelines.lake.lock import held
    from everest_pipelines.night import edits, sensing
    from everest_pipelines.night.workspace import horizon_of
    from everest_pipelines.text import ledger

    ws = sensors.memory()
    # Whoever has the lock looks at the rendered files themselves before they publish.
    with contextlib.suppress(BusyError), held(ws.home, "ledger_sensor", wait=False):
        edits.take(ws)
    generation = generations.current(ws.home)
    entries = ledger.read(ws.home, DECISIONS).entries
    horizon = horizon_of(ws)
    decision = sensing.decisions(
        str(entries[-1]["id"]) if entries else "",
        published=generation.manifest.last_entry if generation else "",
        attempts=sensors.attempts_of(context.instance),
        busy=sensors.at_work(context.instance),
        horizon=horizon,
        now=sensors.now(),
    )
    return sensors.answer(context, ws, decision, "publish")
