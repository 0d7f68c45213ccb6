"""A large first import shows its newest days first and ends as a single pass does."""

from __future__ import annotations

import datetime as dt
import json
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from everest_pipelines.lake.generations import Generation
from everest_pipelines.night import early, published
from everest_pipelines.night.early import newest_part
from everest_pipelines.night.look import Look, PendingFile
from everest_pipelines.night.publish import is_behind
from everest_pipelines.night.run import run
from everest_pipelines.night.workspace import Workspace
from everest_pipelines_tests.night.homes import HORIZON, copy_some, night, rows, workspace

FOLDERS = (
    "D--oh-my-posh",
    "-Users-dev5-workspace-claude-code-log-sample",
    "-Users-dev2-wks-test-cli-cli",
    "-experiments-worktrees",
)
DAY_NS = 86_400_000_000_000


def dated(claude: Path) -> Path:
    """Every file as old as its newest record, as where an agent wrote it."""
    for path in claude.rglob("*.jsonl"):
        stamps = [b""]
        for line in path.read_bytes().splitlines():
            try:
                stamps.append(str(json.loads(line).get("timestamp") or "").encode())
            except ValueError:
                continue
        newest = max(stamps).decode() or "2025-01-01T00:00:00Z"
        at = dt.datetime.fromisoformat(newest).timestamp()
        os.utime(path, (at, at))
    return claude


@pytest.fixture(scope="module")
def claude(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("claude")
    return dated(copy_some(shared / "transcripts" / "claude", target, FOLDERS))


@pytest.fixture(scope="module")
def single(claude: Path, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return night(tmp_path_factory.mktemp("single") / "home", claude)


def told(ws: Workspace) -> bytes:
    return (ws.home.current / "morning.md").read_bytes()


class Seen:
    """What readers could see after each swap."""

    def __init__(self, patch: pytest.MonkeyPatch, *, dies: bool = False) -> None:
        self.partial: list[bool] = []
        self.lessons: list[int] = []
        self.turns: list[int] = []
        real = early.render

        def render(ws: Workspace):
            generation: Generation | None = published.current(ws.home)
            assert generation is not None
            self.partial.append(published.is_partial(generation))
            self.lessons.append(len(published.lessons(ws.home, generation)))
            self.turns.append(len(ws.lake.read("transcripts")))
            assert is_behind(ws, HORIZON), "more is to come"
            if dies:
                raise KeyboardInterrupt
            return real(ws)

        patch.setattr(early, "render", render)
        patch.setattr(early, "WORTH_BYTES", 1)


def test_the_newest_days_are_shown_first_and_the_end_is_that_of_a_single_pass(
    claude: Path, single: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Seen(monkeypatch)
    ws = night(tmp_path / "home", claude)
    assert seen.partial == [True]
    assert seen.lessons[0] > 0
    assert 0 < seen.turns[0] < len(single.lake.read("transcripts"))
    assert not published.is_partial(published.current(ws.home))
    assert rows(ws) == rows(single)
    assert told(ws) == told(single)
    assert not is_behind(ws, HORIZON)


def test_a_night_that_ends_after_the_first_part_is_taken_up_by_the_next(
    claude: Path, single: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        Seen(patch, dies=True)
        with pytest.raises(KeyboardInterrupt):
            night(tmp_path / "home", claude)
    ws = workspace(tmp_path / "home", claude)
    assert published.is_partial(published.current(ws.home))
    seen = Seen(monkeypatch)
    results, done = run(ws, HORIZON)
    assert seen.partial == [], "one early generation is enough"
    assert not done.blocked
    assert not [failure for result in results for failure in result.failures]
    assert rows(ws) == rows(single)


def test_what_the_first_part_showed_holds_nothing_up(
    claude: Path, single: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Older history may rename most lessons: no gate takes that for a removal."""
    seen = Seen(monkeypatch)
    ws = workspace(tmp_path / "home", claude)
    real = published.lessons

    def many(home, generation):
        found = real(home, generation)
        if not published.is_partial(generation) or not found:
            return found
        return [replace(found[0], lesson_id=f"{n:032}") for n in range(40)]

    monkeypatch.setattr(published, "lessons", many)
    _, done = run(ws, HORIZON)
    assert seen.partial == [True]
    assert not done.blocked
    assert rows(ws) == rows(single)


def test_the_summary_counts_both_parts(
    claude: Path, single: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, _ = run(workspace(tmp_path / "whole", claude), HORIZON)
    Seen(monkeypatch)
    parts, _ = run(workspace(tmp_path / "parts", claude), HORIZON)
    assert parts[0].counts == whole[0].counts
    cells = [{(c.day, c.project): c.rows for c in r[0].cells if c.rows} for r in (parts, whole)]
    assert cells[0] == cells[1]


def test_only_a_large_rest_is_put_off() -> None:
    def looked(*files: tuple[int, int]) -> Look:
        pending = [
            PendingFile(f"/{n}", "", size, day * DAY_NS) for n, (day, size) in files_of(files)
        ]
        return Look(pending=pending, seen=len(pending))

    def files_of(files):
        return list(enumerate(files))

    def days(part: Look | None) -> list[int] | None:
        return part and [one.mtime_ns // DAY_NS for one in part.pending]

    def ask(look: Look) -> list[int] | None:
        return days(newest_part(look, now_ns=500 * DAY_NS, worth=100))

    assert ask(looked((100, 1), (71, 1), (70, 1), (69, 99), (1, 1))) == [100, 71, 70]
    assert ask(looked((100, 1), (69, 98), (1, 1))) is None, "the rest is small"
    assert ask(looked((100, 1000), (70, 1000))) is None, "there is no rest"
    assert ask(looked()) is None
    assert ask(looked((9999, 1), (490, 1), (1, 100))) == [9999, 490], "a file of the future"
