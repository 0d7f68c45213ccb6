"""Take the README's picture: the real UI after a night on the bundled sample.

    .venv/bin/python docs/screenshots.py [FOLDER]

Needs a Chromium; writes `graph.png`, `checks.png` and `partitions.png` (default: docs/images).
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CHECKOUT))

GROUPS = ("transcripts", "episodes", "sleep", "outputs", "measures")
OPENED = ",".join(f"global%40global%3A{group}" for group in GROUPS)
WIDTH, HEIGHT = 1600, 1400
SETTLE_SECONDS = 3.0  # until the graph has been laid out and its numbers are in


def main(folder: Path) -> int:
    """Run a sample night, open the pages, save the pictures. Returns an exit code."""
    from everest_pipelines_tests.defs.browser import browser, find

    program = find()
    if program is None:
        print("No browser was found. Next: apt-get install chromium", file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        os.environ["EVEREST_HOME"] = str(root / "home")
        from everest_pipelines.lake.lake import Lake
        from everest_pipelines_tests.defs.conftest import make_memory
        from everest_pipelines_tests.defs.webserver import webserver

        memory = make_memory(root)
        memory.night()
        cell = Lake(memory.home).cells("lessons")[-1]
        pages = {
            "graph": (f"asset-groups?expanded={OPENED}", ("measures",)),
            "checks": ("assets/published?view=checks", ("gate_leak", "gate_scope")),
            "partitions": (
                f"assets/lessons?view=partitions&partition={cell.day}%7C{cell.project}",
                ("sha256", cell.project),
            ),
        }
        with (
            webserver(memory.home, memory.environ) as address,
            browser(program, root / "profile") as page,
        ):
            page.call(
                "Emulation.setDeviceMetricsOverride",
                **{"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False},
            )
            for picture, (path, words) in pages.items():
                page.open(f"{address}/{path}")
                page.wait_for(*words)
                time.sleep(SETTLE_SECONDS)
                page.screenshot(folder / f"{picture}.png")
                print(folder / f"{picture}.png")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else CHECKOUT / "docs" / "images"))
