"""Numbers of the night, one set a day of the horizon: they plot over time."""

from collections import Counter
from typing import TYPE_CHECKING

import dagster as dg

from everest_pipelines.defs.events import report
from everest_pipelines.defs.partitions import whole
from everest_pipelines.defs.resources import NightRun, wordless

if TYPE_CHECKING:
    from everest_pipelines.core.records import Day

WINDOW = 14  # days in the table by day


@dg.asset(
    deps=["published", whole("sessions"), whole("predictions"), whole("verifications")],
    kinds={"parquet"},
)
def measures(
    context: dg.AssetExecutionContext, night: dg.ResourceParam[NightRun]
) -> dg.MaterializeResult:
    """What was counted of the last closed day, and of the fortnight up to it.

    Sessions, turns, episodes by kind, predictions that came true. A red `nothing_left_behind` is
    the night's own verdict: it names what was left and the run ends failed, after all else.
    """
    horizon = night.horizon
    with wordless("measures"):
        counts = _counts(night, horizon)
        by_day = {day: _counts(night, day) for day in _window(night, horizon)}
        told = _predictions(night, horizon)
    return report(context, "measures", {"horizon": horizon, **counts, **told, "by_day": by_day})


def _predictions(night: NightRun, horizon: "Day") -> dict[str, object]:
    """Brier against the base rate, and the calibration table, of all that was resolved so far."""
    from everest_pipelines.core.sleep.predict import score

    resolved = night.ws.history.rows("verifications", horizon)
    scored = score(row for _, _, row in resolved)
    if scored is None:
        return {}
    table = ["| said | came | predictions |", "| --- | --- | --- |"]
    table += [f"| {band.said:.0%} | {band.came:.0%} | {band.count} |" for band in scored.bands]
    return {
        "brier": round(scored.brier, 4),
        "brier_of_base_rate": round(scored.base_brier, 4),
        "calibration": dg.MetadataValue.md("\n".join(table)),
    }


def _window(night: NightRun, horizon: "Day") -> "list[Day]":
    import datetime as dt

    first = dt.date.fromisoformat(horizon) - dt.timedelta(days=WINDOW - 1)
    return night.ws.calendar.days(first.isoformat(), horizon)


def _counts(night: NightRun, day: "Day") -> dict[str, int]:
    lake = night.ws.lake
    sessions = [row for _, _, row in lake.read("sessions", days=[day])]
    kinds = Counter(str(row.kind) for _, _, row in lake.read("episodes", days=[day]))
    outcomes = [row.outcome for _, _, row in lake.read("verifications", days=[day])]
    return {
        "sessions": len({row.session_id for row in sessions}),
        "turns": sum(row.human_turns + row.assistant_turns for row in sessions),
        "tool_errors": sum(row.tool_errors for row in sessions),
        "predictions_true": sum(outcomes),
        "predictions_false": len(outcomes) - sum(outcomes),
        **{f"episodes_{kind}": count for kind, count in sorted(kinds.items())},
    }


ASSETS = [measures]
