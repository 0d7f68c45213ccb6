"""Redacted raw lines go when their days are over; the tables that were made of them stay."""

from __future__ import annotations

import os
from pathlib import Path

from everest_pipelines.lake import raw
from everest_pipelines.night.run import run
from everest_pipelines_tests.night.homes import copy_some, night, workspace

FOLDER = "D--oh-my-posh"
DAY = 86_400_000_000  # microseconds


def test_raw_lines_go_after_their_days_and_the_turns_stay(shared: Path, tmp_path: Path) -> None:
    claude = copy_some(shared / "transcripts" / "claude", tmp_path / "claude", (FOLDER,))
    ws = night(tmp_path / "home", claude, "2026-07-15")
    old, young = raw.sources(ws.home)[:2]
    turns = ws.lake.read("transcripts")
    for source, days in ((old, 91), (young, 89)):
        for segment in raw.segments(ws.home, source):
            read_at = (ws.now() - days * DAY) * 1000
            os.utime(raw._folder(ws.home, source) / segment.name, ns=(read_at, read_at))
    run(workspace(ws.home.root, claude), "2026-07-16")
    assert not raw.segments(ws.home, old)
    assert raw.segments(ws.home, young), "the control: what is younger is kept"
    assert ws.lake.read("transcripts") == turns
