"""One instance, however it is started; runs of the dead; and what maintenance takes away."""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import subprocess
import sys
import time

import dagster as dg
import pytest

from everest_pipelines.defs import launch, maintenance, processes
from everest_pipelines.text.home import find_checkout

ASK = """
import json, os, sys
import dagster as dg
from dagster._core.secrets.env_file import get_env_var_dict
os.environ.update(get_env_var_dict(os.getcwd()))  # what `dagster dev` does first
with dg.DagsterInstance.get() as one:
    print(json.dumps({
        "runs": str(one.run_storage._conn_string).partition("://")[2],
        "events": str(one.event_log_storage._base_dir),
        "artifacts": one.storage_directory(),
        "telemetry": one.get_settings("telemetry"),
        "limit": one.get_concurrency_config().run_queue_config.max_concurrent_runs,
    }))
"""


def ask(folder, environ) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_a_plain_start_in_the_checkout_and_one_from_anywhere_are_the_same(memory, tmp_path):
    variables, _ = launch.environment(memory.home)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / ".env").write_text(launch.env_file(memory.home))
    by_variables = ask(elsewhere, {**memory.environ, **variables})
    by_file = ask(checkout, memory.environ)
    assert by_variables == by_file
    for place in ("runs", "events", "artifacts"):
        assert f"{memory.home.dagster}/" in by_file[place], place
    assert by_file["telemetry"] == {"enabled": False}
    assert by_file["limit"] == 1
    assert not (elsewhere / "history").exists() and not (checkout / "history").exists()


def test_without_the_variable_dagster_says_which_one_is_missing(tmp_path, memory):
    folder = find_checkout()
    if folder is None:
        pytest.skip("not run from a checkout")
    done = subprocess.run(
        [sys.executable, "-c", "import dagster as dg; dg.DagsterInstance.get()"],
        cwd=tmp_path,
        env={**memory.environ, "DAGSTER_HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode and launch.STORAGE_VARIABLE in done.stderr


def test_from_a_wheel_the_packaged_files_are_written_into_the_home(fresh, monkeypatch):
    monkeypatch.setattr(launch, "find_checkout", lambda: None)
    variables, workspace = launch.environment(fresh.home)
    assert variables["DAGSTER_HOME"] == str(fresh.home.root)
    assert workspace == fresh.home.root / "workspace.yaml" and workspace.is_file()
    found = ask(fresh.home.root, {**fresh.environ, **variables})
    assert found["artifacts"].startswith(f"{fresh.home.dagster}/")


def test_what_dagster_stores_is_the_owners_alone(memory):
    for path in (memory.home.root, memory.home.dagster):
        assert path.stat().st_mode & 0o077 == 0
    for path in memory.home.dagster.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def left_started(instance: dg.DagsterInstance, tag: str | None) -> str:
    run = instance.create_run(
        job_name="night",
        run_id=None,
        run_config={},
        status=dg.DagsterRunStatus.STARTED,
        tags={processes.PROCESS: tag} if tag else {},
        root_run_id=None,
        parent_run_id=None,
        step_keys_to_execute=None,
        execution_plan_snapshot=None,
        job_snapshot=None,
        parent_job_snapshot=None,
        asset_selection=None,
        asset_check_selection=None,
        resolved_op_selection=None,
        op_selection=None,
        remote_job_origin=None,
        job_code_origin=None,
        asset_graph=None,
    )
    return run.run_id


def test_a_run_of_a_dead_process_is_failed_and_one_of_a_living_process_is_not(fresh):
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    with launch.instance_of(fresh.home) as instance:
        dead = left_started(instance, f"{child.pid}:1")
        reused = left_started(instance, f"{os.getpid()}:1")
        alive = left_started(instance, processes.this_process())
        starting = left_started(instance, None)
        assert set(processes.fail_dead_runs(instance)) == {dead, reused}
        assert instance.get_run_by_id(dead).status is dg.DagsterRunStatus.FAILURE
        for one in (alive, starting):
            assert instance.get_run_by_id(one).status is dg.DagsterRunStatus.STARTED


def test_whoever_gets_the_lake_fails_the_runs_of_the_dead(fresh):
    with launch.instance_of(fresh.home) as instance:
        dead = left_started(instance, "999999999:1")
    assert not fresh.night().failed
    with launch.instance_of(fresh.home) as instance:
        assert instance.get_run_by_id(dead).status is dg.DagsterRunStatus.FAILURE


def test_a_killed_night_leaves_no_run_started_after_the_next_one(fresh):
    code = (
        "import os, sys; from everest_pipelines.defs import launch;"
        "from everest_pipelines.night import sleep; from everest_pipelines.text.home import Home;"
        "from everest_pipelines.text.settings import load;"
        "sleep.sleep = lambda *_: os.kill(os.getpid(), 9);"
        "home = Home.resolve(os.environ);"
        "launch.run_night(home, load(os.environ, home.config), through='2026-05-11')"
    )
    done = subprocess.run([sys.executable, "-c", code], env=fresh.environ, check=False)
    assert done.returncode == -9
    with launch.instance_of(fresh.home) as instance:
        started = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])
        assert len(instance.get_runs(started)) == 1, "the control: it was at work"
        assert not fresh.night().failed
        assert instance.get_runs(started) == []


def test_ctrl_c_ends_a_night_as_such_and_the_next_one_goes_on(fresh):
    code = (
        "import os, sys, time; from everest_pipelines.defs import launch;"
        "from everest_pipelines.night import sleep; from everest_pipelines.text.home import Home;"
        "from everest_pipelines.text.settings import load;"
        "sleep.sleep = lambda *_: (print('asleep', flush=True), time.sleep(60));"
        "home = Home.resolve(os.environ);"
        "launch.run_night(home, load(os.environ, home.config), through='2026-05-11')"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        env=fresh.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None and child.stdout.readline() == "asleep\n"
    child.send_signal(signal.SIGINT)
    _, words = child.communicate(timeout=60)
    assert child.returncode and "KeyboardInterrupt" in words
    again = fresh.night()
    assert not again.failed
    assert [one.stage for one in again.results if one.changed] == ["sleep"]


def test_maintenance_keeps_every_run_that_a_cell_rests_on(fresh):
    first, second = fresh.night(), fresh.night()
    soon = dt.datetime.now(tz=dt.UTC) + dt.timedelta(minutes=1)
    with launch.instance_of(fresh.home) as instance:
        cells = set(instance.get_materialized_partitions(dg.AssetKey("episodes")))
        third = fresh.night()
        gone = maintenance.prune_runs(instance, before=soon)
        assert gone == [second.run_id], "only its unpartitioned events came again"
        assert instance.get_run_by_id(first.run_id) and instance.get_run_by_id(third.run_id)
        assert set(instance.get_materialized_partitions(dg.AssetKey("episodes"))) == cells
        assert maintenance.prune_runs(instance, before=soon) == []


def test_old_logs_go_and_young_ones_stay(fresh):
    fresh.night()
    with launch.instance_of(fresh.home) as instance:
        now = dt.datetime.now(tz=dt.UTC)
        logs = list(fresh.home.dagster.glob("*/compute_logs"))
        assert logs
        assert maintenance.prune_logs(instance, before=now - dt.timedelta(days=1)) == 0
        os.utime(logs[0], (time.time() - 9e6, time.time() - 9e6))
        assert maintenance.prune_logs(instance, before=now - dt.timedelta(days=1)) == 1
        maintenance.prune_ticks(instance, before=now)
