"""Timestamps of a file's records: parsed, and mended where they cannot be true."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from everest_pipelines.core.records import Micros

DAY: Micros = 86_400_000_000
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


def parse(stamp: str | int | float | None) -> Micros | None:
    """Microseconds UTC of an ISO time (without a zone: UTC) or epoch seconds or milliseconds."""
    if isinstance(stamp, str):
        try:
            moment = dt.datetime.fromisoformat(stamp)
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=dt.UTC)
        return (moment - _EPOCH) // _MICROSECOND
    if isinstance(stamp, int | float) and not isinstance(stamp, bool) and abs(stamp) < 1e14:
        return int(stamp * 1_000) if abs(stamp) > 1e11 else int(stamp * 1_000_000)
    return None


def mended(stamps: Sequence[Micros | None], start: Micros) -> tuple[list[Micros], set[int]]:
    """Every record's time in file order, and the places of those that were replaced.

    A time that is missing, lies before ``start`` or more than a day after everything that
    follows it takes the nearest valid time before it, else the nearest after it, else start.
    """
    valid: list[Micros | None] = [None if at is None or at < start else at for at in stamps]
    latest: Micros | None = None  # of the valid times behind this place
    for place in range(len(valid) - 1, -1, -1):
        at = valid[place]
        if at is None:
            continue
        if latest is not None and at > latest + DAY:
            valid[place] = None
        elif latest is None or at > latest:
            latest = at
    first = next((at for at in valid if at is not None), start)
    times: list[Micros] = []
    replaced: set[int] = set()
    for place, at in enumerate(valid):
        if at is None:
            replaced.add(place)
            at = times[-1] if times else first
        times.append(at)
    return times, replaced
