"""The detectors, one entry each: adding a kind is one file and one line here."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from everest_pipelines.core.detect import (
    correction,
    environment,
    error,
    refusal,
    session,
    standing,
    surprise,
)
from everest_pipelines.core.detect.scene import Scene
from everest_pipelines.core.records import Day, Episode, Micros

DayOf = Callable[[Micros], Day]


class Detector(Struct, frozen=True):
    """A detector: all that it finds in one session family."""

    name: str
    version: int
    detect: Callable[[Scene, DayOf], Iterable[Episode]]


def _any_day(
    find: Callable[[Scene], Iterable[Episode]],
) -> Callable[[Scene, DayOf], Iterable[Episode]]:
    return lambda scene, day_of: find(scene)


DETECTORS: tuple[Detector, ...] = (
    Detector(session.NAME, session.VERSION, session.detect),
    Detector(error.NAME, error.VERSION, _any_day(error.detect)),
    Detector(refusal.NAME, refusal.VERSION, _any_day(refusal.detect)),
    Detector(correction.NAME, correction.VERSION, _any_day(correction.detect)),
    Detector(standing.NAME, standing.VERSION, _any_day(standing.detect)),
    Detector(surprise.NAME, surprise.VERSION, _any_day(surprise.detect)),
    Detector(environment.NAME, environment.VERSION, _any_day(environment.detect)),
)
VERSIONS: dict[str, int] = {detector.name: detector.version for detector in DETECTORS}
