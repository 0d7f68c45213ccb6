"""What no way of recall shows at this moment: what was called wrong, and what is withheld."""

from __future__ import annotations

from collections.abc import Mapping

from everest_pipelines.recall import arms, overlay
from everest_pipelines.recall.snapshot import Snapshot
from everest_pipelines.text import bare, quick_settings
from everest_pipelines.text.home import Home


def left_out(
    home: Home, environ: Mapping[str, str], snapshot: Snapshot, project: str, *, now: int
) -> frozenset[str]:
    """Ids and value keys that a search in `project` must not show; `now` in microseconds UTC.

    Raises DamagedError when the overlay cannot be understood.
    """
    config = (bare.read_file(str(home.config)) or b"").decode("utf-8", "replace")
    share = quick_settings.numbers(environ, config, str(home.config))["withhold"]
    withheld = arms.withheld_ids(snapshot, project, share=share, now=now)
    return overlay.hidden(home) | withheld
