"""What the checks of transcripts say of files that were read: named, counted, with a next step."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from everest_pipelines.defs.transcripts import checks
from everest_pipelines.lake.operational import FileRow


def run_of(*rows: FileRow) -> Any:
    """A run over a lake that holds these files."""
    lake = SimpleNamespace(read_table=lambda table: list(rows) if table == "files" else [])
    return SimpleNamespace(ws=SimpleNamespace(lake=lake), results=[])


def file(name: str = "a", **fields: Any) -> FileRow:
    known: dict[str, Any] = {"session_id": name, "format": "codex", "records": 100, "turns": 9}
    return FileRow(path=f"/x/{name}.jsonl", **{**known, **fields})


GOOD = [file(f"good{n}") for n in range(3)]


def test_a_large_file_without_turns_is_red() -> None:
    silent = file("new", size=13_000_000, turns=0)
    found = checks.large_files_have_turns(run_of(*GOOD, silent))
    assert not found.passed and silent.path in (found.description or "")
    for other in (file(size=500, turns=0), file(size=13_000_000, turns=0, machine="sdk")):
        assert checks.large_files_have_turns(run_of(*GOOD, other)).passed


@pytest.mark.parametrize("unknown", [(("item:Gizmo", 90),), (("event_msg:a", 15), ("b", 10))])
def test_a_share_of_unknown_records_is_red(unknown: tuple[tuple[str, int], ...]) -> None:
    drifted = file("new", unknown=unknown)
    found = checks.record_types_known(run_of(*GOOD * 50, drifted))
    assert not found.passed and found.severity is dg.AssetCheckSeverity.ERROR
    assert drifted.path in (found.description or "")
    assert all(name in (found.description or "") for name, _ in unknown)


def test_a_format_that_drifts_a_little_everywhere_is_red() -> None:
    rows = [file(f"f{n}", unknown=(("brand_new", 8),)) for n in range(30)]
    assert not checks.record_types_known(run_of(*rows)).passed
    others = [file(f"o{n}", format="claude-code") for n in range(900)]
    assert not checks.record_types_known(run_of(*rows, *others)).passed, "formats stand alone"


def test_a_few_unknown_records_are_green_and_odd_names_are_not_told() -> None:
    assert checks.record_types_known(run_of(file(unknown=(("new", 3),)))).passed
    odd = file(unknown=(("words of a person", 90),))
    assert "words of a person" not in (checks.record_types_known(run_of(odd)).description or "")


def test_a_share_of_machines_above_half_is_told() -> None:
    machines = [file(f"m{n}", machine="memory_tool") for n in range(12)]
    found = checks.machine_sessions(run_of(*GOOD, *machines))
    assert not found.passed and found.severity is dg.AssetCheckSeverity.WARN
    assert "12 memory_tool" in (found.description or "")
    assert checks.machine_sessions(run_of(*GOOD, *machines[:2])).passed
    led = [file(row.session_id) for row in machines]
    assert checks.machine_sessions(run_of(*GOOD, *machines, *led)).passed, "a person's part counts"


def test_every_format_is_counted_and_a_large_file_of_events_is_not_silent() -> None:
    notes = file("notes", format="everest-events", turns=0, events=7, size=13_000_000)
    export = file("export", format="chatgpt", turns=5, unknown=(("content:new", 3),))
    run = run_of(*GOOD, notes, export)
    assert checks.large_files_have_turns(run).passed
    numbers = {name: value.value for name, value in checks.record_types_known(run).metadata.items()}
    assert (numbers["codex_files"], numbers["codex_turns"]) == (3, 27)
    assert (numbers["chatgpt_unknown"], numbers["everest-events_turns"]) == (3, 7)
