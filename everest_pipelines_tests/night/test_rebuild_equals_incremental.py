"""Whatever order the transcripts come in, the same memory comes out, byte for byte."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from everest_pipelines.night.run import run
from everest_pipelines_tests.night.homes import (
    DERIVED,
    HORIZON,
    copy_some,
    file_digests,
    night,
    rows,
    workspace,
)

# Forked families, resumed sessions, both sub-agent layouts, Windows paths and several zones' days.
FOLDERS = (
    "D--oh-my-posh",
    "-Users-dev5-workspace-claude-code-log-sample",
    "-experiments-worktrees",
    "-Users-dev2-wks-test-cli-cli",
)


@pytest.fixture(scope="module")
def claude(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_some(shared / "transcripts" / "claude", tmp_path_factory.mktemp("claude"), FOLDERS)


@pytest.fixture(scope="module")
def at_once(claude: Path, tmp_path_factory: pytest.TempPathFactory):
    ws = night(tmp_path_factory.mktemp("at-once") / "home", claude)
    assert ws.lake.read("lessons"), "the control: there is something to compare"
    return ws


def _files(claude: Path) -> list[Path]:
    return sorted(path for path in claude.rglob("*.jsonl"))


def _day_of_lines(path: Path) -> list[tuple[str, bytes]]:
    """The lines of a transcript, each with the latest day seen up to it."""
    day, found = "0000", []
    for line in path.read_bytes().splitlines(keepends=True):
        try:
            stamp = json.loads(line).get("timestamp") or ""
        except (ValueError, AttributeError):
            stamp = ""
        day = max(day, stamp[:10])
        found.append((day, line))
    return found


def test_fed_day_by_day_as_they_grew(claude: Path, at_once, tmp_path: Path) -> None:
    lines = {path: _day_of_lines(path) for path in _files(claude)}
    days = sorted({day for of_file in lines.values() for day, _ in of_file if day > "2000"})
    growing = tmp_path / "growing"
    for day in [*days[::4], days[-1]]:
        for path, of_file in lines.items():
            part = b"".join(line for on, line in of_file if on <= day)
            if part or not of_file:
                target = growing / path.relative_to(claude)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(part)
        run(workspace(tmp_path / "home", growing), min(day, HORIZON))
    ws = night(tmp_path / "home", growing)
    assert _without_paths(rows(ws), growing) == _without_paths(rows(at_once), claude)


def test_fed_in_random_order(claude: Path, at_once, tmp_path: Path) -> None:
    files = _files(claude)
    random.Random(7).shuffle(files)
    growing = tmp_path / "growing"
    for number, path in enumerate(files):
        target = growing / path.relative_to(claude)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
        if number % 5 == 0:
            run(workspace(tmp_path / "home", growing), HORIZON)
    ws = night(tmp_path / "home", growing)
    assert _without_paths(rows(ws), growing) == _without_paths(rows(at_once), claude)


def test_without_anything_derived_and_without_the_sources(at_once, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(at_once.home.root, home, symlinks=True)
    for table in DERIVED:
        if table != "transcripts" and (home / "lake" / table).exists():
            shutil.rmtree(home / "lake" / table)
    shutil.rmtree(home / "published")
    ws = night(home, tmp_path / "no-such-folder")
    assert rows(ws) == rows(at_once)
    assert file_digests(ws) == file_digests(at_once)


def test_in_another_locale_hash_seed_zone_and_with_more_threads(
    claude: Path, at_once, tmp_path: Path
) -> None:
    script = (
        "import sys; from pathlib import Path;"
        "from everest_pipelines_tests.night.homes import night;"
        "night(Path(sys.argv[1]), Path(sys.argv[2]))"
    )
    environ = {
        **os.environ,
        "PYTHONHASHSEED": "4711",
        "TZ": "Asia/Kolkata",
        "LC_ALL": "C",
        "OMP_NUM_THREADS": "4",
        "OPENBLAS_NUM_THREADS": "4",
    }
    subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "home"), str(claude)],
        check=True,
        env=environ,
        cwd=Path(__file__).resolve().parents[2],
    )
    ws = workspace(tmp_path / "home", claude)
    assert file_digests(ws) == file_digests(at_once)
    assert rows(ws) == rows(at_once)


def test_a_night_without_news_changes_nothing(claude: Path, at_once) -> None:
    before = file_digests(at_once), os.readlink(at_once.home.current)
    results, published = run(workspace(at_once.home.root, claude), HORIZON)
    assert not published.changed
    assert all(not result.cells for result in results)
    assert (file_digests(at_once), os.readlink(at_once.home.current)) == before


def _without_paths(found: dict[str, object], root: Path) -> str:
    """The same memory from two folders differs in the paths of its sources alone."""
    return repr(found).replace(str(root), "<claude>")
