"""Resumed and forked sessions share records: the order of their files decides nothing."""

from __future__ import annotations

import itertools
import json
import shutil
from collections import defaultdict
from pathlib import Path

import pytest

from everest_pipelines.night.ingest import ingest
from everest_pipelines_tests.night.homes import workspace

MOST = 4  # files of one family: 24 orders


def _uuids(path: Path) -> set[str]:
    found: set[str] = set()
    for line in path.read_bytes().splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and record.get("uuid"):
            found.add(record["uuid"])
    return found


@pytest.fixture(scope="module")
def families(shared: Path) -> list[list[Path]]:
    """Groups of real session files that share record uuids."""
    holders: dict[str, list[Path]] = defaultdict(list)
    for path in sorted((shared / "transcripts" / "claude" / "projects").glob("*/*.jsonl")):
        for uuid in _uuids(path):
            holders[uuid].append(path)
    groups: list[set[Path]] = []
    for paths in holders.values():
        if len(paths) > 1:
            touching = [group for group in groups if group & set(paths)]
            merged = set(paths).union(*touching)
            groups = [group for group in groups if group not in touching] + [merged]
    return [sorted(group) for group in groups if len(group) <= MOST]


def _fed(home: Path, files: tuple[Path, ...]) -> dict[str, object]:
    """What the lake holds after the files came one by one, and of which families."""
    claude = home.parent / "claude"
    shutil.rmtree(claude, ignore_errors=True)
    shutil.rmtree(home, ignore_errors=True)
    ws = workspace(home, claude)
    for path in files:
        target = claude / "projects" / path.parent.name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
        assert not ingest(ws).failures
    rows = ws.lake.read("transcripts")
    return {"rows": rows, "families": {row.family_id for _, _, row in rows}}


def test_forks_in_every_order_give_the_same_turns(
    families: list[list[Path]], tmp_path: Path
) -> None:
    largest = sorted(
        families, key=lambda group: (-len(group), sum(p.stat().st_size for p in group))
    )
    assert largest, "the control: there are forked families"
    for group in largest[:3]:
        results = [_fed(tmp_path / "home", order) for order in itertools.permutations(group)]
        assert results[0]["rows"], "the control: turns were read"
        assert len(results[0]["families"]) == 1, "one family, one root"
        assert all(result == results[0] for result in results[1:])
