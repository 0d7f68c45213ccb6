"""The bundled sample and its throw-away home."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from everest_pipelines.cli import sample
from everest_pipelines.cli.context import opened
from everest_pipelines.lake.lock import held
from everest_pipelines.text.home import Home, find_checkout
from everest_pipelines_tests.cli.conftest import Made

RECORDS = [
    json.loads(line)
    for path in sample.FOLDER.rglob("*.jsonl")
    for line in path.read_bytes().split(b"\n")
    if line.endswith(b"}")
]


def test_the_sample_is_what_its_script_writes() -> None:
    checkout = find_checkout()
    assert checkout is not None
    script = checkout / "benchmarks" / "make_sample.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_sample_is_small_and_holds_what_real_folders_hold() -> None:
    files = list(sample.FOLDER.rglob("*.jsonl"))
    assert sum(path.stat().st_size for path in files) < 300_000
    assert len({path.relative_to(sample.FOLDER).parts[0] for path in files}) == 3
    assert sum(1 for path in files if "subagents" in path.parts) == 1
    sessions = {record["uuid"]: set[str]() for record in RECORDS if "uuid" in record}
    for record in RECORDS:
        if "uuid" in record:
            sessions[record["uuid"]].add(record["sessionId"])
    assert any(len(copies) == 2 for copies in sessions.values()), "no fork"
    words = json.dumps(RECORDS)
    for shape in (
        "To tell you how to proceed",
        "Request interrupted",
        "enqueue",
        "compact_boundary",
    ):
        assert shape in words


def test_the_last_day_is_that_of_the_newest_record() -> None:
    assert max(r["timestamp"] for r in RECORDS if "timestamp" in r)[:10] == sample.LAST_DAY


def test_a_throw_away_home_reads_nothing_of_the_owner(
    empty: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy() | {"EVEREST_RENDER": "1"})
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    root = sample.throw_away()
    home, settings = opened()
    assert home.root == root
    assert settings.tz == "UTC"
    assert settings.render is False
    for folder in (settings.codex_dir, settings.copilot_dir, settings.gemini_dir):
        assert not folder.exists()
        assert folder.is_relative_to(root.parent)
    copied = sorted(path.name for path in Path(settings.claude_dir).rglob("*.jsonl"))
    assert copied == sorted(path.name for path in sample.FOLDER.rglob("*.jsonl"))


def test_the_throw_away_home_is_one_and_replaced_each_time(
    empty: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    first = sample.throw_away()
    (first / "left").write_text("of the last night")
    assert sample.throw_away() == first
    assert not (first / "left").exists()
    with held(Home(first), "a run"):  # somebody works there: it is left alone
        other = sample.throw_away()
    assert other != first
    assert (first / "config.toml").exists()


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_link_where_the_throw_away_home_would_be_is_not_followed(
    empty: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "folder").mkdir()
    (tmp_path / f"everest-sample-{os.getuid()}").symlink_to(precious)
    assert precious not in sample.throw_away().parents
    assert (precious / "folder").is_dir()
