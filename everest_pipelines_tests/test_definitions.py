"""The graph as it is: a change of a key, group, job or sensor must be meant."""

from __future__ import annotations

import subprocess
import sys

import dagster as dg
import pytest

from everest_pipelines.defs import launch
from everest_pipelines.defs.partitions import CELLS
from everest_pipelines.lake.calendar import Calendar
from everest_pipelines.text.home import find_checkout

CELL_TABLES = {
    "transcripts": ["transcripts", "sessions", "offers"],
    "episodes": ["episodes", "vectors"],
    "sleep": ["lessons", "merges", "predictions", "verifications"],
}
OTHERS = {
    "transcripts": [
        "claude_code_folder",
        "codex_folder",
        "copilot_folder",
        "gemini_cli_folder",
        "chats_folder",
        "inbox_folder",
        "ledger",
    ],
    "outputs": [
        "published",
        "lessons_jsonl",
        "memory_md",
        "lesson_files",
        "recall_snapshot",
        "morning",
    ],
    "measures": ["measures"],
}
CHECKS = {
    "transcripts": {
        "files_read",
        "lines_quarantined",
        "record_types_known",
        "large_files_have_turns",
        "machine_sessions",
    },
    "sessions": {"sessions_complete"},
    "episodes": {"quotes_verbatim", "episodes_complete"},
    "vectors": {"vectors_complete", "nothing_left_behind"},
    "lessons": {"days_folded", "no_forbidden_visible"},
    "published": {
        f"gate_{gate}" for gate in ("leak", "scope", "forbidden", "counts", "removal", "opposites")
    }
    | {"standing_invariant"},
    "memory_md": {"rendered"},
    "measures": {"nothing_left_behind"},
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> dg.RepositoryDefinition:
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVEREST_HOME", str(home))
        from everest_pipelines.definitions import build
    definitions = build(Calendar("Europe/Berlin", "2024-03-01"))
    dg.Definitions.validate_loadable(definitions)
    return definitions.get_repository_def()


def test_assets_have_the_groups_and_partitions_of_the_blueprint(repository):
    graph = repository.asset_graph
    expected = {
        (key, group, partitioned)
        for tables, partitioned in ((CELL_TABLES, True), (OTHERS, False))
        for group, keys in tables.items()
        for key in keys
    }
    found = {
        (key.to_user_string(), graph.get(key).group_name, graph.get(key).is_partitioned)
        for key in graph.get_all_asset_keys()
    }
    assert found == expected


def test_cells_are_days_in_the_lakes_zone_by_dynamic_project(repository):
    for key in ("transcripts", "verifications"):
        grid = repository.asset_graph.get(dg.AssetKey(key)).partitions_def
        days = grid.get_partitions_def_for_dimension("day")
        assert (days.timezone, days.end_offset) == ("Europe/Berlin", 1)
        assert days.get_first_partition_key() == "2024-03-01"
        assert grid.get_partitions_def_for_dimension("project").name == "projects"
    assert CELLS.get_partitions_def_for_dimension("day").timezone == "UTC"


def test_every_asset_has_an_owner_a_kind_and_words_for_who_watches(repository):
    graph = repository.asset_graph
    for key in graph.get_all_asset_keys():
        node = graph.get(key)
        assert node.owners and node.kinds and node.description, key
        if node.is_materializable:
            assert len(node.description) > 60, key


def test_checks_are_those_of_the_blueprint_and_have_words(repository):
    found: dict[str, set[str]] = {}
    for key in repository.asset_graph.asset_check_keys:
        found.setdefault(key.asset_key.to_user_string(), set()).add(key.name)
        assert repository.asset_graph.get_check_spec(key).description, key
    assert found == CHECKS


def test_jobs_select_their_stages(repository):
    jobs = {name for name in repository.job_names if not name.startswith("__")}
    assert jobs == {"ingest", "night", "publish", "maintenance"}

    def keys(job: str) -> set[str]:
        layer = repository.get_job(job).asset_layer
        return {key.to_user_string() for key in layer.selected_asset_keys}

    read = {"transcripts", "sessions", "offers", "episodes", "vectors"}
    shown = {*OTHERS["outputs"], "measures"}
    assert keys("ingest") == read
    assert keys("publish") == shown
    assert keys("night") == read | shown | set(CELL_TABLES["sleep"])


def test_sensors_run_without_anyone_starting_them(repository):
    sensors = {one.name: one for one in repository.sensor_defs}
    assert set(sensors) == {"transcript_sensor", "night_sensor", "ledger_sensor"}
    for sensor in sensors.values():
        assert sensor.default_status is dg.DefaultSensorStatus.RUNNING, sensor.name
    assert sensors["transcript_sensor"].minimum_interval_seconds == 15 * 60


def test_loading_the_definitions_imports_nothing_heavy(tmp_path):
    code = (
        "import sys, everest_pipelines.definitions;"
        "heavy = ('duckdb', 'pyarrow', 'sklearn', 'numpy', 'polars');"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"EVEREST_HOME": str(tmp_path), "PATH": "", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_the_packaged_files_are_those_of_the_checkout():
    from importlib import resources

    checkout = find_checkout()
    if checkout is None:
        pytest.skip("not run from a checkout")
    for name in launch.FILES:
        packaged = resources.files("everest_pipelines.defs") / "instance" / name
        assert packaged.read_bytes() == (checkout / name).read_bytes()
