"""What the owner is told: nothing that was taken back, nothing of a slip of the hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from everest_pipelines.night.ingest import ingest
from everest_pipelines.night.look import Look, PendingFile
from everest_pipelines.night.report import strongest_of_last_month
from everest_pipelines.night.status import status
from everest_pipelines.night.workspace import Workspace
from everest_pipelines.recall import overlay
from everest_pipelines_tests.night.homes import HORIZON, copy_some, night, workspace


@pytest.fixture
def ws(shared: Path, tmp_path: Path) -> Workspace:
    claude = copy_some(shared / "transcripts" / "claude", tmp_path / "claude", ("D--oh-my-posh",))
    return night(tmp_path / "home", claude)


def test_what_the_owner_called_wrong_is_not_told_again(ws: Workspace) -> None:
    before = strongest_of_last_month(ws, HORIZON, ())
    assert before, "the control: there is something to tell"
    wrong = next(row for _, _, row in ws.lake.read("lessons") if row.text == before[0].text)
    overlay.hide(ws.home, wrong.lesson_id, value_key=wrong.value_key)
    assert before[0].text not in [one.text for one in strongest_of_last_month(ws, HORIZON, ())]


def test_a_file_named_by_mistake_leaves_no_trace(ws: Workspace, tmp_path: Path) -> None:
    note = tmp_path / "letter.txt"
    note.write_text("Dear Sir or Madam\n")
    found = os.stat(note)
    by_hand = PendingFile(str(note), "", found.st_size, found.st_mtime_ns)
    result = ingest(ws, Look(pending=[by_hand], seen=1))
    assert [failure.where for failure in result.failures] == [str(note)], "it is said once"
    again = workspace(ws.home.root, ws.settings.claude_dir)
    assert status(again).failures == []
    assert not ingest(again).failures
