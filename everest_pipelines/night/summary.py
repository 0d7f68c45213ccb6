"""What a night says of itself when it ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from everest_pipelines.core.records import Day, LessonRevision
from everest_pipelines.core.render.morning import OLD_IMPORT_DAYS
from everest_pipelines.lake.days import Days
from everest_pipelines.lake.operational import QuarantineRow
from everest_pipelines.night.publish import Publication
from everest_pipelines.night.render import RenderReport
from everest_pipelines.night.report import failures, model_notes, strongest_of_last_month
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
    removed: int = 0  # no longer shown: faded, merged, rejected
    quarantined: int = 0
    seconds: dict[str, float] = {}  # by stage
    generation: str = ""
    generation_changed: bool = False
    horizon: Day = ""
    newest_day: Day = ""
    failures: list[Failure] = []
    blocked: list[str] = []
    notes: list[str] = []  # of models that did not answer: no failure
    newest_age_days: int = 0  # from the newest record to the horizon
    strongest: list[str] = []  # of the visible; of an old import, of its last month
    why_nothing: str = ""

    @property
    def is_old(self) -> bool:
        """Whether the newest record is so old that ``strongest`` are the lessons of its time."""
        return self.newest_age_days >= OLD_IMPORT_DAYS

    @property
    def left_behind(self) -> bool:
        """Whether the exit code must say so."""
        return bool(self.failures or self.blocked)


def summary(
    ws: Workspace,
    results: Sequence[StageResult],
    published: Publication,
    rendered: RenderReport | None = None,
) -> Summary:
    """The sum of a night's stages, its publication and what was written for the agents."""
    kinds: Counter[str] = Counter()
    seen: set[str] = set()
    for day, _, row in ws.history.rows("episodes"):
        if day <= published.horizon and row.episode_id not in seen:
            seen.add(row.episode_id)
            kinds[str(row.kind)] += 1
    days = ws.lake.cells("transcripts")
    quarantined: list[QuarantineRow] = ws.lake.read_table("quarantine")
    files = next((r.counts.get("files", 0) for r in results if r.stage == "transcripts"), 0)
    left = [failure for result in results for failure in result.failures]
    left += rendered.failures if rendered else []
    known = {failure.where for failure in left}
    for sentence in failures(ws, published.horizon, ()):
        where, _, what = sentence.partition(" ")
        if where not in known and where not in ("stage", "gate"):
            left.append(Failure(where, what))
    newest = max((cell.day for cell in days), default="")
    age = len(ws.calendar.days(newest, published.horizon)) - 1 if newest else 0
    old = age >= OLD_IMPORT_DAYS
    strongest = (
        [one.text for one in strongest_of_last_month(ws, newest, published.visible)]
        if old
        else [lesson.text for lesson in _strongest(published.visible)]
    )
    return Summary(
        sessions=len({row.session_id for _, _, row in ws.history.rows("sessions")}),
        turns=sum(row.rows for row in Days.load(ws.lake).rows("transcripts")),
        files=files,
        episodes=dict(sorted(kinds.items())),
        lessons=published.by_state,
        new=published.new,
        changed=published.updated,
        merged=published.merged,
        removed=published.removed,
        quarantined=len(quarantined),
        seconds={result.stage: result.seconds for result in results}
        | {"published": published.seconds},
        generation=published.generation,
        generation_changed=published.changed,
        horizon=published.horizon,
        newest_day=newest,
        newest_age_days=max(age, 0),
        failures=left,
        blocked=[f"{gate.gate} {gate.project}: {gate.sentence}" for gate in published.blocked],
        notes=model_notes(ws),
        strongest=[text.splitlines()[0] for text in strongest if text],
        why_nothing="" if published.visible else _why(newest, age),
    )


def _strongest(visible: Sequence[LessonRevision], most: int = 5) -> list[LessonRevision]:
    return sorted(visible, key=lambda one: (-one.strength, one.lesson_id))[:most]


def _why(newest: Day, age: int) -> str:
    if not newest:
        return "No transcripts were found."
    if age >= OLD_IMPORT_DAYS:
        return (
            f"The newest record is of {newest}, {age} days before the horizon: what it taught has"
            " faded since and is shown again as soon as it comes up again."
        )
    return "Nothing that was said states a lasting rule, and nothing came up in a second session."
