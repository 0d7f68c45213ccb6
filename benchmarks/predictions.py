"""How good the predictions are, replayed day by day over real transcripts. Prints one JSON object.

    python benchmarks/predictions.py --transcripts DIR [--through DAY] --json

``DIR`` is a Claude Code folder. Each prediction was made from what was folded up to its day: the
fold never looks ahead, which a test holds. ``base_brier`` is the score of always saying the share
that came true, which nobody could have known.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec

from everest_pipelines.core.records import LessonRevision, Verification
from everest_pipelines.core.sleep.predict import score
from everest_pipelines.night.run import run
from everest_pipelines.night.workspace import open_workspace
from everest_pipelines.text.home import Home
from everest_pipelines.text.settings import load


def scored(rows: list[Verification]) -> dict[str, Any] | None:
    found = score(rows)
    return None if found is None else msgspec.to_builtins(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--transcripts", type=Path, required=True)
    parser.add_argument("--through", metavar="DAY", help="the last day; that of the newest turn")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        home = Home(Path(name) / "home")
        variables = {"EVEREST_TZ": "UTC", "EVEREST_CLAUDE_DIR": str(asked.transcripts.resolve())}
        ws = open_workspace(home, load({"HOME": name, **variables}, home.config))
        run(ws, asked.through)
        kinds: dict[str, str] = {}
        for _, _, row in ws.history.rows("lessons"):
            lesson: LessonRevision = row
            kinds[lesson.lesson_id] = lesson.lesson_kind.value
        done: list[Verification] = [row for _, _, row in ws.history.rows("verifications")]
    by_kind: dict[str, list[Verification]] = defaultdict(list)
    for row in done:
        by_kind[kinds[row.lesson_id]].append(row)
    result = {
        "all": scored(done),
        "by_kind": {kind: scored(rows) for kind, rows in sorted(by_kind.items())},
    }
    print(json.dumps(result, indent=None if asked.json else 1))


if __name__ == "__main__":
    main()
