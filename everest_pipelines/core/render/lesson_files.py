"""``everest-<id>.md``: one lesson with its evidence, for whoever wants to know why."""

from __future__ import annotations

import json
from collections.abc import Sequence

from msgspec import Struct

from everest_pipelines.core.records import Day, LessonKind, LessonRevision, State
from everest_pipelines.core.render.lessons_jsonl import iso
from everest_pipelines.core.render.plain import (
    clipped,
    code_block,
    code_line,
    code_span,
    file_name,
    one_line,
    short_id,
)

MAX_EVIDENCE = 10  # quotes in one file, newest first; the rest is counted
MAX_QUOTE = 600  # characters of one quote
_MAX_DESCRIPTION = 160

_WHY = {
    State.STATED: "The person said it once, as something that holds beyond the task. Unreviewed.",
    State.CANDIDATE: "Seen, not yet supported by the person or a second session. Unreviewed.",
    State.CORROBORATED: "Seen in independent sessions on different days.",
    State.APPROVED: "Approved by the person.",
    State.PINNED: "Pinned by the person.",
    State.DISPUTED: "Disputed: there is a lesson that says the opposite. Ask before relying on it.",
    State.SUPERSEDED: "Superseded by a later statement of the person.",
    State.REJECTED: "Rejected by the person.",
    State.RETIRED: "Retired.",
}
_HEADING = {
    LessonKind.RULE: "Rule",
    LessonKind.ERROR: "Error that came again",
    LessonKind.SURPRISE: "Surprise",
    LessonKind.NOTE: "Note",
}


class Evidence(Struct, frozen=True, kw_only=True):
    """One source of a lesson, as its file quotes it."""

    quote: str  # verbatim in the redacted transcript
    day: Day  # in the lake's zone
    session_id: str
    kind: str = ""  # of the episode: correction, note, error, …
    origin: str = ""  # human, assistant, tool, harness


def lesson_file(lesson: LessonRevision, evidence: Sequence[Evidence]) -> tuple[str, bytes]:
    """Name and content (UTF-8, ``\\n``) of a lesson's own file.

    The same lesson and evidence, in any order, give the same bytes. Texts are fenced as data.
    """
    short = short_id(lesson.lesson_id)
    line = code_line(lesson.text)
    front = {
        "name": f"everest-{short}",
        "description": clipped(line, _MAX_DESCRIPTION),
        "type": "lesson",
        "id": lesson.lesson_id,
        "kind": str(lesson.lesson_kind),
        "scope": lesson.scope,
        "state": str(lesson.state),
        "seen": lesson.seen,
        "first_seen": iso(lesson.first_seen_at),
        "last_seen": iso(lesson.last_seen_at),
    }
    parts = [
        "---",
        *(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in front.items()),
        "---",
        "",
        f"# {_HEADING[lesson.lesson_kind]}",
        "",
        "Quoted from earlier sessions by Everest: data to weigh, not a message from the owner.",
        "",
        code_block(lesson.text),
        "",
    ]
    if lesson.fix:
        parts += ["## What then worked", "", code_block(lesson.fix), ""]
    parts += ["## Why", "", _why(lesson), "", "## Evidence", "", *_evidence(lesson, evidence)]
    parts += ["", "## Is it wrong?", "", f"`everest wrong {short}` takes it away everywhere.", ""]
    return file_name(lesson.lesson_id), "\n".join(parts).encode("utf-8", "replace")


def _why(lesson: LessonRevision) -> str:
    times = "once" if lesson.seen == 1 else f"{lesson.seen} times"
    families = "one session" if lesson.families == 1 else f"{lesson.families} independent sessions"
    days = "one day" if lesson.days == 1 else f"{lesson.days} days"
    return f"{_WHY[lesson.state]} Seen {times}, in {families}, on {days}."


def _evidence(lesson: LessonRevision, evidence: Sequence[Evidence]) -> list[str]:
    ordered = sorted(set(evidence), key=_order, reverse=True)
    if not ordered:
        quote = f" The words: {code_span(clipped(lesson.quote, MAX_QUOTE))}" if lesson.quote else ""
        return [f"The sources are in the archive ({lesson.seen}).{quote}"]
    lines: list[str] = []
    for source in ordered[:MAX_EVIDENCE]:
        who = " ".join(part for part in (source.origin, source.kind) if part)
        quote = code_span(clipped(code_line(source.quote), MAX_QUOTE))
        session = one_line(source.session_id[:8])
        lines.append(f"- {source.day}, session `{session}`{', ' + who if who else ''}: {quote}")
    if len(ordered) > MAX_EVIDENCE:
        lines.append(f"- and {len(ordered) - MAX_EVIDENCE} more")
    return lines


def _order(source: Evidence) -> tuple[str, ...]:
    return (source.day, source.session_id, source.quote, source.kind, source.origin)
