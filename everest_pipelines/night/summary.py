"""What a night says of itself when it ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from everest_pipelines.core.records import Day, LessonRevision
from everest_pipelines.lake.days import Days
from everest_pipelines.lake.operational import QuarantineRow
from everest_pipelines.night.publish import Publication
from everest_pipelines.night.report import failures
from everest_pipelines.night.workspace import Failure, StageResult, Workspace


class Summary(Struct, kw_only=True):
    """The object that ``everest night --json`` prints."""

    sessions: int = 0
    turns: int = 0
    files: int = 0  # read this time
    episodes: dict[str, int] = {}  # by kind, all there are up to the horizon
    lessons: dict[str, int] = {}  # visible ones by state
    new: int = 0
    changed: int = 0
    merged: int = 0
    quarantined: int = 0
    seconds: dict[str, float] = {}  # by stage
    generation: str = ""
    generation_changed: bool = False
    horizon: Day = ""
    newest_day: Day = ""
    failures: list[Failure] = []
    blocked: list[str] = []
    strongest: list[str] = []
    why_nothing: str = ""

    @property
    def left_behind(self) -> bool:
        """Whether the exit code must say so."""
        return bool(self.failures or self.blocked)


def summary(ws: Workspace, results: Sequence[StageResult], published: Publication) -> Summary:
    """The sum of a night's stages and its publication."""
    kinds: Counter[str] = Counter()
    seen: set[str] = set()
    for day, _, row in ws.lake.read("episodes"):
        if day <= published.horizon and row.episode_id not in seen:
            seen.add(row.episode_id)
            kinds[str(row.kind)] += 1
    days = ws.lake.cells("transcripts")
    quarantined: list[QuarantineRow] = ws.lake.read_table("quarantine")
    files = next((r.counts.get("files", 0) for r in results if r.stage == "transcripts"), 0)
    left = [failure for result in results for failure in result.failures]
    known = {failure.where for failure in left}
    for sentence in failures(ws, published.horizon, ()):
        where, _, what = sentence.partition(" ")
        if where not in known and where not in ("stage", "gate"):
            left.append(Failure(where, what))
    return Summary(
        sessions=len({row.session_id for _, _, row in ws.lake.read("sessions")}),
        turns=sum(row.rows for row in Days.load(ws.lake).rows("transcripts")),
        files=files,
        episodes=dict(sorted(kinds.items())),
        lessons=published.by_state,
        new=published.new,
        changed=published.updated,
        merged=published.merged,
        quarantined=len(quarantined),
        seconds={result.stage: result.seconds for result in results}
        | {"published": published.seconds},
        generation=published.generation,
        generation_changed=published.changed,
        horizon=published.horizon,
        newest_day=max((cell.day for cell in days), default=""),
        failures=left,
        blocked=[f"{gate.gate} {gate.project}: {gate.sentence}" for gate in published.blocked],
        strongest=[_line(lesson) for lesson in _strongest(published.visible)],
        why_nothing="" if published.visible else _why(days),
    )


def _strongest(visible: Sequence[LessonRevision], most: int = 5) -> list[LessonRevision]:
    return sorted(visible, key=lambda one: (-one.strength, one.lesson_id))[:most]


def _line(lesson: LessonRevision) -> str:
    return lesson.text.splitlines()[0] if lesson.text else ""


def _why(days: Sequence[object]) -> str:
    if not days:
        return "No transcripts were found."
    return "Nothing that was said states a lasting rule, and nothing came up in a second session."
