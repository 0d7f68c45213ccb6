"""Who is left without lessons so that their effect can be measured: sessions, lessons, weeks.

Pure functions of ids: the same on every surface, and without any state to lose.
"""

from __future__ import annotations

from everest_pipelines.text.bare import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from everest_pipelines.recall.snapshot import Snapshot

PINNED = "pinned"
_SCALE = 1 << 64


def is_held_out(family: str, share: float) -> bool:
    """Whether hooks show nothing in this session family; `family`: its root session's id."""
    return _point("holdout", family) < share


def is_withheld(lesson_id: str, state: str, share: float, week: str) -> bool:
    """Whether a lesson is left out of every surface in an ISO week; a pinned one never is."""
    return share > 0 and state != PINNED and _point("withhold", week, lesson_id) < share


def withheld_ids(snapshot: Snapshot, project: str, *, share: float, now: int) -> frozenset[str]:
    """The ids of a project's lessons, and of those for everywhere, that are withheld at `now`."""
    if not share:
        return frozenset()
    week = iso_week(now)
    return frozenset(
        lesson.id
        for lesson in snapshot.lessons(project)
        if is_withheld(lesson.id, lesson.state, share, week)
    )


def iso_week(micros: int) -> str:
    """The ISO week (UTC) of a time in microseconds, as 2026-W05 (ISO 8601)."""
    days = micros // 86_400_000_000  # since a Thursday
    thursday = days + 3 - (days + 3) % 7  # of the same week
    year = _year(thursday)
    first = _days_before(year)
    return f"{year:04d}-W{(thursday - first) // 7 + 1:02d}"


def _year(day: int) -> int:
    year = 1970 + day // 366
    while _days_before(year + 1) <= day:
        year += 1
    return year


def _days_before(year: int) -> int:
    """Days from 1970-01-01 to the first of January of a year."""
    past = year - 1
    return 365 * (year - 1970) + (past // 4 - past // 100 + past // 400) - 477


def _point(*parts: str) -> float:
    """A number from 0 to 1 that only the parts decide."""
    digest = sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / _SCALE
