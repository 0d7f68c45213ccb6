"""A project that a gate holds keeps its last good lessons, but none that was called wrong since."""

from __future__ import annotations

from pathlib import Path

import pytest

from everest_pipelines.night import publish as module
from everest_pipelines.night import published
from everest_pipelines.night.gates import GateResult
from everest_pipelines.recall import overlay
from everest_pipelines_tests.night.homes import HORIZON, copy_some, night

FOLDER = "D--oh-my-posh"


def test_a_held_project_shows_its_last_good_lessons_without_what_was_called_wrong(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude = copy_some(shared / "transcripts" / "claude", tmp_path / "claude", (FOLDER,))
    ws = night(tmp_path / "home", claude)
    before = published.lessons(ws.home, published.current(ws.home))
    assert len(before) > 1, "the control: lessons were shown"
    wrong, kept = before[0], before[1:]
    overlay.hide(ws.home, wrong.lesson_id)

    red = GateResult(gate="counts", project=wrong.scope, passed=False, sentence="made red")
    monkeypatch.setattr(module, "evaluate", lambda *_: [red])
    done = module.publish(ws, HORIZON)
    assert done.blocked == [red]
    shown = published.lessons(ws.home, published.current(ws.home))
    assert [one.lesson_id for one in shown] == [one.lesson_id for one in kept]
