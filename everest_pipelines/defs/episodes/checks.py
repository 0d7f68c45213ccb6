"""Is every quote what was said, and is every day there?"""

from typing import TYPE_CHECKING

import dagster as dg

from everest_pipelines.defs.checks import checks_of, days_verdict, named, verdict
from everest_pipelines.defs.resources import NightRun

if TYPE_CHECKING:
    from everest_pipelines.core.records import Day, Episode, ProjectKey, Turn


def quotes_verbatim(night: NightRun) -> dg.AssetCheckResult:
    """Red when a quote of a cell that this run wrote is not verbatim in its turn's text."""
    cells = [
        (one.day, one.project)
        for result in night.results
        if result.stage == "episodes"
        for one in result.cells
        if one.changed and one.rows
    ]
    looked = 0
    wrong: list[str] = []
    for day, project in cells:
        checked, bad = _misquoted(night, day, project)
        looked += checked
        wrong += bad
    return verdict(
        not wrong,
        f"All {looked} quotes of {len(cells)} changed cells are verbatim."
        if not wrong
        else f"{len(wrong)} of {looked} quotes are not what was said: {named(wrong)}."
        " A detector is wrong; derive the days again after an update: everest rebuild",
        quotes=looked,
        misquoted=len(wrong),
    )


def _misquoted(night: NightRun, day: "Day", project: "ProjectKey") -> tuple[int, list[str]]:
    """How many quotes of a cell were looked at, and the ids of the episodes that misquote.

    A quote is compared where its turn lies in the same cell; a revision on a later day repeats
    one that was compared before.
    """
    rows: list[Episode] = night.ws.lake.read_cell("episodes", day, project)
    turns: dict[str, Turn] = {
        turn.turn_id: turn for turn in night.ws.lake.read_cell("transcripts", day, project)
    }
    quoting = [row for row in rows if row.quote and row.turn_id in turns]
    return len(quoting), [
        row.episode_id for row in quoting if row.quote not in _words(turns[row.turn_id])
    ]


def _words(turn: "Turn") -> str:
    parts = [turn.text]
    for call in turn.tool_calls:
        parts += [call.input, call.output or ""]
    return "\n".join(parts)


def episodes_complete(night: NightRun) -> dg.AssetCheckResult:
    """Red when a day with turns or notes has no episodes stage, or one of other turns."""
    return _complete(night, "episodes")


def vectors_complete(night: NightRun) -> dg.AssetCheckResult:
    """Red when a day's episodes have no vectors, or vectors of other episodes."""
    return _complete(night, "vectors")


def _complete(night: NightRun, stage: str) -> dg.AssetCheckResult:
    from everest_pipelines.night import derive

    inputs = derive.Inputs(night.ws)
    expected = len(derive.wanted(inputs, stage))
    return days_verdict(stage, derive.stale_days(inputs, stage), expected)


EPISODES = checks_of("episodes", quotes_verbatim, episodes_complete)
VECTORS = checks_of("vectors", vectors_complete)
