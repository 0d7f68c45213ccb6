"""All episodes of one session family."""

from __future__ import annotations

from collections.abc import Sequence

from everest_pipelines.core.detect.registry import DETECTORS, DayOf
from everest_pipelines.core.detect.scene import Scene
from everest_pipelines.core.records import Episode, Turn


def detect(turns: Sequence[Turn], *, day_of: DayOf) -> list[Episode]:
    """The episodes in ``turns``: all turns of one session family up to some instant, in any order.

    ``day_of`` gives the day (in the lake's zone) of a time. Turns that were taken back or that
    repeat another are skipped; machines and sub-agents never give an episode of a person.
    ``settled_at`` of an episode is the time (microseconds, UTC) of the last turn that the row
    depends on. Sorted by time, then id; the same for every order of the input.
    """
    scene = Scene(turns)
    found = {
        episode.episode_id: episode
        for detector in DETECTORS
        for episode in detector.detect(scene, day_of)
    }
    return sorted(found.values(), key=lambda episode: (episode.occurred_at, episode.episode_id))
