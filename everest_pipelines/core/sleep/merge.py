"""Lessons that turned out to be one: average linkage from the same sums, always from sources.

Only pairs with a lesson that changed today are looked at: the others were kept apart before, on
the same sums.
"""

from __future__ import annotations

from collections.abc import Iterable

from everest_pipelines.core.records import State
from everest_pipelines.core.sleep.join import Sums
from everest_pipelines.core.sleep.lesson import Lesson, apart, resum

_CLOSED = frozenset({State.REJECTED, State.RETIRED, State.SUPERSEDED})


def merge(changed: Iterable[Lesson], sums: Sums, cut: float) -> list[tuple[Lesson, Lesson]]:
    """Merges until no pair is left: (old, the one that goes on), in the order done."""
    done: list[tuple[Lesson, Lesson]] = []
    waiting = {lesson.lesson_id: lesson for lesson in changed}
    while True:
        best = _best_pair(waiting, sums, cut)
        if best is None:
            return done
        kept, gone = _order(*best)
        absorb(kept, gone)
        sums.put(kept)
        waiting.pop(gone.lesson_id, None)
        waiting[kept.lesson_id] = kept
        done.append((gone, kept))


def absorb(kept: Lesson, gone: Lesson) -> None:
    """``kept`` takes the sources of ``gone``; their rows keep what each was."""
    for source in gone.ordered():
        kept.put(source)
    kept.total = resum(kept.ordered())
    kept.merged.extend([gone.lesson_id, *gone.merged])
    kept.recalls.extend(gone.recalls)
    for family, at in gone.shown_to.items():
        kept.shown_to[family] = min(at, kept.shown_to.get(family, at))
    if kept.decision is None:
        kept.decision = gone.decision
    kept.history.tally.hits += gone.history.tally.hits
    kept.history.tally.tries += gone.history.tally.tries
    kept.history.open.extend(gone.history.open)
    gone.history.open = []
    gone.into = kept.lesson_id


def _best_pair(waiting: dict[str, Lesson], sums: Sums, cut: float) -> tuple[Lesson, Lesson] | None:
    import numpy as np

    best: tuple[float, str, str] | None = None
    pair: tuple[Lesson, Lesson] | None = None
    for lesson in waiting.values():
        if not _mergeable(lesson):
            continue
        scores = sums.links(lesson)
        for column in np.flatnonzero(scores >= cut).tolist():
            other = sums.lessons[column]
            if other is lesson or not _mergeable(other):
                continue
            first, second = sorted((lesson.lesson_id, other.lesson_id))
            rank = (-float(scores[column]), first, second)
            if (best is None or rank < best) and _may_merge(lesson, other):
                best, pair = rank, (lesson, other)
    return pair


def _mergeable(lesson: Lesson) -> bool:
    # what stands near a rejected lesson waits for the person: its source was rejected once
    return not lesson.into and lesson.state not in _CLOSED and not lesson.near_rejected


def _may_merge(a: Lesson, b: Lesson) -> bool:
    if a.decision is not None and b.decision is not None:
        return False  # the person made both
    return all(apart(one, other) is None for one in a.signs for other in b.signs)


def _order(a: Lesson, b: Lesson) -> tuple[Lesson, Lesson]:
    """The one that goes on (decided by the person, else the older source) and the one that ends."""
    first, second = sorted((a, b), key=lambda x: (x.decision is None, x.ordered()[0].key))
    return first, second
