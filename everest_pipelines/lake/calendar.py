"""Days of the lake: in its own zone, written at first run and never followed again."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
from functools import lru_cache
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from everest_pipelines.core.records import Day, Micros, micros, moment
from everest_pipelines.text.atomic import write_atomic
from everest_pipelines.text.errors import DamagedError, SettingsError
from everest_pipelines.text.home import Home
from everest_pipelines.text.settings import Settings

_DAY = dt.timedelta(days=1)
_REZONE = "everest rezone"


class Calendar:
    """Which day an instant belongs to. `tz` is an IANA name, `start` the lake's first day."""

    def __init__(self, tz: str, start: Day = "2022-11-01") -> None:
        """Raises SettingsError for an unknown zone or a `start` that is no day."""
        self.tz = tz
        self.start = start
        self._zone = _zone(tz)
        try:
            dt.date.fromisoformat(start)
        except ValueError as error:
            raise SettingsError(f"The first day {start!r} is no day.") from error
        self._last: tuple[Micros, Micros, Day] = (
            0,
            0,
            "",
        )  # the span found last: turns come in runs

    def __repr__(self) -> str:
        return f"Calendar({self.tz!r}, {self.start!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Calendar) and (self.tz, self.start) == (other.tz, other.start)

    def __hash__(self) -> int:
        return hash((self.tz, self.start))

    def day_of(self, at: Micros) -> Day:
        """The day that holds `at` (microseconds UTC), also before `start`."""
        begin, end, day = self._last
        if begin <= at < end:
            return day
        date = moment(at).astimezone(self._zone).date()
        while at >= _begin(self.tz, date + _DAY):
            date += _DAY
        while at < _begin(self.tz, date):
            date -= _DAY
        day = date.isoformat()
        self._last = (_begin(self.tz, date), _begin(self.tz, date + _DAY), day)
        return day

    def day_start(self, day: Day) -> Micros:
        """The first instant of `day`, microseconds UTC."""
        return _begin(self.tz, dt.date.fromisoformat(day))

    def day_end(self, day: Day) -> Micros:
        """The first instant after `day`, microseconds UTC; a day has 23, 24 or 25 hours."""
        return _begin(self.tz, dt.date.fromisoformat(day) + _DAY)

    def days(self, first: Day, last: Day) -> list[Day]:
        """All days from `first` to `last`, both included; none when `last` is earlier."""
        begin, end = dt.date.fromisoformat(first), dt.date.fromisoformat(last)
        return [(begin + n * _DAY).isoformat() for n in range((end - begin).days + 1)]

    def yesterday(self, now: Micros) -> Day:
        """The last closed day at `now` (microseconds UTC)."""
        return (dt.date.fromisoformat(self.day_of(now)) - _DAY).isoformat()

    @staticmethod
    def of(home: Home, settings: Settings) -> Calendar:
        """The lake's calendar; at first run that of the settings, else the machine's zone, is kept.

        Raises SettingsError, naming `everest rezone`, when the owner's settings differ from it,
        and DamagedError when the lake's own file cannot be read.
        """
        kept = _kept(home.zone_file)
        if kept is None:
            made = Calendar(settings.tz or machine_zone(), settings.start)
            content = json.dumps({"tz": made.tz, "start": made.start})
            write_atomic(home.zone_file, content.encode() + b"\n")
            return made
        if settings.given("tz") and settings.tz != kept.tz:
            raise SettingsError(
                f"The days of this lake are counted in {kept.tz}, the settings say {settings.tz}.",
                _REZONE,
            )
        if settings.given("start") and settings.start != kept.start:
            raise SettingsError(
                f"This lake starts on {kept.start}, the settings say {settings.start}.", _REZONE
            )
        return kept


def machine_zone() -> str:
    """The machine's zone as an IANA name, else UTC."""
    candidates = [os.environ.get("TZ", "").lstrip(":")]
    with contextlib.suppress(OSError, UnicodeDecodeError):
        candidates.append(Path("/etc/timezone").read_text(encoding="ascii").strip())
    _, marker, name = os.path.realpath("/etc/localtime").partition("zoneinfo/")
    candidates.append(name if marker else "")
    for candidate in candidates:
        if candidate:
            try:
                return _zone(candidate).key or "UTC"
            except SettingsError:
                continue
    return "UTC"


def _zone(tz: str) -> ZoneInfo:
    try:
        return ZoneInfo(tz)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise SettingsError(f"{tz!r} is no time zone.", "everest doctor") from error


def _kept(path: Path) -> Calendar | None:
    try:
        found = json.loads(path.read_bytes())
        return Calendar(found["tz"], found["start"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, SettingsError) as error:
        raise DamagedError(f"{path} does not say the lake's zone.", _REZONE) from error


@lru_cache(maxsize=8192)
def _begin(tz: str, date: dt.date) -> Micros:
    """The first instant whose local date is `date` or later."""
    zone = ZoneInfo(tz)

    def reached(at: Micros) -> bool:
        return moment(at).astimezone(zone).date() >= date

    midnight = dt.datetime(date.year, date.month, date.day, tzinfo=zone)
    first = micros(midnight.astimezone(dt.UTC))
    if reached(first) and not reached(first - 1):
        return first
    low, high = first - 172_800_000_000, first + 172_800_000_000  # midnight is skipped: search
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high
