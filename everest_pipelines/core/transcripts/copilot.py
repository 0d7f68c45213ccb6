"""The reader of Copilot CLI's event logs (``session-state/<id>/events.jsonl``)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from everest_pipelines.core.records import Channel, Micros
from everest_pipelines.core.transcripts.fields import Fields, read_lines
from everest_pipelines.core.transcripts.lines import Redact, Sink, Suspects, unredacted
from everest_pipelines.core.transcripts.reading import Reading
from everest_pipelines.core.transcripts.talk import (
    Talk,
    fields_of,
    list_of,
    string_of,
    text_of,
)

NAME = "copilot"
LOOKED_AT = 50  # lines of a file's beginning
_TYPE = re.compile(
    rb'"type":\s*"(?:session|user|assistant|tool|hook|system|permission|subagent)\.[a-z_]+"'
)
# Events that hold nothing that memory needs: what they repeat stands in messages and results.
_SILENT = {
    "session": (
        "start resume context_changed model_change idle info warning handoff truncation "
        "usage_info compaction_start snapshot_rewind shutdown task_complete "
        "permissions_changed mode_changed plan_changed title_changed "
        "workspace_file_changed custom_agents_updated tools_updated "
        "background_tasks_changed skills_loaded mcp_servers_loaded "
        "mcp_server_status_changed extensions_loaded import_legacy "
    ),
    "assistant": (
        "turn_start turn_end intent reasoning reasoning_delta message_delta streaming_delta usage "
    ),
    "tool": ("user_requested execution_start execution_partial_result execution_progress "),
    "hook": ("start end "),
    "permission": ("requested "),
    "skill": ("invoked "),
    "subagent": ("started completed failed selected deselected "),
    "pending_messages": ("modified "),
    "user_input": ("requested "),
    "elicitation": ("requested completed "),
    "external_tool": ("requested completed "),
    "command": ("queued completed "),
}
SILENT = frozenset(f"{kind}.{one}" for kind, ones in _SILENT.items() for one in ones.split())


def recognises(head: bytes, path: str) -> bool:
    """Whether the beginning of a file looks like Copilot's events; the name says nothing."""
    del path
    for line in head.replace(b"\0", b"").split(b"\n")[:LOOKED_AT]:
        line = line.lstrip(b"\xef\xbb\xbf \t\r")
        if line.startswith(b"{") and b'"data"' in line and _TYPE.search(line, 0, 4096):
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
    """Read a whole event log from its first byte; parameters and promises as of ``claude.read``."""
    parts = re.split(r"[/\\]", path)
    folder = parts[-2] if len(parts) > 1 and parts[-1] == "events.jsonl" else parts[-1]
    talk = Talk(path=path, start=start, agent=NAME, session_id=folder.removesuffix(".jsonl"))
    reading = read_lines(
        blocks,
        path=path,
        redact=redact,
        suspects=suspects,
        sink=sink,
        is_record=_is_record,
        take=lambda fields, line, content: _take(talk, fields, line, content),
    )
    if reading.records:
        talk.finish(reading)
    return reading


def _is_record(fields: Fields) -> bool:
    return isinstance(fields.get("type"), str) and isinstance(fields.get("data"), dict)


def _take(talk: Talk, fields: Fields, line: int, content: bytes) -> str:
    """One event to what it says; returns the name of an unknown type."""
    kind, data, ident = fields["type"], fields_of(fields["data"]), fields.get("id")
    talk.at(fields.get("timestamp"), line, content)
    if kind in ("session.start", "session.resume", "session.context_changed"):
        _begin(talk, data)
    elif kind == "user.message":
        _person(talk, ident, data)
    elif kind == "assistant.message":
        model = data.get("model") or talk.model
        draft = talk.reply(data.get("messageId") or ident, text_of(data.get("content")), model)
        for request in map(fields_of, list_of(data.get("toolRequests"))):
            name, arguments = request.get("name"), request.get("arguments")
            talk.call(draft, request.get("toolCallId"), name, arguments)
    elif kind == "tool.execution_complete":
        failed = data.get("success") is False
        error, done = fields_of(data.get("error")), fields_of(data.get("result"))
        output = string_of(error.get("message")) if failed else ""
        output = output or string_of(done.get("content")) or string_of(data.get("error"))
        talk.result(data.get("toolCallId"), output, error=failed)
    elif kind == "permission.completed":
        result = fields_of(data.get("result"))
        if string_of(result.get("kind")).startswith("denied-interactively"):
            call = data.get("toolCallId") or result.get("toolCallId")
            talk.refuse(call, string_of(result.get("feedback")))
    elif kind == "user_input.completed":
        if text := string_of(data.get("answer")):
            talk.person(ident, text, channel=Channel.COMMENT)
    elif kind == "abort":
        talk.harness(ident, string_of(data.get("reason")) or "aborted", Channel.INTERRUPTION)
    elif kind == "session.error":
        talk.harness(ident, string_of(data.get("message")), Channel.OTHER, "api_error")
    elif kind == "session.compaction_complete":
        talk.harness(ident, string_of(data.get("summaryContent")), Channel.COMPACTION)
    elif kind == "system.notification":
        talk.harness(ident, text_of(data.get("content")), Channel.NOTIFICATION)
    elif kind == "system.message":
        talk.harness(ident, text_of(data.get("content")))
    elif kind == "session.model_change":
        talk.model = string_of(data.get("newModel")) or talk.model
    elif kind not in SILENT:
        return kind or "(empty)"
    return ""


def _begin(talk: Talk, data: Fields) -> None:
    talk.session_id = string_of(data.get("sessionId")) or talk.session_id
    context = fields_of(data.get("context")) or data
    talk.go(context.get("cwd"))
    talk.branch = string_of(context.get("branch")) or talk.branch
    talk.version = string_of(data.get("copilotVersion")) or talk.version
    talk.model = string_of(data.get("selectedModel")) or talk.model


def _person(talk: Talk, ident: object, data: Fields) -> None:
    """A message in the person's place. ``source`` names another one: a skill, a hook, a timer."""
    source = string_of(data.get("source"))
    text = text_of(data.get("content"))
    if source and source not in ("user", "cli"):
        talk.harness(ident, text, Channel.NOTIFICATION, f"source:{source[:40]}")
    else:
        talk.person(ident, text)
