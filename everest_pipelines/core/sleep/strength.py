"""How strong a lesson is: a closed form of its sources' days, no counter.

Every source gives 1.0 and every rendered recall 0.1, each halved every 45 days. Days are counted
in the lake's calendar, so a source of the day being folded counts whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from everest_pipelines.core.records import LessonRevision, Micros, State

HALF_LIFE = 45  # days
ARCHIVE_BELOW = 0.15  # one source alone falls below it after 123 days
RECALL = 0.1
DAY: Micros = 86_400_000_000
KEPT = frozenset({State.APPROVED, State.PINNED})  # never archived by decay


def weight(days: int | float) -> float:
    """What is left of 1.0 after ``days``."""
    return 2.0 ** (-max(0.0, days) / HALF_LIFE)


def strength_of(source_ages: Iterable[int], recall_ages: Iterable[int] = ()) -> float:
    """Strength from the ages in days of sources and of rendered recalls, rounded to 1e-6."""
    total = math.fsum(weight(age) for age in source_ages)
    return round(total + RECALL * math.fsum(weight(age) for age in recall_ages), 6)


def strength_at(revision: LessonRevision, at: Micros) -> float:
    """The strength of a revision at ``at`` (microseconds UTC), decayed since its valid_from."""
    return round(revision.strength * weight((at - revision.valid_from) / DAY), 6)


def is_archived(revision: LessonRevision, at: Micros) -> bool:
    """Whether the lesson has faded out of recall at ``at``; a flag, not a state."""
    return revision.state not in KEPT and strength_at(revision, at) < ARCHIVE_BELOW


def episode_archived(age: int) -> bool:
    """Whether an episode of that age in days no longer clusters."""
    return weight(age) < ARCHIVE_BELOW
