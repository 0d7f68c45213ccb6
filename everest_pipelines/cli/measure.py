"""``everest measure``: does it help? Shares with their intervals, and no more than they carry."""

from __future__ import annotations

import argparse
import datetime as dt
from typing import TYPE_CHECKING

from everest_pipelines.cli import context
from everest_pipelines.text.errors import CallerError

if TYPE_CHECKING:
    from everest_pipelines.core.measure.intervals import Share
    from everest_pipelines.night.measuring import Measures
    from everest_pipelines.night.workspace import Workspace

WINDOW = 30  # days, unless asked otherwise


def run(arguments: argparse.Namespace) -> int:
    """Print the measures of a span of days; change nothing."""
    from msgspec import to_builtins

    from everest_pipelines.night.measuring import measure
    from everest_pipelines.night.published import current
    from everest_pipelines.night.workspace import horizon_of, open_workspace

    home, settings = context.opened()
    ws = open_workspace(home, settings)
    generation = current(home)
    until = _day(arguments.until) or (generation.manifest.horizon if generation else horizon_of(ws))
    first = dt.date.fromisoformat(until) - dt.timedelta(days=WINDOW - 1)
    since = _day(arguments.since) or first.isoformat()
    if since > until:
        raise CallerError(f"{since} is after {until}.", "everest measure --since DAY --until DAY")
    project = _project(ws, arguments.project) if arguments.project else ""
    found = measure(ws, since=since, until=until, project=project)
    if arguments.json:
        context.answer(to_builtins(found))
    else:
        _print(found)
    return 0


def _project(ws: Workspace, start: str) -> str:
    """The one project key that begins so. Raises CallerError for none and for several."""
    keys = sorted({cell.project for cell in ws.lake.cells("episodes")})
    found = [key for key in keys if key == start] or [key for key in keys if key.startswith(start)]
    if len(found) != 1:
        what = f"{len(found)} projects begin" if found else "No project begins"
        raise CallerError(f"{what} with {start}.", 'everest sql "select key from projects"')
    return found[0]


def _day(text: str | None) -> str:
    if not text:
        return ""
    try:
        return dt.date.fromisoformat(text).isoformat()
    except ValueError:
        raise CallerError(f"{text} is no day.", "everest measure --since 2026-05-01") from None


def _share(found: Share) -> str:
    if found.value is None or found.low is None or found.high is None:
        return "nothing to count"
    return (
        f"{found.hits} of {found.of}: {found.value:.1%} (95 %: {found.low:.1%} to {found.high:.1%})"
    )


def _print(found: Measures) -> None:
    print(f"{found.since} to {found.until}" + (f", {found.project}" if found.project else ""))
    known = found.predictions
    brier = "none resolved"
    if known.brier is not None and known.base_brier is not None:
        brier = (
            f"{known.resolved} resolved, {known.came_true} came true; Brier {known.brier:.3f},"
            f" base rate {known.base_brier:.3f}"
        )
    context.table(
        [
            ("said again", _share(found.repeat_yourself)),
            ("errors again", _share(found.repeated_errors)),
            ("predictions", brier),
            ("lessons", ", ".join(f"{n} {state}" for state, n in found.lessons.items()) or "none"),
            ("themes", str(found.themes)),
            ("forbidden shown", str(found.forbidden_hits)),
            ("machine sessions", _share(found.machine_sessions)),
            ("lag", "unknown" if found.lag_hours is None else f"{found.lag_hours:.1f} h"),
            (
                "opportunities",
                ", ".join(f"{n} {arm}" for arm, n in found.opportunities.items()) or "none yet",
            ),
        ]
    )
    for one in (found.hold_out, found.withheld):
        print(f"\n{one.estimand}:")
        print(f"  {one.claim}")
        if one.still_needed:
            print(f"  {one.still_needed} more in each arm until such a gap could be seen.")
    if found.delegation:
        print()
        rows: list[tuple[str, ...]] = [
            ("action", "asked", "approved", "declined", "told to act", "stopped")
        ]
        rows += [
            (
                one.action,
                *map(str, (one.asked, one.approved, one.declined, one.told_to_act, one.stopped)),
            )
            for one in found.delegation
        ]
        context.table(rows)
