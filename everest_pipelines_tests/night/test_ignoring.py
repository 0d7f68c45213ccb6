"""A project that its owner keeps out leaves the memory and does not come back."""

from __future__ import annotations

from pathlib import Path

import pytest

from everest_pipelines.lake import raw
from everest_pipelines.night import gates, ignoring, published
from everest_pipelines.night.look import look
from everest_pipelines.night.projects import ignored_paths
from everest_pipelines.night.run import run
from everest_pipelines.night.workspace import Workspace
from everest_pipelines.text.errors import CallerError, DamagedError
from everest_pipelines_tests.night.homes import copy_some, grow, night, rows, workspace

FOLDERS = ("D--oh-my-posh", "-Users-dev2-wks-test-cli-cli")


@pytest.fixture
def claude(shared: Path, tmp_path: Path) -> Path:
    """Transcripts that have not grown to the end yet."""
    whole = copy_some(shared / "transcripts" / "claude", tmp_path / "whole", FOLDERS)
    grow(whole, tmp_path / "claude", 0.7)
    return tmp_path / "claude"


def _project(ws: Workspace, folder: str) -> tuple[str, str]:
    row = next(row for row in ws.lake.read_table("projects") if folder in row.folders)
    return row.root, row.project


def _held(ws: Workspace, project: str) -> int:
    tables = ("transcripts", "sessions", "episodes", "vectors", "lessons")
    return sum(len(ws.lake.read(table, projects=[project])) for table in tables)


def _kept(ws: Workspace, folder: str) -> list[str]:
    return [path for path in raw.sources(ws.home) if f"/{folder}/" in path]


def test_what_was_there_goes_and_what_is_written_later_stays_out(
    claude: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gates, "REMOVED_LEAST", 1)  # as for a project with many lessons
    out, other = FOLDERS
    ws = night(tmp_path / "home", claude)
    root, project = _project(ws, out)
    _, left = _project(ws, other)
    shown = published.lessons(ws.home, published.current(ws.home))
    assert {lesson.scope for lesson in shown} >= {project}, "the control: it taught something"
    assert _kept(ws, out)

    ignoring.ignore(ws, root)
    grow(tmp_path / "whole", claude)
    bad = next((claude / "projects" / out).glob("*.jsonl"))
    bad.write_bytes(bad.read_bytes() + b"a line that no reader knows\n")
    before = _held(ws, left)
    ws = night(tmp_path / "home", claude)
    assert not _held(ws, project)
    assert not _kept(ws, out)
    assert not [row for row in ws.lake.read_table("quarantine") if f"/{out}/" in row.source_path]
    assert _held(ws, left) > before, "the control: the other project went on"
    shown = published.lessons(ws.home, published.current(ws.home))
    assert project not in {lesson.scope for lesson in shown}


@pytest.mark.parametrize("content", ["{", "7", "\udcff"])
def test_a_list_that_cannot_be_read_lets_nothing_in(
    claude: Path, tmp_path: Path, content: str
) -> None:
    ws = workspace(tmp_path / "home", claude)
    ws.home.ignore.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(DamagedError, match=r"ignore\.json"):
        run(ws)
    assert not ws.lake.cells("transcripts")


def test_what_was_kept_out_comes_back_as_it_was_once_that_is_undone(
    claude: Path, tmp_path: Path
) -> None:
    ws = night(tmp_path / "home", claude)
    before = rows(ws)
    root, project = _project(ws, FOLDERS[0])
    ignoring.ignore(ws, root)
    ws = night(tmp_path / "home", claude)
    assert not _held(ws, project) and not _kept(ws, FOLDERS[0]), "the control: it was out"

    undone = ignoring.unignore(ws, root)
    assert undone.projects == (project,)
    assert ignored_paths(ws.home) == []
    ws = night(tmp_path / "home", claude)
    assert rows(ws) == before
    assert _kept(ws, FOLDERS[0])
    assert not look(ws).pending


def test_undoing_names_what_is_in_its_way(claude: Path, tmp_path: Path) -> None:
    ws = workspace(tmp_path / "home", claude)
    with pytest.raises(CallerError, match="Nothing at or below"):
        ignoring.unignore(ws, "/some/place")
    ignoring.ignore(ws, "/some")
    with pytest.raises(CallerError, match="/some keeps it out"):
        ignoring.unignore(ws, "/some/place")
    assert ignoring.unignore(ws, "/some").paths == ("/some",)


def test_an_ignore_file_keeps_the_project_out_for_as_long_as_it_is_there(
    claude: Path, tmp_path: Path
) -> None:
    root = tmp_path / "garden"
    root.mkdir()
    path = next((claude / "projects" / FOLDERS[1]).glob("*.jsonl"))
    moved = path.read_bytes().replace(b"/Users/dev2/wks/test-cli/cli", str(root).encode())
    target = claude / "projects" / "-garden" / path.name
    target.parent.mkdir()
    target.write_bytes(moved)
    path.unlink()
    ws = night(tmp_path / "home", claude)
    _, project = _project(ws, "-garden")
    assert _held(ws, project)
    (root / ".everest-ignore").touch()
    ws = night(tmp_path / "home", claude)
    assert not _held(ws, project)
    assert not _kept(ws, "-garden")
    assert ignoring.unignore(ws, str(root)).marked == (str(root),)
    ws = night(tmp_path / "home", claude)
    assert not _held(ws, project)

    moved_away = root.rename(tmp_path / "elsewhere")
    ws = night(tmp_path / "home", claude)
    assert not _held(ws, project), "a directory that cannot be seen says nothing"
    moved_away.rename(root)
    (root / ".everest-ignore").unlink()
    ws = night(tmp_path / "home", claude)
    assert _held(ws, project)
    assert _kept(ws, "-garden")
