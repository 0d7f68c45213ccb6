"""Is every closed day folded, and is nothing forbidden among what would be shown?"""

import dagster as dg

from everest_pipelines.defs.checks import checks_of, days_verdict, named, verdict
from everest_pipelines.defs.resources import NightRun


def days_folded(night: NightRun) -> dg.AssetCheckResult:
    """Red when a closed day is not folded, or was folded from other episodes or decisions."""
    from everest_pipelines.lake.days import Days
    from everest_pipelines.night import sleep

    ws = night.ws
    expected = len(sleep.input_hashes(ws, Days.load(ws.lake), night.horizon))
    return days_verdict("sleep", sleep.stale(ws, night.horizon), expected)


def no_forbidden_visible(night: NightRun) -> dg.AssetCheckResult:
    """Red when a rejected, retired, superseded or unproven lesson is among the visible."""
    from everest_pipelines.core import trust
    from everest_pipelines.core.records import VISIBLE_STATES
    from everest_pipelines.recall import overlay
    from everest_pipelines.text import ledger

    ws = night.ws
    entries = ledger.read(ws.home).entries
    revisions = [row for day, _, row in ws.lake.read("lessons") if day <= night.horizon]
    at = ws.calendar.day_end(night.horizon)
    visible = trust.visible(revisions, entries, overlay.hidden(ws.home), at=at)
    buried = {scope: trust.tombstones(entries, scope=scope) for scope in {v.scope for v in visible}}
    wrong = sorted(
        one.lesson_id[:8]
        for one in visible
        if one.state not in VISIBLE_STATES or one.value_key in buried[one.scope]
    )
    return verdict(
        not wrong,
        f"None of {len(visible)} visible lessons is forbidden."
        if not wrong
        else f"{len(wrong)} lessons would be shown though they are forbidden: {named(wrong)}."
        " They are held back by the gate `forbidden`; hide one for good: everest wrong ID",
        visible=len(visible),
        forbidden=len(wrong),
    )


LESSONS = checks_of("lessons", days_folded, no_forbidden_visible)
