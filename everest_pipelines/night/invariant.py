"""The standing invariant of trust, looked for on the lake as it is; changes nothing.

The acceptance tests set up and act; this only looks. Where there is nothing to look at, it says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from everest_pipelines.core import trust
from everest_pipelines.core.records import (
    EVERYWHERE,
    VISIBLE_STATES,
    Episode,
    LessonRevision,
    State,
)
from everest_pipelines.night import published
from everest_pipelines.night.workspace import Workspace
from everest_pipelines.recall import overlay
from everest_pipelines.text import ledger

SOURCES_LOOKED = 200  # lessons, the newest: more would read years of turns every night


class Looked(Struct, frozen=True, kw_only=True):
    """One part: how many were looked at (0: not applicable) and which are wrong, by short id."""

    part: str
    looked: int
    wrong: tuple[str, ...] = ()


def standing(ws: Workspace) -> list[Looked]:
    """Every part of the invariant, on the generation in force and the lake behind it."""
    shown = published.lessons(ws.home, published.current(ws.home))
    entries = ledger.read(ws.home).entries
    return [
        _part("passed the gate", [row for _, _, row in ws.history.rows("lessons")], _unsealed),
        _sources(ws, shown),
        _part("approved by a person", shown, _raised_itself),
        _dead(shown, entries),
        _part("in a state that is shown", shown, _not_shown),
        Looked(
            part="not hidden",
            looked=len(overlay.read(ws.home)),
            wrong=_short(one for one in shown if one.lesson_id in overlay.hidden(ws.home)),
        ),
    ]


def _part(name: str, rows: list[LessonRevision], wrong: Callable[[LessonRevision], bool]) -> Looked:
    return Looked(part=name, looked=len(rows), wrong=_short(row for row in rows if wrong(row)))


def _unsealed(row: LessonRevision) -> bool:
    return row.hash == "" or trust.sealed(row).hash != row.hash


def _raised_itself(row: LessonRevision) -> bool:
    raised = row.state in (State.APPROVED, State.PINNED) or row.scope == EVERYWHERE
    return raised and row.decided_by != trust.HUMAN


def _not_shown(row: LessonRevision) -> bool:
    return row.state not in VISIBLE_STATES or not row.text.strip()


def _dead(shown: list[LessonRevision], entries: list[ledger.Entry]) -> Looked:
    scopes = {row.scope for row in shown}
    dead = {scope: trust.tombstones(entries, scope=scope) for scope in scopes}
    return Looked(
        part="never rejected",
        looked=len(trust.tombstones(entries)),
        wrong=_short(row for row in shown if row.value_key in dead[row.scope]),
    )


def _sources(ws: Workspace, shown: list[LessonRevision]) -> Looked:
    """Each shown lesson rests on episodes of its own scope that quote a turn that is there."""
    shown = sorted(shown, key=lambda row: (-row.last_seen_at, row.lesson_id))[:SOURCES_LOOKED]
    wanted = {one for row in shown for one in row.source_episode_ids}
    found: dict[str, tuple[str, Episode]] = {
        row.episode_id: (project, row)
        for _, project, row in ws.history.rows("episodes")
        if row.episode_id in wanted
    }
    turns = {row.turn_id for _, row in found.values() if row.source_path != "ledger"}
    texts = {
        row.turn_id: row.text
        for _, _, row in ws.lake.read("transcripts", days=_days(ws, found))
        if row.turn_id in turns
    }

    def unfounded(row: LessonRevision) -> bool:
        own = [found.get(one) for one in row.source_episode_ids]
        if not own or None in own:
            return True
        for project, episode in (one for one in own if one is not None):
            if row.scope not in (project, EVERYWHERE):
                return True
            if episode.source_path == "ledger":
                continue
            text = texts.get(episode.turn_id)
            spanned = episode.quote_to > episode.quote_from
            if text is None or (
                spanned and text[episode.quote_from : episode.quote_to] != episode.quote
            ):
                return True
        return False

    return Looked(
        part="rests on its sources",
        looked=len(shown),
        wrong=_short(row for row in shown if unfounded(row)),
    )


def _days(ws: Workspace, found: dict[str, tuple[str, Episode]]) -> list[str]:
    return sorted({ws.calendar.day_of(row.occurred_at) for _, row in found.values()})


def _short(rows: Iterable[LessonRevision]) -> tuple[str, ...]:
    return tuple(row.lesson_id[:8] for row in rows)
