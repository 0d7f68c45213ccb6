"""Today's episodes against the lessons as they stood when the day began."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from everest_pipelines.core.records import State
from everest_pipelines.core.sleep.calibration import SCORE_DIGITS
from everest_pipelines.core.sleep.lesson import Lesson, Source
from everest_pipelines.text.value_key import value_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Matrix = NDArray[Any]
else:
    Matrix = Any


class Sums:
    """The sum vectors and counts of the lessons of one kind, as one growing matrix."""

    def __init__(self) -> None:
        self.lessons: list[Lesson] = []
        self._rows: Matrix | None = None
        self._counts: Matrix | None = None
        self._at: dict[str, int] = {}

    def put(self, lesson: Lesson) -> None:
        """Adds a lesson, or takes over its new sum."""
        import numpy as np

        row = self._at.get(lesson.lesson_id)
        if row is None:
            row = self._at[lesson.lesson_id] = len(self.lessons)
            self.lessons.append(lesson)
            if self._rows is None or self._counts is None:
                self._rows = np.zeros((16, len(lesson.total)))
                self._counts = np.ones(16)
            elif row >= len(self._rows):
                self._rows = np.vstack([self._rows, np.zeros_like(self._rows)])
                self._counts = np.concatenate([self._counts, np.ones_like(self._counts)])
        assert self._rows is not None and self._counts is not None
        self._rows[row] = lesson.total
        self._counts[row] = lesson.count

    def means(self, vectors: Matrix) -> Matrix:
        """Mean cosine of each vector (a row) to the sources of each lesson (a column)."""
        import numpy as np

        if self._rows is None or self._counts is None:
            return np.zeros((len(vectors), 0))
        used = len(self.lessons)
        return np.round(vectors @ self._rows[:used].T / self._counts[:used], SCORE_DIGITS)

    def links(self, lesson: Lesson) -> Matrix:
        """Mean cosine between this lesson's sources and those of every lesson."""
        import numpy as np

        if self._rows is None or self._counts is None:
            return np.zeros(0)
        used = len(self.lessons)
        sums = self._rows[:used] @ lesson.total
        return np.round(sums / (self._counts[:used] * lesson.count), SCORE_DIGITS)


def join(sources: Sequence[Source], sums: Sums, cut: float) -> list[tuple[Source, Lesson]]:
    """Which source joins which lesson, best first; the lessons take their sources at once.

    A rejected lesson takes nothing but its own words again. The caller puts the new sums.
    """
    import numpy as np

    if not sources or not sums.lessons:
        return []
    scores = sums.means(np.stack([source.vector for source in sources]))
    found = [
        (-float(scores[row, column]), sums.lessons[column].lesson_id, sources[row].key, row, column)
        for row, column in np.argwhere(scores >= cut).tolist()
    ]
    found.sort()
    taken: set[int] = set()
    joined: list[tuple[Source, Lesson]] = []
    for _, _, _, row, column in found:
        source, lesson = sources[row], sums.lessons[column]
        if row in taken or not _open_to(lesson, source) or not lesson.allows(source.sign):
            continue
        taken.add(row)
        lesson.add(source)
        joined.append((source, lesson))
    return joined


def _open_to(lesson: Lesson, source: Source) -> bool:
    if lesson.into:
        return False
    if lesson.state == State.REJECTED:
        return lesson.key in {value_key(source.episode.title), value_key(source.episode.quote)}
    return True
