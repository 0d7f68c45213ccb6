"""Episodes, and the vectors that they are compared by."""

import dagster as dg

from everest_pipelines.defs.events import recorded, report_cells
from everest_pipelines.defs.partitions import CELLS
from everest_pipelines.defs.resources import NightRun


@dg.asset(partitions_def=CELLS, deps=["transcripts", "ledger"], kinds={"parquet"})
def episodes(
    context: dg.AssetExecutionContext, night: dg.ResourceParam[NightRun]
) -> dg.MaterializeResult:
    """A row is something worth remembering that happened at one moment.

    Sessions, errors, corrections, refusals, interruptions, surprises, notes. A day is made of the
    turns up to its end of every session that spoke on it, and stale when one of those changed. A
    red `quotes_verbatim` means that a quote is not what was said; a red `episodes_complete` names
    the days that are missing.
    """
    from everest_pipelines.night import derive

    result = night.keep(derive.episodes(night.ws, night.asked))
    context.log.info(f"episodes: {result.counts}")
    report_cells(context, night, result, "episodes")
    return recorded("episodes")


@dg.asset(partitions_def=CELLS, deps=["episodes"], kinds={"parquet", "numpy"})
def vectors(
    context: dg.AssetExecutionContext, night: dg.ResourceParam[NightRun]
) -> dg.MaterializeResult:
    """A row is the vector of an episode, in the space that is in use.

    Made of title and gist, of a correction of the person's words alone. Stale when the day's
    episodes changed or another space is used. A red `vectors_complete` names the missing days.
    """
    from everest_pipelines.night import derive

    result = night.keep(derive.vectors(night.ws, night.asked))
    report_cells(context, night, result, "vectors")
    return recorded("vectors")


ASSETS = [episodes, vectors]
