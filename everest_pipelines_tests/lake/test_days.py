"""A day is good only if it is closed, of the same input, and its files are what was left."""

from __future__ import annotations

import pytest

from everest_pipelines.lake.days import Days, closed
from everest_pipelines.lake.lake import Lake
from everest_pipelines_tests.lake.rows import turn

DAY, NEXT = "2026-06-01", "2026-06-02"


@pytest.fixture
def done(lake: Lake) -> Lake:
    """A lake whose stage `transcripts` is done with two cells on one day and one on the next."""
    days = Days.load(lake)
    days.open("transcripts", [DAY, NEXT])
    first = [lake.write_cell("transcripts", DAY, p, [turn(1), turn(2)]) for p in ("a", "b")]
    second = [lake.write_cell("transcripts", NEXT, "a", [turn(3)])]
    days.close(
        [
            closed("transcripts", DAY, input_hash="in", cells=first),
            closed("transcripts", NEXT, input_hash="in", cells=second),
        ]
    )
    return lake


def test_a_closed_day_is_good_in_the_next_process(done: Lake) -> None:
    days = Days.load(Lake(done.home))
    assert days.good("transcripts", DAY, "in")
    assert days.good("transcripts", DAY, "in", full=True)
    row = days.row("transcripts", DAY)
    assert row is not None
    assert (row.rows, [cell.project for cell in row.cells]) == (4, ["a", "b"])
    assert days.stale("transcripts", {DAY: "in", NEXT: "in"}) == []


def test_another_input_or_another_day_before_makes_it_not_good(done: Lake) -> None:
    days = Days.load(done)
    assert not days.good("transcripts", DAY, "other")
    assert not days.good("transcripts", "2026-06-03", "in")
    assert not days.good("episodes", DAY, "in")
    assert days.good("transcripts", DAY, "in", prev_hash="")
    assert not days.good("transcripts", DAY, "in", prev_hash="chain")
    assert days.stale("transcripts", {DAY: "in", NEXT: "other", "2026-06-03": ""}) == [
        NEXT,
        "2026-06-03",
    ]


def test_an_open_day_is_not_good_until_it_is_closed(done: Lake) -> None:
    Days.load(done).open("transcripts", [DAY])
    days = Days.load(done)
    assert not days.good("transcripts", DAY, "in")
    assert days.good("transcripts", NEXT, "in")
    same = [done.write_cell("transcripts", DAY, p, [turn(1), turn(2)]) for p in ("a", "b")]
    days.close([closed("transcripts", DAY, input_hash="in", cells=same)])
    assert Days.load(done).good("transcripts", DAY, "in")


def test_a_file_that_is_gone_cut_or_added_makes_it_not_good(done: Lake) -> None:
    days = Days.load(done)
    path = done.path("transcripts", DAY, "a")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert not days.good("transcripts", DAY, "in")
    path.unlink()
    assert not days.good("transcripts", DAY, "in")
    path.write_bytes(whole)
    assert days.good("transcripts", DAY, "in")
    done.write_cell("transcripts", DAY, "c", [turn(9)])
    assert not days.good("transcripts", DAY, "in")


def test_only_the_full_look_sees_a_change_of_the_same_size(done: Lake) -> None:
    days = Days.load(done)
    path = done.path("transcripts", DAY, "a")
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
    assert days.good("transcripts", DAY, "in")
    assert not days.good("transcripts", DAY, "in", full=True)


def test_an_absent_file_of_a_closed_day_stands_for_no_rows(lake: Lake) -> None:
    days = Days.load(lake)
    nothing = lake.write_cell("transcripts", DAY, "a", [])
    days.close([closed("transcripts", DAY, input_hash="in", cells=[nothing])])
    assert days.good("transcripts", DAY, "in", full=True)
    lake.write_cell("transcripts", DAY, "a", [turn(1)])
    emptied = lake.write_cell("transcripts", DAY, "a", [])
    days.close([closed("transcripts", DAY, input_hash="in", cells=[emptied])])
    assert days.good("transcripts", DAY, "in", full=True)
    lake.path("transcripts", DAY, "a").unlink()
    assert days.good("transcripts", DAY, "in", full=True)


def test_an_emptied_cell_and_an_absent_one_have_the_same_output(lake: Lake) -> None:
    absent = closed("transcripts", DAY, input_hash="in", cells=[])
    lake.write_cell("transcripts", DAY, "a", [turn(1)])
    emptied = lake.write_cell("transcripts", DAY, "a", [])
    full = lake.write_cell("transcripts", DAY, "b", [turn(1)])
    assert closed("transcripts", DAY, input_hash="in", cells=[emptied]).output_hash == (
        absent.output_hash
    )
    assert closed("transcripts", DAY, input_hash="in", cells=[full]).output_hash != (
        absent.output_hash
    )


def test_a_day_whose_input_is_gone_is_stale(done: Lake) -> None:
    days = Days.load(done)
    assert days.stale("transcripts", {DAY: "in"}) == [NEXT]
    emptied = [done.write_cell("transcripts", NEXT, "a", [])]
    days.close([closed("transcripts", NEXT, input_hash="", cells=emptied)])
    assert days.stale("transcripts", {DAY: "in"}) == []
    days.forget("transcripts", [DAY])
    assert Days.load(done).row("transcripts", DAY) is None
