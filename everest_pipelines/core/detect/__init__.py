"""From turns to episodes: one detector a file, one registry of them."""

from everest_pipelines.core.detect.counts import offers, session_days
from everest_pipelines.core.detect.family import detect
from everest_pipelines.core.detect.registry import DETECTORS, VERSIONS

__all__ = ["DETECTORS", "VERSIONS", "detect", "offers", "session_days"]
