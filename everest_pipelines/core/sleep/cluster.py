"""What no lesson took: episodes that wait until their matter returns.

Average linkage never joins across the components of the graph of pairs above the cut, so only the
components that hold something new are clustered, which gives the same clusters for less.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from everest_pipelines.core.sleep.calibration import SCORE_DIGITS
from everest_pipelines.core.sleep.lesson import Sign, Source, apart
from everest_pipelines.core.sleep.strength import episode_archived
from everest_pipelines.text.ids import digest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Matrix = NDArray[Any]
else:
    Matrix = Any

BLOCKED = 4.0  # distance of a guarded pair; cosine distances end at 2
BLOCK = 512  # rows of a product: 80 MB of scores against 20,000 that wait
HALF_STEP = 0.5 * 10**-SCORE_DIGITS
TIE_STEP = 1e-9  # far below a step of the scores: decides between equals and nothing else


class Point:
    """Waiting sources of one vector and one sign: most errors of a long session are one point."""

    __slots__ = ("members", "near", "sign", "vector")

    def __init__(self, sign: Sign, vector: Matrix) -> None:
        self.sign = sign
        self.vector = vector
        self.members: dict[str, Source] = {}
        self.near: list[Point] = []


class Pool:
    """The unjoined, unarchived sources of one lesson kind, with who is near whom."""

    def __init__(self, cut: float) -> None:
        self.cut = cut
        self._where: dict[str, Point] = {}
        self._points: dict[tuple[Sign, bytes], Point] = {}
        self._rows: Matrix | None = None
        self._order: list[Point] = []  # of the rows

    def __contains__(self, episode_id: str) -> bool:
        return episode_id in self._where

    def __len__(self) -> int:
        return len(self._where)

    def add(self, sources: Sequence[Source]) -> None:
        """More that wait; similarities are taken a block at a time."""
        fresh: list[Point] = []
        for source in sources:
            key = (source.sign, source.vector.tobytes())
            point = self._points.get(key)
            if point is None:
                point = self._points[key] = Point(source.sign, source.vector)
                fresh.append(point)
            point.members[source.episode.episode_id] = source
            self._where[source.episode.episode_id] = point
        for start in range(0, len(fresh), BLOCK):
            self._place(fresh[start : start + BLOCK])

    def replace(self, source: Source) -> None:
        """A later row of a waiting episode; it stays at its point."""
        name = source.episode.episode_id
        self._where[name].members[name] = source

    def remove(self, names: Iterable[str]) -> None:
        """Takes out what became a lesson or faded."""
        for name in names:
            point = self._where.pop(name, None)
            if point is not None:
                del point.members[name]

    def fade(self, ordinal: int) -> None:
        """Drops what is archived on the day with that ordinal."""
        self.remove(
            [
                name
                for name, point in self._where.items()
                if episode_archived(ordinal - point.members[name].ordinal)
            ]
        )

    def clusters(self, seeds: Iterable[str]) -> list[list[Source]]:
        """The clusters of every component that holds a seed, each in (day, episode_id) order."""
        found: list[list[Source]] = []
        seen: set[int] = set()
        for seed in seeds:
            point = self._where.get(seed)
            if point is None or id(point) in seen:
                continue
            component = sorted(_component(point, seen), key=lambda source: source.key)
            if len({s.family for s in component}) < 2 and not any(s.states for s in component):
                continue  # nothing that could become a lesson
            found.extend(self._linked(component))
        return sorted(found, key=lambda cluster: cluster[0].key)

    def _linked(self, component: Sequence[Source]) -> list[list[Source]]:
        if len(component) <= 2:
            return split_guarded(component)
        labels = average_linkage(component, self.cut)
        groups: dict[int, list[Source]] = {}
        for label, source in zip(labels, component, strict=True):
            groups.setdefault(label, []).append(source)
        return [part for group in groups.values() for part in split_guarded(group)]

    def _place(self, block: Sequence[Point]) -> None:
        """Gives new points a row each and finds their neighbours."""
        import numpy as np

        vectors = np.stack([point.vector for point in block])
        if self._rows is None:
            self._rows = np.zeros((64, vectors.shape[1]))
        if len(self._order) + len(block) > len(self._rows):
            self._compact(len(block))
        first = len(self._order)
        self._rows[first : first + len(block)] = vectors
        self._order.extend(block)
        scores = np.round(vectors @ self._rows[: len(self._order)].T, SCORE_DIGITS)
        for at, row in np.argwhere(scores >= self.cut).tolist():
            point, other = block[at], self._order[row]
            # a point without members may fill again, so it has neighbours too
            if row < first + at and apart(point.sign, other.sign) is None:
                point.near.append(other)
                other.near.append(point)

    def _compact(self, more: int) -> None:
        """Drops the points whose members are all gone."""
        import numpy as np

        assert self._rows is not None
        kept = [row for row, point in enumerate(self._order) if point.members]
        rows = np.zeros((max(64, 2 * (len(kept) + more)), self._rows.shape[1]))
        rows[: len(kept)] = self._rows[kept]
        self._rows, self._order = rows, [self._order[row] for row in kept]
        for point in self._order:
            point.near = [other for other in point.near if other.members]
        self._points = {key: point for key, point in self._points.items() if point.members}


def _component(start: Point, seen: set[int]) -> list[Source]:
    """The members of every point that can be reached; the points are put into ``seen``."""
    seen.add(id(start))
    waiting, members = [start], list[Source]()
    while waiting:
        point = waiting.pop()
        members.extend(point.members.values())
        for other in point.near:
            if other.members and id(other) not in seen:
                seen.add(id(other))
                waiting.append(other)
    return members


def average_linkage(sources: Sequence[Source], cut: float) -> list[int]:
    """A label for each source: average linkage at mean cosine ``cut``, guarded pairs far apart.

    Equal distances are told apart by the episodes' ids, so that which of two equals is taken first
    hangs on those two alone and not on what else is clustered with them.
    """
    import numpy as np
    from sklearn.cluster import AgglomerativeClustering

    vectors = np.stack([source.vector for source in sources])
    distances = 1.0 - np.round(vectors @ vectors.T, SCORE_DIGITS)
    signs: dict[Sign, list[int]] = {}  # the guard asks once for each pair of different signs
    for row, one in enumerate(sources):
        signs.setdefault(one.sign, []).append(row)
    for (one, rows), (other, columns) in itertools.combinations(signs.items(), 2):
        if apart(one, other) is not None:
            distances[np.ix_(rows, columns)] = BLOCKED
            distances[np.ix_(columns, rows)] = BLOCKED
    weights = np.array([_tie_weight(source.episode.episode_id) for source in sources])
    distances += TIE_STEP * np.outer(weights, weights)
    np.fill_diagonal(distances, 0.0)
    model = AgglomerativeClustering(
        n_clusters=None,  # pyright: ignore[reportArgumentType]  # None asks for the threshold
        metric="precomputed",
        linkage="average",
        distance_threshold=1.0 - cut + HALF_STEP,
    )
    return [int(label) for label in model.fit_predict(distances)]


def _tie_weight(episode_id: str) -> float:
    """A number in [1, 2) that is the episode's own."""
    return 1.0 + int(digest(episode_id, size=6), 16) / 2**48


def split_guarded(group: Sequence[Source]) -> list[list[Source]]:
    """The group, parted so that no two of one part are kept apart by the guard."""
    parts: list[tuple[list[Source], set[Sign]]] = []
    for source in group:
        for part, signs in parts:
            if source.sign in signs or all(apart(source.sign, sign) is None for sign in signs):
                part.append(source)
                signs.add(source.sign)
                break
        else:
            parts.append(([source], {source.sign}))
    return [part for part, _ in parts]
