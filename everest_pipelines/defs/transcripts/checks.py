"""Is everything read, and do we still understand what agents write?"""

from collections import Counter
from typing import TYPE_CHECKING

import dagster as dg

from everest_pipelines.defs.checks import checks_of, days_verdict, named, verdict
from everest_pipelines.defs.resources import NightRun

if TYPE_CHECKING:
    from everest_pipelines.lake.operational import FileRow

LARGE = 100_000  # bytes: of 573 files seen, every one this large that holds a talk holds turns
UNKNOWN_SHARE = 0.05  # of a file format's records; what is known to be unknown is below 0.01
UNKNOWN_LEAST = 200  # records, below which a share says nothing


def _files(night: NightRun) -> "list[FileRow]":
    rows: list[FileRow] = night.ws.lake.read_table("files")
    return rows


def files_read(night: NightRun) -> dg.AssetCheckResult:
    """Red when a file could not be read; it costs only itself and is tried again."""
    rows = _files(night)
    wrong = {row.path: row.error for row in rows if row.error}
    for result in night.results:
        if result.stage == "transcripts":
            wrong |= {failure.where: failure.what for failure in result.failures}
    if not wrong:
        return verdict(True, f"All {len(rows)} files were read.", files=len(rows))
    return verdict(
        False,
        f"{len(wrong)} of {len(rows)} files were left behind:"
        f" {named([f'{path} ({what})' for path, what in sorted(wrong.items())])}."
        " Mend the file or its permissions; it is tried again by itself, at once with:"
        " everest night",
        files=len(rows),
        left_behind=len(wrong),
    )


def lines_quarantined(night: NightRun) -> dg.AssetCheckResult:
    """Yellow when lines were kept unread: torn, not JSON, too long, of an unknown type."""
    rows = night.ws.lake.read_table("quarantine")
    reasons = Counter(row.reason.split(":")[0] for row in rows)
    counts = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
    places = sorted({f"{row.source_path}:{row.line}" for row in rows})
    return verdict(
        not rows,
        "No line is in quarantine."
        if not rows
        else f"{len(rows)} lines are kept unread ({counts}), among them {named(places)}. Nothing"
        ' else was lost. Look at them: everest sql "from quarantine"',
        warn=True,
        quarantined=len(rows),
    )


def record_types_known(night: NightRun) -> dg.AssetCheckResult:
    """Red when an agent writes record types that no reader knows: its format has drifted."""
    rows = _files(night)
    records = sum(row.records for row in rows)
    types: Counter[str] = Counter()
    for row in rows:
        types.update(dict(row.unknown))
    unknown = sum(types.values())
    share = unknown / records if records else 0.0
    drifted = unknown >= UNKNOWN_LEAST and share > UNKNOWN_SHARE
    kinds = f"{len(types)} unknown types" if types else "no unknown type"
    return verdict(
        not drifted,
        f"{unknown} of {records} records ({share:.1%}) are of {kinds}."
        + (
            " The agent's format has changed: update Everest; the records are kept and will be"
            " read from the lake then."
            if drifted
            else ""
        ),
        records=records,
        unknown=unknown,
        share=round(share, 6),
    )


def large_files_have_turns(night: NightRun) -> dg.AssetCheckResult:
    """Red when a large file gave no turn: green while losing data is the fault to avoid."""
    rows = _files(night)
    silent = sorted(
        row.path
        for row in rows
        if row.size >= LARGE and not row.turns and not row.machine and not row.error
    )
    return verdict(
        not silent,
        "Every large file gave turns."
        if not silent
        else f"{len(silent)} files of {LARGE // 1000} kB or more gave no turn: {named(silent)}."
        " Their format is probably new: update Everest, or keep the project out with"
        " everest ignore PATH",
        silent=len(silent),
    )


def sessions_complete(night: NightRun) -> dg.AssetCheckResult:
    """Red when a day with turns has no counts, or counts of other turns."""
    from everest_pipelines.night import derive

    inputs = derive.Inputs(night.ws)
    expected = len(derive.wanted(inputs, "sessions"))
    return days_verdict("sessions", derive.stale_days(inputs, "sessions"), expected)


TRANSCRIPTS = checks_of(
    "transcripts", files_read, lines_quarantined, record_types_known, large_files_have_turns
)
SESSIONS = checks_of("sessions", sessions_complete)
