"""The open event format: one JSON object a line, for any program that has something to note.

``{"project": …, "text": …, "kind": …, "occurred_at": …, "agent": …, "id": …}``: project and
text are required. What a file says is an agent's word, whoever wrote it: no
field makes it a person's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from everest_pipelines.core.records import EVERYWHERE, BadLine, Micros
from everest_pipelines.core.transcripts import times
from everest_pipelines.core.transcripts.caps import clip
from everest_pipelines.core.transcripts.fields import Fields, read_lines
from everest_pipelines.core.transcripts.lines import Redact, Sink, Suspects, unredacted
from everest_pipelines.core.transcripts.reading import Event, Reading
from everest_pipelines.core.transcripts.talk import string_of
from everest_pipelines.text.ids import digest

NAME = "everest-events"
LOOKED_AT = 50  # lines of a file's beginning
TEXT_CAP = 4_000  # characters; a note is a sentence or some, no document
_PROJECT = re.compile(rb'"project"\s*:\s*"')
_TEXT = re.compile(rb'"text"\s*:\s*"')
_OTHERS = re.compile(rb'"(?:role|sessionId|payload|data|mapping|chat_messages|messages)"\s*:')


def recognises(head: bytes, path: str) -> bool:
    """Whether a file begins with objects that have a project and a text and are no messages."""
    del path
    for line in head.replace(b"\0", b"").split(b"\n")[:LOOKED_AT]:
        line = line.lstrip(b"\xef\xbb\xbf \t\r")
        if line.startswith(b"{") and _PROJECT.search(line) and _TEXT.search(line):
            return not _OTHERS.search(line)
    return False


def read(
    blocks: Iterable[bytes],
    *,
    path: str,
    start: Micros,
    redact: Redact = unredacted,
    suspects: Suspects | None = None,
    sink: Sink | None = None,
) -> Reading:
    """Read a file of events into ``events``; parameters and promises as of ``claude.read``.

    An event without a project, for all projects, without words or with a time that is none goes
    to quarantine with its line.
    """
    events: list[Event] = []
    refused: list[BadLine] = []

    def take(fields: Fields, line: int, content: bytes) -> str:
        event, reason = _event(fields, start)
        if event is None:
            refused.append(
                BadLine(
                    source_path=path,
                    line=line,
                    byte_offset=0,
                    reason=reason,
                    content=content[:TEXT_CAP],
                    size=len(content),
                )
            )
        else:
            events.append(event)
        return ""

    reading = read_lines(
        blocks,
        path=path,
        redact=redact,
        suspects=suspects,
        sink=sink,
        is_record=lambda fields: "text" in fields or "project" in fields,
        take=take,
    )
    for bad in refused:
        reading.add_bad(bad)
    reading.events = events
    return reading


def _event(fields: Fields, start: Micros) -> tuple[Event | None, str]:
    """The event of one line, or None and why it is none."""
    project, text = string_of(fields.get("project")).strip(), string_of(fields.get("text")).strip()
    if not text:
        return None, "no_text"
    if not project:
        return None, "no_project"
    if project == EVERYWHERE:
        return None, "for_everywhere"  # only a person's approval makes a lesson hold everywhere
    stamp = fields.get("occurred_at")
    at = times.parse(stamp) if isinstance(stamp, str | int | float) else None
    if stamp is not None and (at is None or at < start):
        return None, "bad_time"
    kind, agent = string_of(fields.get("kind")) or "note", string_of(fields.get("agent"))
    text = clip(text, TEXT_CAP)
    own = fields.get("id")
    ident = str(own) if isinstance(own, str | int) and str(own) else ""
    key = digest(agent, ident) if ident else digest(agent, project, kind, text, str(at or 0))
    return (
        Event(
            key=key,
            project=project,
            text=text,
            kind=kind[:40],
            occurred_at=at or 0,
            agent=agent[:80],
        ),
        "",
    )
