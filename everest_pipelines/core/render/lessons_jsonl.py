"""``lessons.jsonl``: the wire format of lessons, described in ``docs/lessons-format.md``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from everest_pipelines.core.records import LessonRevision, Micros, moment
from everest_pipelines.core.render.plain import short_id

WIRE_VERSION = 1


def lessons_jsonl(lessons: Sequence[LessonRevision]) -> bytes:
    """One JSON object a line, by (scope, strongest first, lesson id): UTF-8, ``\\n`` at every end.

    The same lessons in any order give the same bytes.
    """
    ordered = sorted(lessons, key=lambda lesson: (lesson.scope, -lesson.strength, lesson.lesson_id))
    return b"".join(_encoded(wire(lesson)) + b"\n" for lesson in ordered)


def wire(lesson: LessonRevision) -> dict[str, object]:
    """One lesson as the object that goes out; recall's snapshot is built from the same object."""
    body = _body(lesson)
    return {**body, "hash": lesson.hash or _hash(body)}


def wire_hash(lesson: LessonRevision) -> str:
    """32 hex digits over everything that goes out about a lesson but the hash itself."""
    return _hash(_body(lesson))


def iso(at: Micros) -> str:
    """Microseconds UTC as ``2026-01-31T23:59:59.000001Z``: always the same width."""
    return moment(at).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")


def _body(lesson: LessonRevision) -> dict[str, object]:
    return {
        "version": WIRE_VERSION,
        "id": lesson.lesson_id,
        "short_id": short_id(lesson.lesson_id),
        "revision": lesson.revision,
        "kind": str(lesson.lesson_kind),
        "scope": lesson.scope,
        "state": str(lesson.state),
        "text": lesson.text,
        "fix": lesson.fix,
        "quote": lesson.quote,
        "polarity": lesson.polarity,
        "strength": round(lesson.strength, 6),
        "seen": lesson.seen,
        "families": lesson.families,
        "days": lesson.days,
        "first_seen": iso(lesson.first_seen_at),
        "last_seen": iso(lesson.last_seen_at),
        "valid_from": iso(lesson.valid_from),
        "valid_to": None if lesson.valid_to is None else iso(lesson.valid_to),
        "sources": list(lesson.source_episode_ids),
        "merged": list(lesson.source_lesson_ids),
        "value_key": lesson.value_key,
        "origin": str(lesson.origin),
        "origins": list(lesson.origins),
        "wording": lesson.wording,
    }


def _encoded(entry: dict[str, object]) -> bytes:
    text = json.dumps(entry, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "replace")  # half a surrogate pair becomes "?"


def _hash(body: dict[str, object]) -> str:
    return hashlib.sha256(_encoded(body)).hexdigest()[:32]
