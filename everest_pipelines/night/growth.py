"""How much the event log of the runs grew from night to night: kept beside it, of no table."""

from __future__ import annotations

import json
import os
import stat
from itertools import pairwise
from pathlib import Path
from typing import Any

from everest_pipelines.core.records import Micros
from everest_pipelines.text.atomic import write_atomic
from everest_pipelines.text.home import Home

_FILE = "sizes.jsonl"
KEPT = 30  # nights


def note_size(home: Home, now: Micros) -> None:
    """Note how large the event log is at the end of a night (microseconds UTC)."""
    noted = [*_noted(home), (now, size_of(home.dagster))][-KEPT - 1 :]
    lines = [json.dumps({"at": at, "bytes": size}) for at, size in noted]
    write_atomic(home.dagster / _FILE, ("\n".join(lines) + "\n").encode())


def growth(home: Home) -> list[int]:
    """Bytes that the event log grew by in each of the last nights, the newest last."""
    sizes = [size for _, size in _noted(home)]
    return [after - before for before, after in pairwise(sizes)]


def _noted(home: Home) -> list[tuple[Micros, int]]:
    """(time, bytes) of each night that was noted; a line that is damaged counts nothing."""
    try:
        lines = (home.dagster / _FILE).read_bytes().splitlines()
    except OSError:
        return []
    found: list[tuple[Micros, int]] = []
    for line in lines:
        try:
            entry: Any = json.loads(line)
            found.append((int(entry["at"]), int(entry["bytes"])))
        except (ValueError, TypeError, KeyError):
            continue
    return found


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder; what a writer takes away meanwhile counts nothing."""
    total = 0
    # Not rglob: it raises when a folder goes between its listing and its reading.
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                found = os.lstat(os.path.join(root, name))
            except FileNotFoundError:
                continue
            total += found.st_size if stat.S_ISREG(found.st_mode) else 0
    return total
