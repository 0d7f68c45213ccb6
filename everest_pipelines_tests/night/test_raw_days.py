"""Redacted raw lines go when their days are over; the tables that were made of them stay."""

from __future__ import annotations

import os
from pathlib import Path

from everest_pipelines.lake import raw
from everest_pipelines.night.run import run
from everest_pipelines_tests.night.homes import copy_some, night, workspace

FOLDER, OTHER = "D--oh-my-posh", "-Users-dev5-workspace-JSSoundRecorder"
DAY = 86_400_000_000  # microseconds


def test_raw_lines_go_after_their_days_and_the_turns_stay(shared: Path, tmp_path: Path) -> None:
    claude = tmp_path / "claude"
    home = tmp_path / "home"
    copy_some(shared / "transcripts" / "claude", claude, (FOLDER,))
    ws = night(home, claude, "2026-07-15")
    old = raw.sources(ws.home)[0]
    copy_some(shared / "transcripts" / "claude", claude, (OTHER,))
    ws = night(home, claude, "2026-07-15")
    young = next(path for path in raw.sources(ws.home) if OTHER in path)
    turns = ws.lake.read("transcripts")
    for source, days in ((old, 91), (young, 89)):
        for segment in raw.segments(ws.home, source):
            read_at = (ws.now() - days * DAY) * 1000
            os.utime(ws.home.raw / segment.bundle, ns=(read_at, read_at))
    run(workspace(ws.home.root, claude), "2026-07-16")
    assert not raw.segments(ws.home, old)
    assert raw.segments(ws.home, young), "the control: what is younger is kept"
    assert ws.lake.read("transcripts") == turns
