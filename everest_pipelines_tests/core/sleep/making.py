"""Made-up episodes for the tests of sleep and trust."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

from everest_pipelines.core.embed import HashedEmbedder, text_of
from everest_pipelines.core.records import Episode, EpisodeKind, LessonRevision, Origin, micros
from everest_pipelines.core.sleep.calibration import calibration_of
from everest_pipelines.core.sleep.fold import Folded, fold
from everest_pipelines.text.ids import digest

SCOPE = "shop-0a1b2c3d"
EMBEDDER = HashedEmbedder()
CALIBRATION = calibration_of(EMBEDDER.space)
Row = tuple[str, Episode]


def day_of(number: int) -> str:
    """ISO day ``number`` days after 2026-03-01."""
    return (dt.date(2026, 3, 1) + dt.timedelta(days=number)).isoformat()


def day_end(day: str) -> int:
    """The exclusive end of a UTC day in microseconds."""
    after = dt.date.fromisoformat(day) + dt.timedelta(days=1)
    return micros(dt.datetime(after.year, after.month, after.day, tzinfo=dt.UTC))


def said(
    text: str, day: int, family: str, *, standing: bool = True, name: str = "", **more: Any
) -> Row:
    """A person's sentence: a standing note, or a correction when not standing."""
    kind = EpisodeKind.NOTE if standing else EpisodeKind.CORRECTION
    return _row(text, day, family, kind, Origin.HUMAN, name, quote=text, standing=standing, **more)


def failed(
    text: str,
    day: int,
    family: str,
    *,
    sub: str = "missing_dependency",
    name: str = "",
    **more: Any,
) -> Row:
    """A failed tool call."""
    return _row(text, day, family, EpisodeKind.ERROR, Origin.TOOL, name, sub=sub, **more)


def claimed(text: str, day: int, family: str, kind: EpisodeKind = EpisodeKind.SURPRISE) -> Row:
    """Something the agent says itself."""
    return _row(text, day, family, kind, Origin.ASSISTANT, "")


def _row(
    text: str, day: int, family: str, kind: EpisodeKind, origin: Origin, name: str, **more: Any
) -> Row:
    at = day_end(day_of(day)) - 43_200_000_000 + int(more.pop("second", 0)) * 1_000_000
    fields: dict[str, Any] = {
        "episode_id": digest("test", text, str(day), family, kind.value, name),
        "kind": kind,
        "title": text,
        "gist": text,
        "origin": origin,
        "sure": True,
        "score": 1.0,
        "occurred_at": at,
        "settled_at": at,
        "turn_id": f"{family}-{day}-{text}-{name}",
        "session_id": family,
        "family_id": family,
    }
    fields.update(more)
    return day_of(day), Episode(**fields)


def review(number: int, action: str, day: int, **fields: Any) -> dict[str, Any]:
    """A review entry, recorded at noon of the day."""
    at = day_end(day_of(day)) - 43_200_000_000
    entry = {"id": f"{number:08d}", "kind": "review", "recorded_at": at, "action": action}
    return entry | fields


def folded(
    rows: Sequence[Row], through: int, entries: Sequence[dict[str, Any]] = (), scope: str = SCOPE
) -> Folded:
    """The fold of these rows up to the end of day ``through``."""
    firsts: dict[str, Episode] = {}
    for _, episode in sorted(rows, key=lambda row: (row[0], row[1].episode_id)):
        firsts.setdefault(episode.episode_id, episode)
    matrix = EMBEDDER.embed([text_of(episode) for episode in firsts.values()])
    vectors = dict(zip(firsts, matrix, strict=True))
    return fold(
        rows,
        vectors,
        scope=scope,
        horizon=day_of(through),
        day_end=day_end,
        entries=entries,
        calibration=CALIBRATION,
    )


def last(done: Folded) -> dict[str, LessonRevision]:
    """The newest revision of each lesson, by text."""
    newest = {row.lesson_id: row for _, row in done.lessons}
    return {row.text: row for row in newest.values()}


def states(done: Folded) -> dict[str, str]:
    """Text to state, newest revisions."""
    return {text: row.state.value for text, row in last(done).items()}
