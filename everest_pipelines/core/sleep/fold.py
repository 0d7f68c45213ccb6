"""The fold: a project's episodes, day after day, into lessons, merges and predictions.

Pure: the same rows come out whatever order the episodes are given in, and what is written on a day
depends on nothing later, so folding on from yesterday and folding everything anew are one thing.
"Now" is the end of the day being folded. Days on which nothing can change are not visited.
"""

from __future__ import annotations

import datetime as dt
import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from everest_pipelines.core.embed import lesson_kind_of
from everest_pipelines.core.records import (
    Day,
    Episode,
    LessonRevision,
    Merge,
    Micros,
    Prediction,
    ProjectKey,
    Verification,
)
from everest_pipelines.core.sleep.calibration import Calibration
from everest_pipelines.core.trust import Entry, concerns, in_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[Any]
else:
    Vector = Any


@dataclass(slots=True)
class Folded:
    """What the fold wrote, each row with the day that it belongs to, in (day, id) order."""

    lessons: list[tuple[Day, LessonRevision]] = field(default_factory=list[Any])
    merges: list[tuple[Day, Merge]] = field(default_factory=list[Any])
    predictions: list[tuple[Day, Prediction]] = field(default_factory=list[Any])
    verifications: list[tuple[Day, Verification]] = field(default_factory=list[Any])
    refused: list[tuple[Day, str, str]] = field(default_factory=list[Any])  # lesson_id, why
    unresolved: list[Entry] = field(default_factory=list[Any])  # entries that met no lesson
    waiting: int = 0  # unjoined episodes at the horizon
    days: int = 0  # visited


def fold(
    episodes: Sequence[tuple[Day, Episode]],
    vectors: Mapping[str, Vector],
    *,
    scope: ProjectKey,
    horizon: Day,
    day_end: Callable[[Day], Micros],
    entries: Sequence[Entry] = (),
    calibration: Calibration,
) -> Folded:
    """Folds one project's episodes up to the end of ``horizon``.

    An episode may come as several rows: from its day on, the later row replaces the content and is
    no further source. ``vectors`` are by episode_id, of the first row. ``day_end`` gives the
    exclusive end of a day (microseconds UTC). Rows and entries after the horizon are not looked at.
    Raises ValueError when an episode that can teach has no vector.
    """
    from everest_pipelines.core.sleep.project import Project

    rows: dict[Day, list[Episode]] = {}
    for day, episode in episodes:
        if day <= horizon and lesson_kind_of(episode) is not None:
            rows.setdefault(day, []).append(episode)
    own = [entry for entry in entries if concerns(entry, scope)]
    told = entries_by_day(own, horizon=horizon, day_end=day_end)
    project = Project(scope=scope, day_end=day_end, calibration=calibration, vectors=vectors)
    heap = sorted({*rows, *told})
    seen: set[Day] = set(heap)
    done = Folded()
    while heap:
        day = heapq.heappop(heap)
        for due in project.fold_day(day, _sorted(rows.get(day, ())), told.get(day, []), done):
            if due <= horizon and due not in seen:
                seen.add(due)
                heapq.heappush(heap, due)
        done.days += 1
    done.waiting = project.waiting
    done.unresolved = project.unresolved
    return done


def entries_by_day(
    entries: Iterable[Entry], *, horizon: Day, day_end: Callable[[Day], Micros]
) -> dict[Day, list[Entry]]:
    """The entries recorded before the end of the horizon, by day, in id order."""
    end = day_end(horizon)
    found: dict[Day, list[Entry]] = {}
    for entry in in_order(entries):
        at = int(entry.get("recorded_at", 0))
        if at < end:
            found.setdefault(day_of(at, day_end), []).append(entry)
    return found


def day_of(at: Micros, day_end: Callable[[Day], Micros]) -> Day:
    """The day that holds the instant ``at``, by the ends of the days."""
    guess = dt.datetime.fromtimestamp(at // 1_000_000, dt.UTC).date() - dt.timedelta(days=1)
    while day_end(guess.isoformat()) <= at:
        guess += dt.timedelta(days=1)
    return guess.isoformat()


def _sorted(rows: Iterable[Episode]) -> list[Episode]:
    """By id, the row that settled last at the end; equal rows in the order of their bytes."""
    return sorted(rows, key=lambda e: (e.episode_id, e.settled_at, msgspec.json.encode(e)))
