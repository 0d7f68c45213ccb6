from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from everest_pipelines.core.transcripts.times import DAY, mended, parse

START = 1_667_260_800_000_000
NOW = 1_770_000_000_000_000


def test_times_are_read_exactly_in_every_notation() -> None:
    at = 1_769_940_000_123_000
    assert parse("2026-02-01T10:00:00.123Z") == at
    assert parse("2026-02-01T10:00:00.123000+00:00") == at
    assert parse("2026-02-01T12:00:00.123+02:00") == at
    assert parse("2026-02-01T10:00:00.123") == at
    assert parse(1_769_940_000_123) == at
    assert parse(1_769_940_000) == at - 123_000


def test_what_is_no_time_is_none() -> None:
    for stamp in ("", "yesterday", "2026-13-01T00:00:00Z", None, float("nan"), 1e300, True):
        assert parse(stamp) is None, stamp


def test_a_clock_far_ahead_takes_the_time_before_it() -> None:
    at, replaced = mended([NOW, NOW + 400 * DAY, NOW + 5], START)
    assert (at, replaced) == ([NOW, NOW, NOW + 5], {1})


def test_a_first_record_with_a_wrong_time_takes_the_next() -> None:
    assert mended([START - 1, NOW], START) == ([NOW, NOW], {0})
    assert mended([None, NOW], START) == ([NOW, NOW], {0})


def test_a_session_resumed_days_later_is_left_alone() -> None:
    stamps = [NOW, NOW + 1, NOW + 9 * DAY, NOW + 9 * DAY + 1]
    assert mended(stamps, START) == (stamps, set())


def test_parallel_results_that_arrive_out_of_order_are_left_alone() -> None:
    stamps = [NOW + 3, NOW + 1, NOW + 2]
    assert mended(stamps, START) == (stamps, set())


@given(st.lists(st.none() | st.integers(START - 5 * DAY, NOW), max_size=30))
def test_every_record_gets_a_believable_time(stamps: list[int | None]) -> None:
    at, replaced = mended(stamps, START)
    assert len(at) == len(stamps)
    assert all(one >= START for one in at)
    for place, one in enumerate(at):
        kept = place not in replaced
        assert not kept or one == stamps[place]
        later = [t for n, t in enumerate(at) if n > place and n not in replaced]
        assert not kept or not later or one <= max(later) + DAY
