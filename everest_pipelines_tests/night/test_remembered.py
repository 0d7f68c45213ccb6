"""What ingest leaves for the next stages is what they would have read."""

from __future__ import annotations

from pathlib import Path

import pytest

from everest_pipelines.lake.days import Days
from everest_pipelines.night import workspace as module
from everest_pipelines.night.derive import Inputs, day_row, episodes, sessions
from everest_pipelines.night.ingest import ingest
from everest_pipelines_tests.night.homes import copy_some, workspace

STAGES = {"transcripts": ("transcripts",), "sessions": ("sessions", "offers")}


@pytest.fixture
def few(shared: Path, tmp_path: Path) -> Path:
    """Some of the shared projects."""
    source = shared / "transcripts" / "claude"
    folders = sorted(path.name for path in (source / "projects").iterdir())[:2]
    return copy_some(source, tmp_path / "claude", tuple(folders))


def test_remembered_turns_are_those_of_the_file(few: Path, tmp_path: Path) -> None:
    ws = workspace(tmp_path / "home", few)
    ingest(ws)
    cells = [
        (day, project, sha)
        for day, projects in Inputs(ws).cells.items()
        for project, sha in projects.items()
    ]
    assert cells
    for cell in cells:
        kept = ws._fresh[cell[:2]].turns
        assert kept == ws.lake.read_cell("transcripts", *cell[:2])
        assert ws.turns(*cell) is kept
    assert ws.turns(*cells[0][:2], "another digest") is not ws._fresh[cells[0][:2]].turns


def test_a_cell_that_is_written_again_is_remembered_once(few: Path, tmp_path: Path) -> None:
    ws = workspace(tmp_path / "home", few)
    ingest(ws)
    size = ws._fresh_characters
    (day, project), kept = next(iter(ws._fresh.items()))
    again = ws.lake.write_cell("transcripts", day, project, kept.turns[:-1])
    ws.remember(again, kept.turns[:-1])
    assert ws.turns(day, project, again.sha256) == kept.turns[:-1]
    assert ws.turns(day, project, kept.sha256) is not kept.turns
    assert ws._fresh_characters < size


def test_no_more_is_remembered_than_there_is_room(
    few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = workspace(tmp_path / "plain", few)
    ingest(plain)
    assert plain._fresh
    monkeypatch.setattr(module, "FRESH_CHARACTERS", 0)
    bare = workspace(tmp_path / "bare", few)
    ingest(bare)
    assert not bare._fresh
    for ws in (plain, bare):
        episodes(ws)
    assert plain.lake.read("episodes") == bare.lake.read("episodes")


def test_a_day_is_closed_with_what_its_files_are(few: Path, tmp_path: Path) -> None:
    ws = workspace(tmp_path / "home", few)
    ingest(ws)
    sessions(ws)
    days = Days.load(ws.lake)
    for stage, tables in STAGES.items():
        rows = days.rows(stage)
        assert rows
        for row in rows:
            assert row == day_row(ws, stage, tables, row.day, row.input_hash)
