"""The UI as a person opens it, in a headless browser: graph, partitions, checks, and no error."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from everest_pipelines.lake.lake import Lake
from everest_pipelines_tests.defs.browser import Page, browser, find
from everest_pipelines_tests.defs.webserver import webserver

PROGRAM = find()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no browser: apt-get install chromium")


@pytest.fixture(scope="module")
def address(memory) -> Iterator[str]:
    with webserver(memory.home, memory.environ) as found:
        yield found


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Iterator[Page]:
    assert PROGRAM is not None
    with browser(PROGRAM, tmp_path_factory.mktemp("browser") / "profile") as opened:
        yield opened


def assert_no_error(page: Page) -> None:
    text = page.text()
    assert page.errors == []
    for words in ("GraphQL error", "Something went wrong", "Unexpected error", "PythonError"):
        assert words not in text
    assert page.answers > 0, "the control: the page's answers were looked at"


def test_the_asset_graph_shows_every_stage_in_its_group(page, address):
    page.open(f"{address}/asset-groups")
    page.wait_for("transcripts", "episodes", "sleep", "outputs", "measures")
    assert_no_error(page)
    opened = "%2C".join(f"global%40global%3A{group}" for group in ("sleep", "outputs"))
    page.open(f"{address}/asset-groups?expanded={opened}")
    page.wait_for("lessons", "predictions", "recall_snapshot")
    assert_no_error(page)


def test_an_assets_partitions_are_days_by_projects_with_the_numbers_of_a_cell(
    page, address, memory
):
    cell = Lake(memory.home).cells("transcripts")[-1]
    page.open(f"{address}/assets/transcripts?view=partitions&partition={cell.day}%7C{cell.project}")
    page.wait_for("everywhere", cell.project, cell.day, "sha256", "rows")
    assert_no_error(page)


def test_an_assets_checks_say_in_a_sentence_what_is_wrong(page, address):
    page.open(f"{address}/assets/transcripts?view=checks&checkDetail=lines_quarantined")
    page.wait_for("files_read", "lines_quarantined", "record_types_known")
    page.wait_for("1 lines are kept unread")
    assert_no_error(page)


def test_what_is_published_is_not_called_unsynced(page, address):
    page.open(f"{address}/assets/published?view=checks")
    text = page.wait_for("gate_leak", "The gate is open.")
    assert "Unsynced" not in text
    assert_no_error(page)


def test_a_night_without_a_daemon_is_among_the_runs(page, address, memory):
    page.open(f"{address}/runs")
    page.wait_for(memory.first.run_id[:8], "night", "Success")
    assert_no_error(page)


def test_the_sensors_are_running(page, address):
    page.open(f"{address}/automation")
    page.wait_for("transcript_sensor", "night_sensor", "ledger_sensor")
    assert_no_error(page)
