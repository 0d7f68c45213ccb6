"""Asking about the past: what held on a day, and what was shown on a day.

When something held is in the revisions (valid_from, valid_to); when it was known is in the ledger,
whose publication entries carry the rows that each publication showed for the first time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from everest_pipelines.core import trust
from everest_pipelines.core.records import VISIBLE_STATES, Day, LessonRevision
from everest_pipelines.night.workspace import Workspace
from everest_pipelines.recall import overlay
from everest_pipelines.text import ledger

Entry = Mapping[str, Any]


class Past(Struct, frozen=True, kw_only=True):
    """The answer. ``lost``: rows that were shown and whose words were forgotten since."""

    lessons: tuple[LessonRevision, ...] = ()
    lost: int = 0


def packed(lesson: LessonRevision) -> dict[str, Any]:
    """A row as a publication entry keeps it."""
    return msgspec.to_builtins(lesson)


def kept_hashes(entries: Iterable[Entry]) -> set[str]:
    """The digests of rows that a publication entry already keeps."""
    return {
        str(row["hash"])
        for entry in entries
        if entry["kind"] == "publication"
        for row in entry.get("rows") or ()
    }


def as_of(ws: Workspace, *, valid_at: Day | None = None, known_at: Day | None = None) -> Past:
    """The lessons that held at the end of ``valid_at``, as known at the end of ``known_at``.

    Without ``known_at``: by what is known now; what was rejected since never held. With it: what
    the publication in force then showed and, of a day before, what it could have shown of that day
    (transcripts that were read later cannot be told from those read in time).
    """
    entries = ledger.read(ws.home).entries
    if known_at is None:
        if valid_at is None:
            raise ValueError("as_of needs a day")
        return Past(lessons=_held(ws, entries, valid_at, hidden=True))
    until = ws.calendar.day_end(known_at)
    known = [entry for entry in entries if entry["recorded_at"] < until]
    last = next((one for one in reversed(known) if one["kind"] == "publication"), None)
    if last is None:
        return Past()
    if valid_at is not None and valid_at < str(last["horizon"]):
        return Past(lessons=_held(ws, known, valid_at, hidden=False))
    rows = _kept(entries)
    shown = [rows.get(str(one["hash"])) for one in last.get("visible") or ()]
    found = tuple(row for row in shown if row is not None)
    if valid_at is not None:
        end = ws.calendar.day_end(valid_at)
        found = tuple(row for row in found if row.valid_to is None or row.valid_to > end)
    return Past(lessons=found, lost=len(shown) - len([row for row in shown if row is not None]))


def _kept(entries: Iterable[Entry]) -> dict[str, LessonRevision]:
    rows: dict[str, LessonRevision] = {}
    for entry in entries:
        if entry["kind"] == "publication":
            for one in entry.get("rows") or ():
                row = msgspec.convert(one, LessonRevision)
                rows[row.hash] = row
    return rows


def _held(
    ws: Workspace, entries: list[dict[str, Any]], day: Day, *, hidden: bool
) -> tuple[LessonRevision, ...]:
    """The view of a past day. A later end is no end yet; a later rejection is one for all days."""
    end = ws.calendar.day_end(day)
    told = [
        entry for entry in entries if entry["recorded_at"] < end or entry.get("action") != "retire"
    ]
    revisions: list[LessonRevision] = [
        row for on, _, row in ws.history.rows("lessons") if on <= day
    ]
    now_hidden = overlay.hidden(ws.home) if hidden else frozenset[str]()
    found = trust.visible(revisions, told, now_hidden, at=end)
    return tuple(row for row in found if row.state in VISIBLE_STATES)
