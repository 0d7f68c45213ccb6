"""Is everything read, and do we still understand what agents write?"""

import re
from collections import Counter
from typing import TYPE_CHECKING

import dagster as dg

from everest_pipelines.defs.checks import checks_of, days_verdict, named, verdict
from everest_pipelines.defs.resources import NightRun

if TYPE_CHECKING:
    from everest_pipelines.lake.operational import FileRow

LARGE = 100_000  # bytes: of 573 files seen, every one this large that holds a talk holds turns
UNKNOWN_SHARE = 0.05  # of a file format's records; what is known to be unknown is below 0.01
UNKNOWN_LEAST = 200  # records of a format, below which a share says nothing
UNKNOWN_OF_A_FILE = 20  # the same of one file: a new version's first session is told at once
MACHINE_SHARE = 0.5  # of sessions; of the 123 shared ones under 0.05 are machines'
MACHINES_LEAST = 10
_NAME = re.compile(r"[\w:.-]{1,60}")  # a type's name and no words


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
    unknown = sum(count for row in rows for _, count in row.unknown)
    drifted = _drifted(rows)
    types = Counter[str]()
    for row in drifted:
        types.update(dict(row.unknown))
    share = unknown / records if records else 0.0
    sentence = f"{unknown} of {records} records ({share:.1%}) are of unknown types."
    if drifted:
        names = [name if _NAME.fullmatch(name) else "(odd)" for name, _ in types.most_common(9)]
        sentence += (
            f" The format has changed in {named(sorted(row.path for row in drifted))}: types"
            f" {', '.join(names)}. Update Everest; the records are kept and will be read from the"
            " lake then."
        )
    return verdict(
        not drifted,
        sentence,
        records=records,
        unknown=unknown,
        share=round(share, 6),
        drifted=len(drifted),
        **_counts(rows),
    )


def _counts(rows: "list[FileRow]") -> dict[str, int]:
    """Files, turns (of events: notes) and unknown records of each format, for the metadata."""
    counts: Counter[str] = Counter()
    for row in rows:
        if row.format:
            counts[f"{row.format}_files"] += 1
            counts[f"{row.format}_turns"] += row.turns or row.events
            counts[f"{row.format}_unknown"] += sum(count for _, count in row.unknown)
    return dict(sorted(counts.items()))


def _drifted(rows: "list[FileRow]") -> "list[FileRow]":
    """Files with too many unknown records: by themselves, or together with their format's."""
    formats: dict[str, list[FileRow]] = {}
    for row in rows:
        formats.setdefault(row.format, []).append(row)
    found: dict[str, FileRow] = {}
    for group in formats.values():
        parts = [([row], UNKNOWN_OF_A_FILE) for row in group]
        for part, least in [*parts, (group, UNKNOWN_LEAST)]:
            unknown = sum(count for row in part for _, count in row.unknown)
            if unknown >= least and unknown > UNKNOWN_SHARE * sum(row.records for row in part):
                found.update((row.path, row) for row in part if row.unknown)
    return list(found.values())


def large_files_have_turns(night: NightRun) -> dg.AssetCheckResult:
    """Red when a large file gave no turn: green while losing data is the fault to avoid."""
    rows = _files(night)
    silent = sorted(
        row.path
        for row in rows
        if row.size >= LARGE and not (row.turns or row.events) and not row.machine and not row.error
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


def machine_sessions(night: NightRun) -> dg.AssetCheckResult:
    """Yellow when most sessions are machines': a tool fills the watched folder with its own calls.

    They are read and counted, and nothing in them counts as a person's word.
    """
    rows = [row for row in _files(night) if row.turns]
    led = {row.session_id for row in rows if not row.machine}
    reasons = Counter(
        {row.session_id: row.machine for row in rows if row.session_id not in led}.values()
    )
    machines, sessions = sum(reasons.values()), len({row.session_id for row in rows})
    share = machines / sessions if sessions else 0.0
    kinds = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
    many = machines >= MACHINES_LEAST and share > MACHINE_SHARE
    return verdict(
        not many,
        f"{machines} of {sessions} sessions ({share:.0%}) are machines'"
        + (f" ({kinds})" if kinds else "")
        + " and left out of what persons said."
        + (" Keep a tool's folder out altogether with: everest ignore PATH" if many else ""),
        warn=True,
        machines=machines,
        sessions=sessions,
        share=round(share, 6),
    )


def sessions_complete(night: NightRun) -> dg.AssetCheckResult:
    """Red when a day with turns has no counts, or counts of other turns."""
    from everest_pipelines.night import derive

    inputs = derive.Inputs(night.ws)
    expected = len(derive.wanted(inputs, "sessions"))
    return days_verdict("sessions", derive.stale_days(inputs, "sessions"), expected)


TRANSCRIPTS = checks_of(
    "transcripts",
    files_read,
    lines_quarantined,
    record_types_known,
    large_files_have_turns,
    machine_sessions,
)
SESSIONS = checks_of("sessions", sessions_complete)
