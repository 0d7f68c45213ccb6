"""New and grown transcripts are read without anyone asking."""

import dagster as dg

from everest_pipelines.defs import sensors
from everest_pipelines.defs.jobs import ingest


def transcript_sensor(minutes: int) -> dg.SensorDefinition:
    """The sensor that looks every so many minutes."""

    @dg.sensor(
        name="transcript_sensor",
        job=ingest,
        default_status=dg.DefaultSensorStatus.RUNNING,
        minimum_interval_seconds=max(minutes, 1) * 60,
        description=(
            "Looks at the watched folders, by stat alone, and asks for one `ingest` over the days"
            " touched. A file that is still being written is left for the next look. A failed run"
            " is asked for again after a growing pause."
        ),
    )
    def look_for_transcripts(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        from everest_pipelines.night import derive, sensing
        from everest_pipelines.night.look import look

        ws = sensors.memory()
        inputs = derive.Inputs(ws)
        decision = sensing.transcripts(
            look(ws, quiet_seconds=ws.settings.quiet_seconds),
            [(stage, day) for stage in derive.STAGES for day in derive.stale_days(inputs, stage)],
            attempts=sensors.attempts_of(context.instance),
            busy=sensors.at_work(context.instance),
            day_of=ws.calendar.day_of,
            now=sensors.now(),
        )
        return sensors.answer(context, ws, decision, "ingest")

    return look_for_transcripts
