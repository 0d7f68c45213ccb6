"""Transcripts and what is counted of them: the archive that everything else is derived from."""

from collections.abc import Iterator

import dagster as dg

from everest_pipelines.core.transcripts.registry import FORMATS
from everest_pipelines.defs.events import Reported, recorded, report_cells
from everest_pipelines.defs.partitions import CELLS
from everest_pipelines.defs.resources import NightRun, wordless
from everest_pipelines.defs.transcripts import checks

SHARED = {  # watched folders that no agent writes by itself
    "chats_dir": ("chats_folder", "people put exported chats and message arrays"),
    "inbox": ("inbox_folder", "programs drop files of events"),
}
FOLDERS = [
    dg.AssetSpec(
        key,
        description=(
            f"The folder in which {whose} (`{root}` in the settings). We only look and read; the"
            " agent deletes what is old, and that deletes nothing here."
        ),
        kinds={"json"},
    )
    for root, (key, whose) in {
        one.root: SHARED.get(
            one.root,
            (f"{one.name.replace('-', '_')}_folder", f"{one.agent} writes its transcripts"),
        )
        for one in FORMATS
    }.items()
]
LEDGER = dg.AssetSpec(
    "ledger",
    description=(
        "What people and machines decided: reviews, vetoes, notes, forget rules. Append-only, an"
        " input of the fold; no run ever changes it."
    ),
    kinds={"json"},
)


@dg.asset(
    partitions_def=CELLS, deps=FOLDERS, check_specs=checks.TRANSCRIPTS.specs, kinds={"parquet"}
)
def transcripts(
    context: dg.AssetExecutionContext, night: dg.ResourceParam[NightRun]
) -> Iterator[Reported]:
    """A row is a turn: what one speaker, person, agent or harness, said at one moment.

    The archive. It only grows: a file that its agent deletes stays here. Stale while a watched
    file is newer than its bookmark (`everest status` counts them). A red `files_read` means that
    a file was left behind, which costs only itself; a yellow `lines_quarantined` that some lines
    were kept unread.
    """
    from everest_pipelines.night.early import joined, read_newest_first
    from everest_pipelines.night.ingest import ingest
    from everest_pipelines.night.look import look

    # The many runs of a day leave a file alone while it is written; a night reads it all.
    quiet = night.settings.quiet_seconds if night.run.job_name == "ingest" else 0
    with wordless("ingest"):
        looked = look(night.ws, quiet_seconds=quiet)
        early = read_newest_first(night.ws, night.horizon, looked)
        if early is not None:
            context.log.info(f"published the newest days of a first import: {early.counts}")
            looked = look(night.ws, quiet_seconds=quiet)
        result = night.keep(joined(early, ingest(night.ws, looked)))
    context.log.info(f"transcripts: {result.counts}")
    report_cells(context, night, result, "transcripts")
    yield recorded("transcripts")
    yield from checks.TRANSCRIPTS.run(night)


@dg.multi_asset(
    specs=[
        dg.AssetSpec(
            "sessions",
            partitions_def=CELLS,
            deps=["transcripts"],
            kinds={"parquet"},
            description=(
                "A row is one session on one day: turns by speaker, calls, errors, refusals, and"
                " how often the agent waited for the person. Stale when a turn of the day changed."
                " A red `sessions_complete` names the days that are missing."
            ),
        ),
        dg.AssetSpec(
            "offers",
            partitions_def=CELLS,
            deps=["transcripts"],
            kinds={"parquet"},
            description=(
                "A row is a reply in which the agent offered to act, with the kind of action and"
                " what the person answered. Derived together with `sessions`, stale with it."
            ),
        ),
    ],
    check_specs=checks.SESSIONS.specs,
)
def sessions_and_offers(
    context: dg.AssetExecutionContext, night: dg.ResourceParam[NightRun]
) -> Iterator[Reported]:
    """Counts per session and day, and the offers that agents made."""
    from everest_pipelines.night.derive import sessions

    with wordless("sessions"):
        result = night.keep(sessions(night.ws, night.asked))
    for table in ("sessions", "offers"):
        report_cells(context, night, result, table)
        yield recorded(table)
    yield from checks.SESSIONS.run(night)


ASSETS = [*FOLDERS, LEDGER, transcripts, sessions_and_offers]
