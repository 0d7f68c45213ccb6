"""The fold: all closed days become lessons, merges, predictions and their verifications."""

from collections.abc import Iterator

import dagster as dg

from everest_pipelines.defs.events import Reported, recorded, report_cells
from everest_pipelines.defs.partitions import CELLS
from everest_pipelines.defs.resources import NightRun, wordless
from everest_pipelines.defs.sleep import checks

_WORDS = {
    "lessons": (
        "A row is a revision of a lesson, on the day on which it changed; a lesson as of a day is"
        " its newest revision up to that day. Stale when an earlier day, or the ledger, changed."
        " A red `no_forbidden_visible` means that something rejected or replaced would be shown."
    ),
    "merges": (
        "A row is an alias: a lesson that was merged into another, with the reason. Merging is"
        " always from sources and can be taken back. Stale with `lessons`."
    ),
    "predictions": (
        "A row says that a lesson's matter comes up again within 14 days, and how likely that is."
        " Stale with `lessons`."
    ),
    "verifications": (
        "A row says whether a prediction came true, and by which episode. Stale with `lessons`."
    ),
}


@dg.multi_asset(
    specs=[
        dg.AssetSpec(
            table,
            partitions_def=CELLS,
            deps=["vectors", "episodes", "ledger"],
            kinds={"parquet", "scikitlearn"},
            description=words,
        )
        for table, words in _WORDS.items()
    ],
    check_specs=checks.LESSONS.specs,
)
def sleep(
    context: dg.AssetExecutionContext, night: dg.ResourceParam[NightRun]
) -> Iterator[Reported]:
    """Fold every day from the earliest stale one to the horizon, whatever days were asked for.

    The open day is never folded. Only cells whose content changed are written and reported.
    """
    from everest_pipelines.night.sleep import sleep as fold

    with wordless("sleep"):
        result = night.keep(fold(night.ws, night.horizon))
    context.log.info(f"sleep up to {night.horizon}: {result.counts}")
    for table in _WORDS:
        report_cells(context, night, result, table)
        yield recorded(table)
    yield from checks.LESSONS.run(night)


ASSETS = [sleep]
