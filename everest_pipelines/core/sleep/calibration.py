"""The numbers of an embedding space: its centre and its cuts, fitted by a script, kept as data."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import msgspec

from everest_pipelines.core.records import LessonKind

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


class Calibration(msgspec.Struct, frozen=True):
    """One space's calibration; ``card`` holds the data and the scores that decided the cuts."""

    space: str
    dimension: int
    centre: tuple[float, ...] = ()  # subtracted before comparing; empty: none
    cuts: dict[str, Cuts] = {}
    fitted: bool = True  # False: documented defaults for a space without labels
    card: dict[str, object] = {}

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
    file = folder.joinpath(f"{space}.json")
    if "/" in space or not file.is_file():
        return Calibration(space=space, dimension=0, fitted=False)
    return msgspec.json.decode(file.read_bytes(), type=Calibration)


def centred(vector: Vector, calibration: Calibration) -> Vector:
    """The vector in float64, moved by the centre and of length 1 (a zero vector stays zero)."""
    import numpy as np

    moved = np.asarray(vector, dtype=np.float64)
    if calibration.centre:
        moved = moved - np.asarray(calibration.centre)
    norm = float(np.sqrt(moved @ moved))
    return moved / norm if norm > 1e-9 else np.zeros_like(moved)
