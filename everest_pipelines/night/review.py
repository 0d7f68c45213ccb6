"""What waits for the person's decision, with the evidence to decide on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from everest_pipelines.core import trust
from everest_pipelines.core.records import (
    VISIBLE_STATES,
    Day,
    Episode,
    LessonRevision,
    State,
)
from everest_pipelines.core.sleep.strength import is_archived, strength_at
from everest_pipelines.night import published
from everest_pipelines.night.workspace import Workspace, horizon_of
from everest_pipelines.recall import overlay
from everest_pipelines.text import ledger

_WAITING = (State.STATED, State.CORROBORATED, State.CANDIDATE)
_RIVAL = re.compile(r"(?:disputed with|superseded by) ([0-9a-f]{32})")


class Quote(Struct, frozen=True, kw_only=True):
    """One source in the words of the transcript."""

    words: str
    day: Day
    session_id: str
    kind: str
    origin: str


class Question(Struct, frozen=True, kw_only=True):
    """One lesson to decide on."""

    lesson: LessonRevision
    why: str  # what makes it a question
    quotes: tuple[Quote, ...] = ()  # newest first
    against: tuple[LessonRevision, ...] = ()  # what contradicts it
    against_quotes: tuple[Quote, ...] = ()
    proposed: str = ""  # the text that an edited file gives


def questions(ws: Workspace, *, only: str = "", project: str = "") -> list[Question]:
    """Disputed lessons first, then what was hidden, then the unreviewed by strength.

    ``only``: the start of a lesson id; then that lesson alone, whatever its state. ``project``: the
    start of a project key. What the person decided is no question any more.
    """
    entries = ledger.read(ws.home).entries
    revisions: list[LessonRevision] = [row for _, _, row in ws.history.rows("lessons")]
    rows = trust.newest(trust.apply_entries(revisions, entries))
    generation = published.current(ws.home)
    at = ws.calendar.day_end(generation.manifest.horizon if generation else horizon_of(ws))
    hidden = _hidden(ws, entries, rows)
    picked: list[tuple[int, float, str, LessonRevision, str, str]] = []
    for row in rows.values():
        if not row.scope.startswith(project) or (only and not row.lesson_id.startswith(only)):
            continue
        veto = hidden.get(row.lesson_id)
        place = _place(row, veto, at)
        if only:
            place = 0
        if place is None:
            continue
        why = _why(row, veto)
        proposed = str((veto or {}).get("text", ""))
        picked.append((place, -strength_at(row, at), row.lesson_id, row, why, proposed))
    picked.sort(key=lambda one: one[:3])
    episodes = _episodes(ws, [row for *_, row, _, _ in picked], rows)
    return [
        Question(
            lesson=row,
            why=why,
            proposed=proposed,
            quotes=_quotes(ws, row, episodes),
            against=(against := _against(row, rows)),
            against_quotes=tuple(q for one in against for q in _quotes(ws, one, episodes)[:2]),
        )
        for *_, row, why, proposed in picked
    ]


def unanswered(ws: Workspace) -> list[str]:
    """A sentence for each review that no lesson answers to any more: listed, never dropped."""
    entries = ledger.read(ws.home, ("review",)).entries
    if not entries:
        return []
    revisions: list[LessonRevision] = [row for _, _, row in ws.history.rows("lessons")]
    return [
        f"{entry['action']} of {str(entry.get('lesson_id', ''))[:8]} met no lesson; it holds by its"
        " value when that comes again"
        for entry in trust.unresolved(revisions, entries)
    ]


def _hidden(
    ws: Workspace, entries: Sequence[dict[str, Any]], rows: dict[str, LessonRevision]
) -> dict[str, dict[str, Any]]:
    """Lesson id -> the veto that hides it."""
    found: dict[str, dict[str, Any]] = {}
    for entry in trust.vetoes(entries):
        lesson_id = trust.resolve(entry, rows)
        if lesson_id is not None:
            found[lesson_id] = dict(entry)
    for one in overlay.read(ws.home):
        if one.id in rows:
            found.setdefault(one.id, {"why": one.why or "wrong", "via": "everest wrong"})
    return found


def _place(row: LessonRevision, veto: dict[str, Any] | None, at: int) -> int | None:
    if row.state == State.DISPUTED:
        return 0
    if veto is not None and row.state in VISIBLE_STATES:
        return 1
    if row.state in _WAITING and not is_archived(row, at):
        return 2 + _WAITING.index(row.state)
    return None


def _why(row: LessonRevision, veto: dict[str, Any] | None) -> str:
    if veto is not None and row.state in VISIBLE_STATES:
        if veto.get("via") == "file":
            return f"its file was {veto['why']}: {veto['path']}"
        return f"hidden: {veto.get('why') or 'called wrong'}"
    if row.state == State.DISPUTED:
        return "disputed: another lesson says the opposite"
    return f"{row.state}: {row.reason}" if row.reason else str(row.state)


def _against(row: LessonRevision, rows: dict[str, LessonRevision]) -> tuple[LessonRevision, ...]:
    if row.state not in (State.DISPUTED, State.SUPERSEDED):
        return ()
    named = {match[1] for match in _RIVAL.finditer(row.reason)}
    named |= {other.lesson_id for other in rows.values() if row.lesson_id in other.reason}
    return tuple(rows[one] for one in sorted(named) if one in rows and one != row.lesson_id)


def _episodes(
    ws: Workspace, picked: Sequence[LessonRevision], rows: dict[str, LessonRevision]
) -> dict[str, Episode]:
    wanted = {
        source
        for row in picked
        for one in (row, *_against(row, rows))
        for source in one.source_episode_ids
    }
    if not wanted:
        return {}
    return {
        row.episode_id: row for _, _, row in ws.history.rows("episodes") if row.episode_id in wanted
    }


def _quotes(ws: Workspace, row: LessonRevision, episodes: dict[str, Episode]) -> tuple[Quote, ...]:
    own = [episodes[one] for one in row.source_episode_ids if one in episodes]
    own.sort(key=lambda one: (-one.occurred_at, one.episode_id))
    return tuple(
        Quote(
            words=one.quote or one.title,
            day=ws.calendar.day_of(one.occurred_at),
            session_id=one.session_id,
            kind=str(one.kind),
            origin=str(one.origin),
        )
        for one in own
    )
