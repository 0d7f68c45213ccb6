"""The reader of Claude Code's session files (CLI 1.0 to 2.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from everest_pipelines.core.records import Micros
from everest_pipelines.core.transcripts.claude_agent import add_assistant
from everest_pipelines.core.transcripts.claude_finish import finish
from everest_pipelines.core.transcripts.claude_known import SILENT
from everest_pipelines.core.transcripts.claude_person import (
    add_attachment,
    add_queue_operation,
    add_system,
    add_user,
)
from everest_pipelines.core.transcripts.claude_session import Session
from everest_pipelines.core.transcripts.lines import Redact, Sink, Suspects, lines, unredacted
from everest_pipelines.core.transcripts.reading import Reading
from everest_pipelines.core.transcripts.walk import walk
from everest_pipelines.core.transcripts.wire import Record, decode

NAME = "claude-code"
_BEGINNING = re.compile(
    rb'\{\s*"(?:parentUuid|type|sessionId|uuid|isSidechain|messageId|leafUuid|timestamp|summary)"'
)
_TYPE = re.compile(
    rb'"type":\s*"(?:user|assistant|system|progress|attachment|queue-operation|custom-title|'
    rb'last-prompt|mode|permission-mode|pr-link)"'
)
LOOKED_AT = 50  # lines of a file's beginning


def recognises(head: bytes, path: str) -> bool:
    """Whether the beginning of a file looks like Claude Code's records; the name says nothing."""
    del path
    for line in head.replace(b"\0", b"").split(b"\n")[:LOOKED_AT]:
        line = line.lstrip(b"\xef\xbb\xbf \t\r")
        if not _BEGINNING.match(line):
            continue
        if b'"sessionId"' in line and _TYPE.search(line):
            return True
        if b'"leafUuid"' in line and b'"summary"' in line:
            return True
        if b'"file-history-snapshot"' in line and b'"snapshot"' in line:
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
    """Read a whole file from its first byte; ``blocks`` may be cut anywhere.

    ``start``: no time before it is believed (microseconds UTC). ``redact`` is applied to every
    line before it is decoded (see ``lines`` for ``suspects``); ``sink`` gets the redacted whole
    lines with their offsets. Never raises on any content: what cannot be read is in ``bad``, named
    with line, offset, reason.
    """
    session = Session(path, start)
    reading = Reading()
    walk(
        lines(blocks, redact=redact, suspects=suspects, sink=sink),
        reading,
        path=path,
        decode=decode,
        is_record=_is_record,
        take=lambda record, line, content: _take(session, record, line, content),
    )
    finish(session, reading)
    return reading


def _is_record(fields: dict[str, Any], nested: bool) -> bool:
    if not isinstance(fields.get("type"), str):
        return False
    return not nested or "sessionId" in fields or "leafUuid" in fields or "snapshot" in fields


def _take(session: Session, record: Record, line: int, content: bytes) -> str:
    """One record to the room that its type names; returns the name of an unknown type."""
    source = session.meet(record, line, content)
    kind = record.type
    if kind == "assistant":
        add_assistant(session, source)
    elif kind == "user":
        add_user(session, source)
    elif kind in SILENT:
        pass
    elif kind == "queue-operation":
        add_queue_operation(session, source)
    elif kind == "system":
        add_system(session, source)
    elif kind == "attachment":
        return add_attachment(session, source)
    else:
        return kind or "(empty)"
    return ""
