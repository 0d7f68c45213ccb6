"""The sensors against a real home and instance, with Dagster's own test helpers."""

from __future__ import annotations

import os

import dagster as dg
import pytest

from everest_pipelines.definitions import build
from everest_pipelines.defs import launch, resources
from everest_pipelines.defs.partitions import RANGE_END, RANGE_START
from everest_pipelines.lake.calendar import Calendar
from everest_pipelines.text import ledger
from everest_pipelines_tests.defs.conftest import Memory


@pytest.fixture
def home(fresh, monkeypatch) -> Memory:
    for variable, value in fresh.environ.items():
        monkeypatch.setenv(variable, value)
    for path in (fresh.settings.claude_dir / "projects").rglob("*.jsonl"):
        os.utime(path, (1_778_500_000, 1_778_500_000))  # 2026-05-11
    return fresh


def definitions() -> dg.Definitions:
    return build(Calendar("UTC"))


def tick(instance: dg.DagsterInstance, name: str) -> dg.SensorResult:
    repository = definitions().get_repository_def()
    sensor = repository.get_sensor_def(name)
    context = dg.build_sensor_context(instance=instance, repository_def=repository)
    data = sensor.evaluate_tick(context)
    for one in data.dynamic_partitions_requests or ():
        instance.add_dynamic_partitions(one.partitions_def_name, one.partition_keys)
    return data


def execute(instance: dg.DagsterInstance, request: dg.RunRequest, home: Memory) -> bool:
    return (
        definitions()
        .resolve_job_def(request.job_name)
        .execute_in_process(
            instance=instance,
            tags=dict(request.tags),
            run_config=launch.QUIET,
            raise_on_error=False,
            resources={"night": resources.night_resource(home.home, home.settings)},
        )
        .success
    )


def test_new_transcripts_become_one_range_run_and_the_reserved_project(home):
    with launch.instance_of(home.home) as instance:
        data = tick(instance, "transcript_sensor")
        (request,) = data.run_requests
        assert request.job_name == "ingest"
        assert request.tags[RANGE_START] == "2026-05-11|everywhere"
        assert request.tags[RANGE_END].endswith("|everywhere")
        assert instance.get_dynamic_partitions("projects") == ["everywhere"]
        assert execute(instance, request, home)
        assert len(instance.get_dynamic_partitions("projects")) == 4
        again = tick(instance, "transcript_sensor")
        assert not again.run_requests and "nothing new: 0 of 12 files" in again.skip_message


def test_a_file_still_being_written_is_left_for_the_next_look(home):
    path = next((home.settings.claude_dir / "projects").rglob("*.jsonl"))
    os.utime(path)
    with launch.instance_of(home.home) as instance:
        (request,) = tick(instance, "transcript_sensor").run_requests
        execute(instance, request, home)
        assert "1 still being written" in tick(instance, "transcript_sensor").skip_message
        os.utime(path, (1_778_500_001, 1_778_500_001))
        assert tick(instance, "transcript_sensor").run_requests


def test_an_ingest_that_left_a_file_behind_fails_and_is_asked_for_again_with_a_pause(home):
    bad = home.settings.claude_dir / "projects" / "-home-mara-code-harbor-api" / "odd.jsonl"
    bad.write_bytes(b"this is no transcript of any agent\n")
    os.utime(bad, (1_778_500_000, 1_778_500_000))
    with launch.instance_of(home.home) as instance:
        (request,) = tick(instance, "transcript_sensor").run_requests
        assert not execute(instance, request, home)
        (request,) = tick(instance, "transcript_sensor").run_requests  # another set of files
        assert not execute(instance, request, home)
        waiting = tick(instance, "transcript_sensor")
        assert not waiting.run_requests and "attempt 1 failed" in waiting.skip_message


def test_a_closed_day_becomes_one_night_and_none_after_it(home):
    with launch.instance_of(home.home) as instance:
        assert "nothing was read yet" in tick(instance, "night_sensor").skip_message
        (request,) = tick(instance, "transcript_sensor").run_requests
        execute(instance, request, home)
        night, daily = tick(instance, "night_sensor").run_requests
        assert (night.job_name, daily.job_name) == ("night", "maintenance")
        assert execute(instance, night, home)
        done = tick(instance, "night_sensor")
        assert not done.run_requests and "no closed day is stale" in done.skip_message


def test_a_decision_of_the_owner_is_published_without_waiting_for_the_night(home):
    with launch.instance_of(home.home) as instance:
        assert "nothing was decided" in tick(instance, "ledger_sensor").skip_message
        (request,) = tick(instance, "transcript_sensor").run_requests
        execute(instance, request, home)
        execute(instance, tick(instance, "night_sensor").run_requests[0], home)
        ledger.append(home.home, "recall", {"query": "x"}, now=2_000_000_000_000_000)
        assert not tick(instance, "ledger_sensor").run_requests, "recalls ask for nothing"
        ledger.append(
            home.home, "veto", {"lesson_id": "0" * 32, "why": "wrong"}, now=2_000_000_000_000_001
        )
        (request,) = tick(instance, "ledger_sensor").run_requests
        assert request.job_name == "publish"
        assert execute(instance, request, home)
        assert not tick(instance, "ledger_sensor").run_requests
