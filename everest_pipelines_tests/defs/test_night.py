"""The job `night` in one process: what it records, and what it says of what it left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import dagster as dg
import pytest

from everest_pipelines.defs import launch, resources
from everest_pipelines.defs.events import MENDED
from everest_pipelines.lake.lake import Lake
from everest_pipelines.text.errors import EverestError
from everest_pipelines_tests.defs.conftest import LAST_DAY, Memory

TABLES = ("transcripts", "sessions", "offers", "episodes", "vectors", "lessons", "predictions")


def events(instance: dg.DagsterInstance, run_id: str) -> list[dg.DagsterEvent]:
    return [one.dagster_event for one in instance.all_logs(run_id) if one.dagster_event]


def checks(instance: dg.DagsterInstance, run_id: str) -> dict[str, object]:
    found = {}
    for event in events(instance, run_id):
        if event.event_type_value == "ASSET_CHECK_EVALUATION":
            check = event.asset_check_evaluation_data
            found[f"{check.asset_key.to_user_string()}.{check.check_name}"] = check
    return found


def materializations(instance: dg.DagsterInstance, run_id: str) -> Counter[str]:
    return Counter(
        event.asset_key.to_user_string()
        for event in events(instance, run_id)
        if event.event_type_value == "ASSET_MATERIALIZATION"
    )


def test_a_night_publishes_and_ends_well(memory, instance):
    night = memory.first
    assert not night.failed
    assert night.publication.generation.startswith("g-2026-05-11")
    assert [one.stage for one in night.results if one.failures] == []
    run = instance.get_run_by_id(night.run_id)
    assert run.status is dg.DagsterRunStatus.SUCCESS
    assert run.tags[resources.OUTCOME] == "done"


def test_the_grid_shows_cells_with_rows_and_no_empty_one(memory, instance):
    lake = Lake(memory.home)
    for table in TABLES:
        told = {str(key) for key in instance.get_materialized_partitions(dg.AssetKey(table))}
        there = {f"{one.day}|{one.project}" for one in lake.cells(table)}
        assert told == there and told, table


def test_each_cell_has_numbers_of_its_own_and_a_digest(memory, instance):
    lake = Lake(memory.home)
    for record in instance.fetch_materializations(dg.AssetKey("episodes"), limit=100).records:
        metadata = record.asset_materialization.metadata
        day, project = str(record.partition_key).split("|")
        assert metadata["rows"].value == len(lake.read_cell("episodes", day, project))
        assert len(metadata["sha256"].value) == 64


def test_a_night_without_news_records_no_cell(memory, instance):
    again = memory.night()
    assert not again.failed and not again.publication.changed
    counted = materializations(instance, again.run_id)
    assert not set(counted) & set(TABLES)
    assert counted["published"] == 1  # the positive control: events are recorded as such
    assert set(materializations(instance, memory.first.run_id)) >= set(TABLES)


def test_every_check_is_evaluated_with_a_sentence(memory, instance):
    found = checks(instance, memory.first.run_id)
    from everest_pipelines.definitions import build

    keys = build(memory_calendar(memory)).get_repository_def().asset_graph.asset_check_keys
    assert set(found) == {f"{key.asset_key.to_user_string()}.{key.name}" for key in keys}
    assert all(one.description for one in found.values())
    red = {name for name, one in found.items() if not one.passed}
    assert red == {"transcripts.lines_quarantined"}
    assert found["transcripts.lines_quarantined"].severity is dg.AssetCheckSeverity.WARN


def memory_calendar(memory: Memory):
    from everest_pipelines.lake.calendar import Calendar

    return Calendar.of(memory.home, memory.settings)


def test_a_file_left_behind_stops_nothing_and_fails_the_run_at_its_end(fresh):
    bad = fresh.settings.claude_dir / "projects" / "-home-mara-code-harbor-api" / "strange.jsonl"
    bad.write_bytes(b"this is no transcript of any agent\n" * 9)
    night = fresh.night()
    assert night.failed
    assert night.publication.visible, "the others were read, folded and published"
    with launch.instance_of(fresh.home) as instance:
        run = instance.get_run_by_id(night.run_id)
        assert run.status is dg.DagsterRunStatus.FAILURE
        assert run.tags[resources.OUTCOME] == "left"
        found = checks(instance, night.run_id)
        assert not found["transcripts.files_read"].passed
        assert str(bad) in found["transcripts.files_read"].description
        assert "everest night" in found["transcripts.files_read"].description
        assert not found["measures.nothing_left_behind"].passed
        assert found["transcripts.large_files_have_turns"].passed
        assert materializations(instance, night.run_id)["morning"] == 1
    bad.unlink()


def test_a_failed_run_reddens_no_cell(fresh, monkeypatch):
    from dagster._core.storage.partition_status_cache import (
        get_and_update_asset_status_cache_value,
    )

    from everest_pipelines.defs.partitions import grid
    from everest_pipelines.night import derive

    def fail(*_):
        raise ValueError("words of a person")

    monkeypatch.setattr(derive, "vectors", fail)
    with pytest.raises(EverestError):
        fresh.night()
    with launch.instance_of(fresh.home) as instance:
        cells = grid(memory_calendar(fresh))
        status = get_and_update_asset_status_cache_value(
            instance, dg.AssetKey("transcripts"), cells
        )
        assert not list(status.deserialize_failed_partition_subsets(cells).get_partition_keys())


def test_an_error_is_recorded_by_its_kind_and_place_and_never_by_its_words(fresh, monkeypatch):
    from everest_pipelines.night import sleep

    planted = "the person said plum-coloured umbrella"

    def fail(*_):
        raise ValueError(planted)

    monkeypatch.setattr(sleep, "sleep", fail)
    with pytest.raises(EverestError) as raised:
        fresh.night()
    assert planted not in str(raised.value)
    files = [path for path in fresh.home.dagster.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if planted.encode() in path.read_bytes()]
    assert [path for path in files if b"failed with ValueError" in path.read_bytes()]


def test_no_text_of_a_transcript_is_anywhere_below_dagsters_storage(fresh):
    planted = "always use the plum-coloured umbrella in this repo"
    for path in (fresh.settings.claude_dir / "projects").rglob("*.jsonl"):
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        if '"role":"user","content":"' in text.replace(" ", ""):
            text = text.replace('"content":"', f'"content":"{planted}. ', 1)
            text = text.replace('"content": "', f'"content": "{planted}. ', 1)
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
    fresh.night()
    rows = [turn for _, _, turn in Lake(fresh.home).read("transcripts")]
    assert any(planted in turn.text for turn in rows), "the control: it was read"
    for path in fresh.home.dagster.rglob("*"):
        if path.is_file():
            assert b"plum-coloured" not in path.read_bytes(), path


def test_cells_without_an_event_get_one_at_the_next_run(fresh):
    from everest_pipelines.night.run import run
    from everest_pipelines.night.workspace import open_workspace

    run(open_workspace(fresh.home, fresh.settings), LAST_DAY)  # outside of Dagster
    night = fresh.night()
    with launch.instance_of(fresh.home) as instance:
        counted = materializations(instance, night.run_id)
        assert 0 < counted["transcripts"] == len(Lake(fresh.home).cells("transcripts")) < MENDED


def test_rerunning_one_past_day_gives_identical_rows_and_reports_it(memory, instance):
    from everest_pipelines.definitions import build

    lake = Lake(memory.home)
    one = lake.cells("episodes")[0]
    before = lake.read("episodes")
    result = (
        build(memory_calendar(memory))
        .resolve_job_def("ingest")
        .execute_in_process(
            instance=instance,
            run_config=launch.QUIET,
            partition_key=dg.MultiPartitionKey({"day": one.day, "project": one.project}),
            resources={"night": resources.night_resource(memory.home, memory.settings)},
        )
    )
    assert result.success
    assert Lake(memory.home).read("episodes") == before
    told = {
        str(event.partition)
        for event in result.all_events
        if event.event_type_value == "ASSET_MATERIALIZATION"
        and event.asset_key == dg.AssetKey("episodes")
    }
    assert f"{one.day}|{one.project}" in told
    assert {key.split("|")[0] for key in told} == {one.day}


def test_a_night_waits_for_whoever_holds_the_lake_and_says_who(memory):
    holding = (
        "import sys; from everest_pipelines.lake.lock import held;"
        "from everest_pipelines.text.home import Home; from pathlib import Path\n"
        "with held(Home(Path(sys.argv[1])), 'another night'):\n"
        "    print('held', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", holding, str(memory.home.root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert other.stdout is not None and other.stdout.readline() == b"held\n"
    waited: list[object] = []

    def on_wait(holder: object) -> None:
        waited.append(holder)
        if other.stdin is not None:
            other.stdin.close()  # it lets the lake go

    night = memory.night(on_wait=on_wait)
    other.wait()
    assert not night.failed
    assert any("another night" in str(one) for one in waited)
    assert len(waited) <= 2, "told once, not at every look"


def test_an_in_process_night_is_no_prey_of_the_daemon(memory, instance):
    tags = instance.get_run_by_id(memory.first.run_id).tags
    assert tags["dagster/max_runtime"] == "0"
    assert tags["everest/process"].startswith(f"{os.getpid()}:")
