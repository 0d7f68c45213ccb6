"""How the memory stands: per stage and day, and what was left behind."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from everest_pipelines.core.records import Day, moment
from everest_pipelines.lake.days import Days
from everest_pipelines.lake.operational import FileRow, QuarantineRow
from everest_pipelines.night import derive, edits, publish, published, review, sleep
from everest_pipelines.night.growth import growth, size_of
from everest_pipelines.night.look import look
from everest_pipelines.night.report import left_files, model_notes
from everest_pipelines.night.workspace import Failure, Workspace, horizon_of
from everest_pipelines.text import ledger

SHOWN_NIGHTS = 7


class StageStatus(Struct, kw_only=True):
    """One stage: days expected, days that are good, days that are stale or open."""

    stage: str
    expected: int = 0
    present: int = 0
    stale: list[Day] = []
    open: list[Day] = []
    rows: int = 0


class Status(Struct, kw_only=True):
    """The answer of ``everest status``."""

    home: str
    horizon: Day
    generation: str = ""
    generation_horizon: Day = ""
    last_good_night: str = ""
    stages: list[StageStatus] = []
    files: int = 0
    unread: int = 0
    oldest_unread: str = ""
    oldest_unread_at: str = ""
    quarantined: dict[str, int] = {}
    unknown_types: dict[str, int] = {}
    failures: list[Failure] = []
    notes: list[str] = []  # what is well enough, and still worth knowing
    lessons: int = 0
    event_log_bytes: int = 0
    event_log_growth: list[int] = []  # bytes in each of the last nights, the newest last
    home_bytes: int = 0

    @property
    def left_behind(self) -> bool:
        """Whether anything needs the owner (quarantined lines alone do not)."""
        return bool(self.failures) or any(stage.stale or stage.open for stage in self.stages)


def status(ws: Workspace) -> Status:
    """Look at everything, change nothing. Needs no lock."""
    horizon = horizon_of(ws)
    generation = published.current(ws.home)
    files: list[FileRow] = ws.lake.read_table("files")
    quarantined: list[QuarantineRow] = ws.lake.read_table("quarantine")
    looked = look(ws)
    result = Status(
        home=str(ws.home.root),
        horizon=horizon,
        stages=_stages(ws, generation.manifest.horizon if generation else horizon),
        files=len(files),
        unread=len(looked.pending),
        quarantined=dict(sorted(Counter(row.reason for row in quarantined).items())),
        unknown_types=_unknown(files),
        failures=[Failure(row.path, row.error) for row in left_files(files)]
        + list(looked.unreadable)
        + [Failure("rendered files", question) for question in edits.look(ws).questions]
        + [Failure("ledger", one) for one in review.unanswered(ws)],
        notes=model_notes(ws),
        event_log_bytes=size_of(ws.home.dagster),
        event_log_growth=growth(ws.home)[-SHOWN_NIGHTS:],
        home_bytes=size_of(ws.home.root),
    )
    if generation is not None:
        result.generation = generation.name
        result.generation_horizon = generation.manifest.horizon
        result.lessons = len(published.lessons(ws.home, generation))
    entries = ledger.read(ws.home, ("publication",)).entries
    if entries:
        result.last_good_night = moment(int(entries[-1]["recorded_at"])).isoformat()
    if looked.pending:
        oldest = min(looked.pending, key=lambda one: (one.mtime_ns, one.path))
        result.oldest_unread = oldest.path
        result.oldest_unread_at = moment(oldest.mtime_ns // 1000).isoformat()
    return result


def _stages(ws: Workspace, horizon: Day) -> list[StageStatus]:
    days = Days.load(ws.lake)
    inputs = derive.Inputs(ws)
    transcripts = days.rows("transcripts")
    closed = [row for row in transcripts if row.state == "closed"]
    lost = [row.day for row in closed if not days.intact(row)]  # a cell went, or is another's
    found = [
        StageStatus(
            stage="transcripts",
            expected=len(transcripts),
            present=len(closed) - len(lost),
            stale=lost,
            open=[row.day for row in transcripts if row.state == "open"],
            rows=sum(row.rows for row in transcripts),
        )
    ]
    for stage in derive.STAGES:
        expected = list(derive.wanted(inputs, stage))
        found.append(_stage(days, stage, expected, derive.stale_days(inputs, stage)))
    expected = list(sleep.input_hashes(ws, days, horizon))
    found.append(_stage(days, sleep.STAGE, expected, sleep.stale(ws, horizon)))
    if expected:
        behind = publish.is_behind(ws, horizon)
        stale = [horizon] if behind else []
        found.append(
            StageStatus(stage=publish.STAGE, expected=1, present=int(not behind), stale=stale)
        )
    return found


def _stage(days: Days, stage: str, expected: list[Day], stale: list[Day]) -> StageStatus:
    rows = days.rows(stage)
    return StageStatus(
        stage=stage,
        expected=len(expected),
        present=len(expected) - len(stale),
        stale=stale,
        open=[row.day for row in rows if row.state == "open"],
        rows=sum(row.rows for row in rows),
    )


def _unknown(files: list[FileRow]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for row in files:
        total.update(dict(row.unknown))
    return dict(sorted(total.items()))
