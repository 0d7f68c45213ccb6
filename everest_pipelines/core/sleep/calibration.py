"""The numbers of an embedding space: its centre and its cuts, fitted by a script, kept as data."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import msgspec

from everest_pipelines.core.records import LessonKind
from everest_pipelines.text.ids import digest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[Any]
else:
    Vector = Any

SCORE_DIGITS = 6  # scores are rounded to 1e-6 before a cut


class Cuts(msgspec.Struct, frozen=True):
    """Mean cosines from which two things of one lesson kind are one matter."""

    join: float  # an episode against the sources of a lesson; verifying uses the same cut
    cluster: float  # average linkage of episodes
    merge: float  # average linkage of lessons


class Calibration(msgspec.Struct, frozen=True, dict=True):
    """One space's calibration; ``card`` holds the data and the scores that decided the cuts.

    ``also``: patterns of other spaces that it holds for, such as the same weights behind a server.
    """

    space: str
    dimension: int
    centre: tuple[float, ...] = ()  # subtracted before comparing; empty: none
    cuts: dict[str, Cuts] = {}
    fitted: bool = True  # False: documented defaults for a space without labels
    also: tuple[str, ...] = ()
    card: dict[str, object] = {}

    @cached_property
    def tag(self) -> str:
        """Names the numbers: another tag means that every day must be folded anew."""
        cuts = sorted((kind, one.join, one.cluster, one.merge) for kind, one in self.cuts.items())
        return digest(repr(cuts), repr(self.centre))[:8]

    def of(self, kind: LessonKind) -> Cuts:
        """The cuts of a lesson kind."""
        return self.cuts.get(kind.value, _DEFAULT)


# A space without labels. Not fitted: meant to let near-copies meet and nothing else, because 0.62
# merges everything in some spaces. A check flags a cut that merges everything or nothing.
_DEFAULT = Cuts(join=0.85, cluster=0.85, merge=0.9)


@lru_cache(maxsize=16)
def calibration_of(space: str) -> Calibration:
    """The packaged calibration of ``space``, else documented defaults marked as not fitted."""
    folder = resources.files("everest_pipelines.core.sleep").joinpath("calibrations")
    packaged = [one for one in folder.iterdir() if one.name.endswith(".json")]
    for file in sorted(packaged, key=lambda one: (one.name != f"{space}.json", one.name)):
        known = decode(file.read_bytes())
        if space == known.space or any(fnmatchcase(space, pattern) for pattern in known.also):
            return known
    return Calibration(space=space, dimension=0, fitted=False)


def decode(content: bytes) -> Calibration:
    """A calibration as it is written. Raises msgspec.DecodeError."""
    return msgspec.json.decode(content, type=Calibration)


def centred(vector: Vector, calibration: Calibration) -> Vector:
    """The vector in float64, moved by the centre and of length 1 (a zero vector stays zero)."""
    import numpy as np

    moved = np.asarray(vector, dtype=np.float64)
    if calibration.centre:
        moved = moved - np.asarray(calibration.centre)
    norm = float(np.sqrt(moved @ moved))
    return moved / norm if norm > 1e-9 else np.zeros_like(moved)
