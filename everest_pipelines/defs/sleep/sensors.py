"""A day that has closed is folded and published; so are closed days that became stale."""

import dagster as dg

from everest_pipelines.defs import sensors
from everest_pipelines.defs.jobs import maintenance, night


@dg.sensor(
    jobs=[night, maintenance],
    default_status=dg.DefaultSensorStatus.RUNNING,
    minimum_interval_seconds=60,
    description=(
        "Asks for one `night` when a day has closed since the last publication, or closed days are"
        " stale, and for `maintenance` with it. A red gate is not tried again without new input."
    ),
)
def night_sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
    """The state of the fold up to yesterday becomes one run request, or none."""
    from everest_pipelines.lake import generations
    from everest_pipelines.lake.days import Days
    from everest_pipelines.night import publish, sensing, sleep
    from everest_pipelines.night.workspace import horizon_of

    ws = sensors.memory()
    horizon = horizon_of(ws)
    days = Days.load(ws.lake)
    chain = sleep.input_hashes(ws, days, horizon)
    generation = generations.current(ws.home)
    decision = sensing.night(
        publish.incomplete(ws, days, horizon),
        horizon=horizon,
        state=chain[horizon][0] if horizon in chain else "",
        published=generation.manifest.horizon if generation else "",
        attempts=sensors.attempts_of(context.instance),
        busy=sensors.at_work(context.instance),
        now=sensors.now(),
    )
    daily = dg.RunRequest(job_name="maintenance", run_key=f"maintenance:{horizon}")
    return sensors.answer(context, ws, decision, "night", daily)
