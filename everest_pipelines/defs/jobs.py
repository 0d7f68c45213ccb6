"""The jobs: `ingest` many times a day, `night` once, `publish` after a decision, `maintenance`."""

import dagster as dg

from everest_pipelines.defs.events import DEFERRED
from everest_pipelines.defs.maintenance import maintenance

READ = ["transcripts", "sessions", "offers", "episodes", "vectors"]
SHOWN = [
    "published",
    "lessons_jsonl",
    "memory_md",
    "lesson_files",
    "recall_snapshot",
    "morning",
    "measures",
]
FOLDED = ["lessons", "merges", "predictions", "verifications"]

ingest = dg.define_asset_job(
    "ingest",
    selection=dg.AssetSelection.assets(*READ),
    description="Read what is new and derive the days that it touches. Folds and shows nothing.",
    tags={**DEFERRED, "everest/night": "ingest"},
)
night = dg.define_asset_job(
    "night",
    selection=dg.AssetSelection.assets(*READ, *FOLDED, *SHOWN),
    description="Bring every day up to the last closed one up to date, then publish a generation.",
    tags={**DEFERRED, "everest/night": "night"},
)
publish = dg.define_asset_job(
    "publish",
    selection=dg.AssetSelection.assets(*SHOWN),
    description="Publish what is folded, with the decisions that the ledger holds by now.",
    tags={**DEFERRED, "everest/night": "publish"},
)

JOBS = [ingest, night, publish, maintenance]
