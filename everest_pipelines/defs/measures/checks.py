"""The verdict on the whole run, given last so that a failure stops nothing."""

from collections.abc import Iterator

import dagster as dg

from everest_pipelines.defs.checks import ending
from everest_pipelines.defs.resources import NightRun

# Without these the verdict could be given before everything else was done.
_LAST = ["lessons_jsonl", "memory_md", "lesson_files", "recall_snapshot", "morning"]


@dg.multi_asset_check(
    specs=[
        dg.AssetCheckSpec(
            "nothing_left_behind",
            asset="measures",
            additional_deps=_LAST,
            description=(
                "Red when the run left a file, a day or a project behind. Everything else was"
                " done; the run ends failed so that its status says so."
            ),
        )
    ],
)
def night_ending(night: dg.ResourceParam[NightRun]) -> Iterator[dg.AssetCheckResult]:
    """What the night left behind."""
    yield from ending("measures", night, frozenset({"night", "publish"}))


CHECKS = [night_ending]
