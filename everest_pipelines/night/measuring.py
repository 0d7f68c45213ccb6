"""The measures of any span of days, read from the lake, the ledger and the generations."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct

from everest_pipelines.core.measure import arms
from everest_pipelines.core.measure.intervals import Share, share
from everest_pipelines.core.measure.rates import Accuracy, Counted, Matters, accuracy, repeats
from everest_pipelines.core.records import Day, Episode, LessonRevision, Micros, Offer, ProjectKey
from everest_pipelines.lake.operational import FileRow
from everest_pipelines.night import published
from everest_pipelines.night.workspace import Workspace
from everest_pipelines.text import ledger

HOUR = 3_600_000_000


class Delegation(Struct, frozen=True):
    """One kind of action: how often it was offered, and what the person did with it.

    ``told_to_act``: asked and told to, with a correction; ``stopped``: acted and was refused.
    """

    action: str
    asked: int = 0
    approved: int = 0
    declined: int = 0
    told_to_act: int = 0
    stopped: int = 0


class Injected(Struct, frozen=True):
    """A lesson that was shown: to how many families, and in how many its matter followed."""

    lesson_id: str
    families: int
    followed: int


class Measures(Struct, kw_only=True):
    """What ``everest measure`` prints. Times in hours; every share with its interval."""

    since: Day
    until: Day
    project: ProjectKey = ""
    repeat_yourself: Share
    repeated_errors: Share
    by_day: list[Counted] = []
    predictions: Accuracy
    lessons: dict[str, int] = {}  # by state, as published
    themes: int = 0  # lessons that others were merged into
    forbidden_hits: int = 0
    machine_sessions: Share
    lag_hours: float | None = None  # median, from the end of a day to its first publication
    index_bytes_per_source_byte: float | None = None
    opportunities: dict[str, int] = {}  # by arm
    decisions: dict[str, int] = {}  # of hooks, by reason
    injected: list[Injected] = []
    hold_out: arms.Comparison
    withheld: arms.Comparison
    delegation: list[Delegation] = []


def measure(ws: Workspace, *, since: Day, until: Day, project: ProjectKey = "") -> Measures:
    """Everything between two days, both included; of one project, or of all."""
    days = frozenset(ws.calendar.days(since, until))
    rows = _Rows(ws, project)
    matters = Matters(rows.of("lessons"), rows.of("merges"))
    inside = [row for row in rows.placed("episodes") if row[0] in days]
    starts = {day: ws.calendar.day_start(day) for day, _, _ in inside}
    counted = repeats(inside, matters, starts)
    entries = [
        entry
        for entry in ledger.read(ws.home, ("recall",)).entries
        if ws.calendar.day_of(int(entry["recorded_at"])) in days
        and (not project or entry.get("project", project) == project)
    ]
    outcomes = _outcomes(entries, rows.of("episodes"), matters)
    generation = published.current(ws.home)
    shown = published.lessons(ws.home, generation) if generation else []
    shown = [one for one in shown if not project or one.scope == project]
    return Measures(
        since=since,
        until=until,
        project=project,
        repeat_yourself=_summed(counted, "repeat_yourself"),
        repeated_errors=_summed(counted, "repeated_errors"),
        by_day=counted,
        predictions=accuracy([row for day, _, row in rows.placed("verifications") if day in days]),
        lessons=dict(sorted(Counter(str(one.state) for one in shown).items())),
        themes=sum(bool(one.source_lesson_ids) for one in shown),
        forbidden_hits=_forbidden(
            ws, shown, ws.calendar.day_end(generation.manifest.horizon if generation else until)
        ),
        machine_sessions=_machines(ws),
        lag_hours=_lag(ws, days),
        index_bytes_per_source_byte=_index_share(ws),
        opportunities=dict(sorted(Counter(one.arm for one, _ in outcomes).items())),
        decisions=dict(sorted(Counter(str(entry.get("reason")) for entry in entries).items())),
        injected=_injected(outcomes),
        hold_out=arms.compare_hold_out(outcomes),
        withheld=arms.compare_withheld(outcomes),
        delegation=_delegation(
            [row for day, _, row in rows.placed("offers") if day in days],
            [row for _, _, row in inside],
        ),
    )


class _Rows:
    """The rows of derived tables, of one project or of all, read once."""

    def __init__(self, ws: Workspace, project: ProjectKey) -> None:
        self._ws = ws
        self._project = project
        self._read: dict[str, list[tuple[Day, ProjectKey, Any]]] = {}

    def placed(self, table: str) -> list[tuple[Day, ProjectKey, Any]]:
        if table not in self._read:
            self._read[table] = [
                row
                for row in self._ws.history.rows(table)
                if not self._project or row[1] == self._project
            ]
        return self._read[table]

    def of(self, table: str) -> list[Any]:
        return [row for _, _, row in self.placed(table)]


def _outcomes(
    entries: list[ledger.Entry], episodes: Iterable[Episode], matters: Matters
) -> list[tuple[arms.Opportunity, bool]]:
    times: dict[tuple[str, str], list[Micros]] = defaultdict(list)
    for episode in episodes:
        for lesson in matters.lessons_of(episode.episode_id):
            times[episode.family_id or episode.session_id, lesson].append(episode.occurred_at)
    found = arms.opportunities(entries)
    living = [
        arms.Opportunity(one.at, one.family_id, matters.living(one.lesson_id), one.arm)
        for one in found
    ]
    return arms.followed(living, times)


def _summed(counted: list[Counted], measure: str) -> Share:
    own = [one for one in counted if one.measure == measure]
    return share(sum(one.hits for one in own), sum(one.of for one in own))


def _forbidden(ws: Workspace, shown: list[LessonRevision], at: Micros) -> int:
    """Published lessons that a rejection or a tombstone forbids: must be none."""
    from everest_pipelines.core import trust

    entries = ledger.read(ws.home).entries
    allowed = {one.lesson_id for one in trust.visible(shown, entries, frozenset(), at=at)}
    return sum(one.lesson_id not in allowed and one.valid_to is None for one in shown)


def _machines(ws: Workspace) -> Share:
    """Sessions that no person led, of all that were read."""
    files: list[FileRow] = ws.lake.read_table("files")
    own = {row.session_id: row.machine for row in files if row.session_id}
    return share(sum(bool(machine) for machine in own.values()), len(own))


def _lag(ws: Workspace, days: frozenset[Day]) -> float | None:
    """Median hours from the end of a day to the first publication that knew it.

    Days that were over before the memory began are left out: history is imported, not late.
    """
    first: dict[Day, Micros] = {}
    began: Micros | None = None
    for entry in ledger.read(ws.home, ("publication",)).entries:
        at, horizon = int(entry["recorded_at"]), str(entry.get("horizon", ""))
        began = at if began is None else began
        first.setdefault(horizon, at)
    lags = sorted(
        (at - ws.calendar.day_end(day)) / HOUR
        for day, at in first.items()
        if day in days and began is not None and ws.calendar.day_end(day) >= began
    )
    return round(lags[len(lags) // 2], 3) if lags else None


def _index_share(ws: Workspace) -> float | None:
    """Bytes of the recall snapshot for each byte of transcript."""
    files: list[FileRow] = ws.lake.read_table("files")
    source = sum(row.size for row in files)
    index = ws.home.current / "recall.sqlite"
    return round(_bytes(index) / source, 6) if source and index.exists() else None


def _bytes(path: Path) -> int:
    return os.stat(path).st_size


def _injected(outcomes: list[tuple[arms.Opportunity, bool]]) -> list[Injected]:
    families: dict[str, dict[str, bool]] = defaultdict(dict)
    for one, hit in outcomes:
        if one.arm == arms.SHOWN:
            known = families[one.lesson_id].get(one.family_id, False)
            families[one.lesson_id][one.family_id] = known or hit
    return [
        Injected(name, len(of), sum(of.values()))
        for name, of in sorted(families.items(), key=lambda item: (-len(item[1]), item[0]))
    ]


def _delegation(offers: list[Offer], episodes: list[Episode]) -> list[Delegation]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for offer in offers:
        counts[offer.action]["asked"] += 1
        name = {"corrected": "told_to_act", "approved": "approved", "declined": "declined"}.get(
            str(offer.answer)
        )
        if name:
            counts[offer.action][name] += 1
    seen: set[str] = set()
    for episode in episodes:
        if episode.kind == "refusal" and episode.episode_id not in seen:
            seen.add(episode.episode_id)
            words = episode.title.split()
            counts[words[1] if words[:1] == ["Refused"] and words[1:] else "call"]["stopped"] += 1
    return [Delegation(action, **dict(found)) for action, found in sorted(counts.items())]
