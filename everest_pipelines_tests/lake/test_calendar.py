"""Days are whole, in the lake's zone, and stay what they were at first run."""

from __future__ import annotations

import datetime as dt
import json
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from everest_pipelines.core.records import micros, moment
from everest_pipelines.lake.calendar import Calendar
from everest_pipelines.text.errors import DamagedError, SettingsError
from everest_pipelines.text.home import Home
from everest_pipelines.text.settings import load

HOUR = 3_600_000_000
ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Santiago",  # midnight is skipped
    "Asia/Beirut",  # midnight is skipped
    "Africa/Cairo",
    "Atlantic/Azores",
    "America/Havana",  # midnight comes twice
    "Australia/Lord_Howe",  # half an hour
    "Asia/Kathmandu",
    "Pacific/Apia",  # a day was skipped
    "Pacific/Chatham",
    "America/St_Johns",
)


@settings(max_examples=300, deadline=None)
@given(zone=st.sampled_from(ZONES), at=st.integers(1_262_304_000_000_000, 1_893_456_000_000_000))
@example(zone="Pacific/Apia", at=micros(dt.datetime(2011, 12, 30, 12, tzinfo=dt.UTC)))
def test_an_instant_lies_in_its_day_and_days_touch(zone: str, at: int) -> None:
    calendar = Calendar(zone)
    day = calendar.day_of(at)
    assert calendar.day_start(day) <= at < calendar.day_end(day)
    assert calendar.day_of(calendar.day_start(day)) == day
    assert calendar.day_of(calendar.day_end(day) - 1) == day
    assert calendar.day_of(calendar.day_end(day)) > day
    assert Calendar(zone).day_of(at) == day  # not by what was asked before


@settings(max_examples=300, deadline=None)
@given(
    zone=st.sampled_from([z for z in ZONES if z != "America/St_Johns"]),
    at=st.integers(1_640_995_200_000_000, 1_893_456_000_000_000),
)
def test_the_day_is_the_date_on_the_wall(zone: str, at: int) -> None:
    wall = moment(at).astimezone(ZoneInfo(zone)).date().isoformat()
    assert Calendar(zone).day_of(at) == wall


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", "2026-03-29", 23),
        ("Europe/Berlin", "2026-10-25", 25),
        ("Europe/Berlin", "2026-06-01", 24),
        ("Australia/Lord_Howe", "2026-04-05", 24.5),
        ("America/Santiago", "2026-09-06", 23),  # starts at one o'clock
        ("UTC", "2026-03-29", 24),
    ],
)
def test_a_day_has_as_many_hours_as_its_clock_shows(zone: str, day: str, hours: float) -> None:
    calendar = Calendar(zone)
    assert calendar.day_end(day) - calendar.day_start(day) == hours * HOUR


def test_days_are_counted_with_both_ends() -> None:
    calendar = Calendar("UTC")
    assert calendar.days("2024-02-28", "2024-03-01") == ["2024-02-28", "2024-02-29", "2024-03-01"]
    assert calendar.days("2024-03-02", "2024-03-01") == []
    noon = micros(dt.datetime(2024, 3, 1, 12, tzinfo=dt.UTC))
    assert calendar.yesterday(noon) == "2024-02-29"
    assert Calendar("Pacific/Kiritimati").yesterday(noon) == "2024-03-01"


def test_the_zone_is_written_at_first_run_and_never_followed_again(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    first = Calendar.of(home, load({}, home.config))
    assert first == Calendar("Asia/Tokyo", "2022-11-01")
    assert json.loads(home.zone_file.read_bytes()) == {"tz": "Asia/Tokyo", "start": "2022-11-01"}
    monkeypatch.setenv("TZ", "Europe/Berlin")
    assert Calendar.of(home, load({}, home.config)) == first
    same = load({"EVEREST_TZ": "Asia/Tokyo", "EVEREST_START": "2022-11-01"}, home.config)
    assert Calendar.of(home, same) == first


@pytest.mark.parametrize(
    "later", [{"EVEREST_TZ": "Europe/Berlin"}, {"EVEREST_START": "2023-01-01"}]
)
def test_a_later_difference_names_the_command(home: Home, later: dict[str, str]) -> None:
    Calendar.of(home, load({"EVEREST_TZ": "UTC"}, home.config))
    with pytest.raises(SettingsError, match="everest rezone"):
        Calendar.of(home, load(later, home.config))


def test_a_zone_file_that_cannot_be_read_is_not_overwritten(home: Home) -> None:
    home.lake.mkdir()
    home.zone_file.write_text('{"tz": "Nowhere/Land", "start": "2022-11-01"}')
    with pytest.raises(DamagedError, match="rezone"):
        Calendar.of(home, load({}, home.config))
    assert "Nowhere" in home.zone_file.read_text()


def test_an_unknown_zone_is_refused() -> None:
    for name in ("Mars/Olympus", "../../etc/passwd", ""):
        with pytest.raises(SettingsError):
            Calendar(name)
    with pytest.raises(SettingsError):
        Calendar("UTC", "soon")
