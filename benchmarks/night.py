"""Whole nights without Dagster's start: CPU seconds of each, over made-up memories.

    python benchmarks/night.py --json           one day, a first import, a night without news
    python benchmarks/night.py --cells 300 --files 1000 --json          a short version

Every ratio compares two figures of the same run.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.corpus import renamed
from everest_pipelines.night.look import look
from everest_pipelines.night.run import run
from everest_pipelines.night.workspace import Workspace, open_workspace
from everest_pipelines.text.home import Home
from everest_pipelines.text.settings import load

SAMPLE = Path(__file__).resolve().parent.parent / "everest_pipelines" / "sample" / "projects"
LAST = dt.date(2026, 6, 30)
PROJECTS = 20
T = TypeVar("T")


def timed(call: Callable[[], T]) -> tuple[float, T]:
    """CPU seconds of a call, children excluded, and what it gave."""
    start = time.process_time()
    given = call()
    return time.process_time() - start, given


def sessions() -> list[tuple[bytes, dt.date]]:
    """The sample's sessions that lie within one day, each with that day."""
    found: list[tuple[bytes, dt.date]] = []
    for path in sorted(SAMPLE.glob("*/*.jsonl")):
        data = path.read_bytes()
        days = {stamp[:10] for line in data.splitlines() if (stamp := _stamp(line))}
        if len(days) == 1:
            found.append((data, dt.date.fromisoformat(days.pop())))
    return found


def _stamp(line: bytes) -> str:
    try:
        record = json.loads(line)
    except ValueError:
        return ""
    return record.get("timestamp") or "" if isinstance(record, dict) else ""


def write_day(root: Path, day: dt.date, project: int, number: int) -> None:
    """One session of one project on one day, under ids of its own."""
    known = sessions_cached()
    data, on = known[number % len(known)]
    shifted = renamed(data, number + 1, 0)
    shifted = shifted.replace(on.isoformat().encode(), day.isoformat().encode())
    shifted = shifted.replace(b"/home/mara", b"/home/p%02d" % project)
    place = (
        root / "projects" / f"-p{project:02d}" / f"{number:08d}-0000-4000-8000-{project:012d}.jsonl"
    )
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(shifted)


_SESSIONS: list[tuple[bytes, dt.date]] = []


def sessions_cached() -> list[tuple[bytes, dt.date]]:
    if not _SESSIONS:
        _SESSIONS.extend(sessions())
    return _SESSIONS


def memory(folder: Path) -> Workspace:
    home = Home(folder / "home")
    environ = {
        "HOME": str(folder),
        "EVEREST_TZ": "UTC",
        "EVEREST_CLAUDE_DIR": str(folder / "claude"),
    }
    return open_workspace(home, load(environ, home.config))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=3000, help="cells of the first import")
    parser.add_argument("--files", type=int, default=10_000, help="files of the night without news")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    result: dict[str, float | int] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "import"
        per_project = asked.cells // PROJECTS
        step = max(1, 730 // per_project)
        for number in range(per_project * PROJECTS):
            day = LAST - dt.timedelta(days=1 + step * (number // PROJECTS))
            write_day(folder / "claude", day, number % PROJECTS, number)
        ws = memory(folder)
        before = (LAST - dt.timedelta(days=1)).isoformat()
        seconds, (results, published) = timed(lambda: run(ws, before))
        cells = len(ws.lake.cells("transcripts"))
        result |= {
            "import_cpu_s": round(seconds, 2),
            "import_cells": cells,
            "import_ms_per_cell": round(1000 * seconds / cells, 2),
            "import_lessons": len(published.visible),
        }
        for step_result in results:
            result[f"import_{step_result.stage}_s"] = round(step_result.seconds, 2)
        for project in range(PROJECTS):
            write_day(folder / "claude", LAST, project, 100_000 + project)
        ws = memory(folder)
        day_seconds, _ = timed(lambda: run(ws, LAST.isoformat()))
        ws = memory(folder)
        idle, _ = timed(lambda: run(ws, LAST.isoformat()))
        result |= {
            "one_day_cpu_s": round(day_seconds, 2),
            "no_change_cpu_s": round(idle, 3),
            "no_change_to_one_day": round(idle / day_seconds, 3),
        }
        many = Path(scratch) / "many"
        line = b'{"type":"summary","summary":"x","leafUuid":"%08d-0000-4000-8000-000000000000"}\n'
        for number in range(asked.files):
            place = many / "claude" / "projects" / f"-m{number % 50}" / f"{number:08d}.jsonl"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(line % number)
        ws = memory(many)
        run(ws, LAST.isoformat())
        ws = memory(many)
        looking, looked = timed(lambda: look(ws))
        whole, _ = timed(lambda: run(memory(many), LAST.isoformat()))
        result |= {
            "look_files": looked.seen,
            "look_cpu_s": round(looking, 3),
            "look_night_cpu_s": round(whole, 3),
            "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        }
    print(json.dumps(result) if asked.json else "\n".join(f"{k}: {v}" for k, v in result.items()))


if __name__ == "__main__":
    main()
