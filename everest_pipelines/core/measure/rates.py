"""How often the same thing had to be said, or went wrong, again: by day and project.

A correction counts as a repeat when a lesson that was visible before that day held its matter: the
episode joined the lesson (or one that was merged into it), and a visible revision of either is
older than the day. History that was imported at once counts as if each night had been run in its
time, so rates of the past and of now mean the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from everest_pipelines.core.records import (
    VISIBLE_STATES,
    Day,
    Episode,
    EpisodeKind,
    LessonRevision,
    Merge,
    Micros,
    ProjectKey,
    Verification,
)

CORRECTING = frozenset({EpisodeKind.CORRECTION, EpisodeKind.REFUSAL})
Rows = Iterable[tuple[Day, ProjectKey, Episode]]


class Counted(Struct, frozen=True, order=True):
    """One number of one day and project: ``hits`` of ``of``, or a plain ``value``."""

    day: Day
    project: ProjectKey
    measure: str
    hits: int = 0
    of: int = 0
    value: float | None = None


class Matters:
    """Which lesson an episode belongs to, and since when that lesson could be seen."""

    def __init__(self, revisions: Iterable[LessonRevision], merges: Iterable[Merge]) -> None:
        self._into = {row.old_id: row.new_id for row in merges}
        self._of: dict[str, set[str]] = defaultdict(set)
        self._visible: dict[str, Micros] = {}
        for row in revisions:
            for name in row.source_episode_ids:
                self._of[name].add(row.lesson_id)
            if row.state in VISIBLE_STATES:
                known = self._visible.get(row.lesson_id, row.valid_from)
                self._visible[row.lesson_id] = min(known, row.valid_from)
        for old in list(self._visible):
            kept = self.living(old)
            self._visible[kept] = min(
                self._visible[old], self._visible.get(kept, self._visible[old])
            )

    def living(self, lesson_id: str) -> str:
        """The lesson that goes on under this id."""
        seen: set[str] = set()
        while lesson_id in self._into and lesson_id not in seen:
            seen.add(lesson_id)
            lesson_id = self._into[lesson_id]
        return lesson_id

    def lessons_of(self, episode_id: str) -> set[str]:
        """The living lessons that hold an episode."""
        return {self.living(name) for name in self._of.get(episode_id, ())}

    def held_before(self, episode_id: str, at: Micros) -> bool:
        """Whether a lesson visible before ``at`` holds this episode's matter."""
        return any(self._visible.get(name, at) < at for name in self.lessons_of(episode_id))


def repeats(episodes: Rows, matters: Matters, day_start: Mapping[Day, Micros]) -> list[Counted]:
    """``repeat_yourself`` of corrections and ``repeated_errors`` of errors, by day and project.

    ``day_start``: the first microsecond of each day that has episodes. A later row of an episode
    (its fix) does not count again.
    """
    counts: dict[tuple[Day, ProjectKey, str], list[int]] = defaultdict(lambda: [0, 0])
    seen: set[str] = set()
    for day, project, episode in episodes:
        name = _measure_of(episode)
        if name is None or episode.episode_id in seen:
            continue
        seen.add(episode.episode_id)
        count = counts[day, project, name]
        count[0] += matters.held_before(episode.episode_id, day_start[day])
        count[1] += 1
    return sorted(Counted(*key, hits=hits, of=of) for key, (hits, of) in counts.items())


def _measure_of(episode: Episode) -> str | None:
    if episode.kind in CORRECTING and episode.quote:
        return "repeat_yourself"
    return "repeated_errors" if episode.kind is EpisodeKind.ERROR else None


class Accuracy(Struct, frozen=True):
    """How predictions turned out: Brier score, that of the base rate, and calibration by tenths.

    The base rate of a prediction is the share that came true among those resolved before it (a
    half at first), so that it could have been known.
    """

    resolved: int
    came_true: int
    brier: float | None
    base_brier: float | None
    tenths: tuple[tuple[float, int, float], ...] = ()  # (mean probability, how many, share true)


def accuracy(verifications: Sequence[Verification]) -> Accuracy:
    """Over verifications, in the order of the day of resolution."""
    done = sorted(verifications, key=lambda row: (row.resolved_on, row.prediction_id))
    if not done:
        return Accuracy(0, 0, None, None)
    total = base_total = 0.0
    true = 0
    cells: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    today, before, before_true = "", 0, 0
    for number, row in enumerate(done):
        if row.resolved_on != today:
            today, before, before_true = row.resolved_on, number, true
        base = (before_true + 1) / (before + 2)
        total += (row.probability - row.outcome) ** 2
        base_total += (base - row.outcome) ** 2
        true += row.outcome
        cells[min(9, int(row.probability * 10))].append((row.probability, row.outcome))
    tenths = tuple(
        (
            round(sum(p for p, _ in cell) / len(cell), 4),
            len(cell),
            round(sum(hit for _, hit in cell) / len(cell), 4),
        )
        for _, cell in sorted(cells.items())
    )
    return Accuracy(
        len(done), true, round(total / len(done), 6), round(base_total / len(done), 6), tenths
    )
