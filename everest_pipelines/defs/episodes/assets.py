"""Episodes, and the vectors that they are compared by."""

from collections.abc import Iterator

import dagster as dg

from everest_pipelines.defs.checks import ending
from everest_pipelines.defs.episodes import checks
from everest_pipelines.defs.events import Reported, recorded, report_cells
from everest_pipelines.defs.partitions import CELLS
from everest_pipelines.defs.resources import NightRun, wordless


@dg.asset(
    partitions_def=CELLS,
    deps=["transcripts", "ledger"],
    check_specs=checks.EPISODES.specs,
    kinds={"parquet"},
)
def episodes(
    context: dg.AssetExecutionContext, night: dg.ResourceParam[NightRun]
) -> Iterator[Reported]:
    """A row is something worth remembering that happened at one moment.

    Sessions, errors, corrections, refusals, interruptions, surprises, notes. A day is made of the
    turns up to its end of every session that spoke on it, and stale when one of those changed. A
    red `quotes_verbatim` means that a quote is not what was said; a red `episodes_complete` names
    the days that are missing.
    """
    from everest_pipelines.night import derive

    with wordless("episodes"):
        result = night.keep(derive.episodes(night.ws, night.asked))
    context.log.info(f"episodes: {result.counts}")
    report_cells(context, night, result, "episodes")
    yield recorded("episodes")
    yield from checks.EPISODES.run(night)


@dg.asset(
    partitions_def=CELLS,
    deps=["episodes"],
    check_specs=[
        *checks.VECTORS.specs,
        dg.AssetCheckSpec(
            "nothing_left_behind",
            asset="vectors",
            description=(
                "Red when the run left a file or a day behind. An ingest ends failed with it, so"
                " that it is asked for again; a night goes on and says so at its own end."
            ),
        ),
    ],
    kinds={"parquet", "numpy"},
)
def vectors(
    context: dg.AssetExecutionContext, night: dg.ResourceParam[NightRun]
) -> Iterator[Reported]:
    """A row is the vector of an episode, in the space that is in use.

    Made of title and gist, of a correction of the person's words alone. Stale when the day's
    episodes changed or another space is used. A red `vectors_complete` names the missing days.
    """
    from everest_pipelines.night import derive

    with wordless("vectors"):
        result = night.keep(derive.vectors(night.ws, night.asked))
    report_cells(context, night, result, "vectors")
    yield recorded("vectors")
    yield from checks.VECTORS.run(night)
    yield from ending("vectors", night, frozenset({"ingest"}))


ASSETS = [episodes, vectors]
