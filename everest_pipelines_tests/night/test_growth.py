"""The growth of the event log is noted night by night."""

from __future__ import annotations

from pathlib import Path

from everest_pipelines.night.growth import KEPT, growth, note_size, size_of
from everest_pipelines.text.home import Home


def test_each_night_is_told_by_what_the_log_grew_since_the_one_before(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").ensure()
    home.dagster.mkdir(exist_ok=True)
    assert growth(home) == []
    log = home.dagster / "runs" / "log.db"
    log.parent.mkdir()
    sizes: list[int] = []
    for night, count in enumerate((1_000, 5_000, 4_000)):
        log.write_bytes(b"x" * count)
        sizes.append(size_of(home.dagster))
        note_size(home, night)
    assert growth(home) == [sizes[1] - sizes[0], sizes[2] - sizes[1]]
    assert growth(home)[0] > 3_900
    assert growth(home)[1] < 0, "maintenance took some away"


def test_a_damaged_note_costs_itself_and_old_ones_go(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").ensure()
    home.dagster.mkdir(exist_ok=True)
    note_size(home, 1)
    notes = home.dagster / "sizes.jsonl"
    notes.write_bytes(notes.read_bytes() + b"torn\n[]\n")
    for night in range(2, KEPT + 9):
        note_size(home, night)
    assert len(growth(home)) == KEPT
    assert b"torn" not in notes.read_bytes()
    assert notes.stat().st_mode & 0o777 == 0o600
