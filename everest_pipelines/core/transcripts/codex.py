"""The reader of Codex's rollouts (CLI 0.2x of 2025 to 0.15x)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from everest_pipelines.core.records import Micros
from everest_pipelines.core.transcripts import times
from everest_pipelines.core.transcripts.codex_finish import finish
from everest_pipelines.core.transcripts.codex_items import add_event, add_item, add_notice
from everest_pipelines.core.transcripts.codex_session import Session
from everest_pipelines.core.transcripts.codex_wire import META, STATE, Entry, decode, is_record
from everest_pipelines.core.transcripts.lines import Redact, Sink, Suspects, lines, unredacted
from everest_pipelines.core.transcripts.reading import Reading
from everest_pipelines.core.transcripts.walk import walk

NAME = "codex"
LOOKED_AT = 50  # lines of a file's beginning
SILENT = frozenset([STATE, "world_state", "inter_agent_communication_metadata"])
_TYPE = re.compile(
    rb'"type":\s*"(?:session_meta|response_item|event_msg|turn_context|compacted|world_state)"'
)
_FIRST_OF_2025 = re.compile(
    rb'\{\s*"id":\s*"[0-9a-f-]{36}",\s*"timestamp":\s*"[^"]{10,40}",\s*"(?:instructions|git)":'
)
_STATE = re.compile(rb'\{\s*"record_type":\s*"state"')


def recognises(head: bytes, path: str) -> bool:
    """Whether the beginning of a file looks like a rollout; the name says nothing."""
    del path
    for line in head.replace(b"\0", b"").split(b"\n")[:LOOKED_AT]:
        line = line.lstrip(b"\xef\xbb\xbf \t\r")
        if not line.startswith(b"{"):
            continue
        if b'"payload"' in line and _TYPE.search(line):
            return True
        if _FIRST_OF_2025.match(line) or _STATE.match(line):
            return True
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
    """Read a whole rollout from its first byte; parameters and promises as of ``claude.read``."""
    session = Session(path, start)
    reading = Reading()
    walk(
        lines(blocks, redact=redact, suspects=suspects, sink=sink),
        reading,
        path=path,
        decode=decode,
        is_record=is_record,
        take=lambda entry, line, content: _take(session, entry, line, content),
    )
    finish(session, reading)
    return reading


def _take(session: Session, entry: Entry, line: int, content: bytes) -> str:
    """One entry to the room that its type names; returns the name of an unknown type."""
    kind, item = entry.type, entry.item
    if kind == META:
        session.begin(item, times.parse(entry.timestamp))
    elif kind == "turn_context":
        session.model = item.model or session.model
        session.begin_stretch(item.turn_id, None)
        session.go(item.cwd)
    elif kind == "event_msg" and item.type in ("task_started", "turn_started"):
        session.begin_stretch(item.turn_id, times.parse(item.started_at))
    source = session.meet(entry, line, content)
    if session.copied and session.is_subagent:
        return ""  # the parent's words: its own file has them
    if kind == "response_item":
        return add_item(session, source, item)
    if kind == "event_msg":
        return add_event(session, source, item)
    if kind in ("compacted", "inter_agent_communication"):
        add_notice(session, source, kind, item)
        return ""
    return "" if kind in SILENT or kind in (META, "turn_context") else kind or "(empty)"
