"""The reader of Claude.ai's exports (``conversations.json``)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from everest_pipelines.core.records import Micros
from everest_pipelines.core.transcripts.fields import Fields, read_document
from everest_pipelines.core.transcripts.lines import Redact, Sink, Suspects, unredacted
from everest_pipelines.core.transcripts.reading import Reading
from everest_pipelines.core.transcripts.talk import (
    Talk,
    fields_of,
    json_of,
    list_of,
    string_of,
    text_of,
)

NAME = "claude-ai"
_BEGINS = re.compile(rb'\{\s*"uuid"\s*:')
_MARK = re.compile(rb'"chat_messages"\s*:\s*\[')
# Blocks of a message; what a person or the agent did not say is left out.
_SILENT = frozenset(["thinking", "redacted_thinking", "token_budget", "flag", "image", "file"])


def recognises(head: bytes, path: str) -> bool:
    """Whether a file begins like a list of conversations with ``chat_messages``."""
    del path
    beginning = head.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf \t\r\n")
    return beginning[:1] in (b"[", b"{") and _MARK.search(beginning) is not None


def read(
    blocks: Iterable[bytes],
    *,
    path: str,
    start: Micros,
    redact: Redact = unredacted,
    suspects: Suspects | None = None,
    sink: Sink | None = None,
) -> Reading:
    """Read an export conversation by conversation; parameters as of ``claude.read``."""
    sessions = Reading()
    reading = read_document(
        blocks,
        path=path,
        redact=redact,
        suspects=suspects,
        sink=sink,
        begins=_BEGINS,
        is_record=_is_record,
        take=lambda fields, line, _: _take(sessions, fields, line, path, start),
    )
    reading.adopt(sessions)
    return reading


def _is_record(fields: Fields) -> bool:
    return "chat_messages" in fields or ("uuid" in fields and "name" in fields)


def _take(sessions: Reading, fields: Fields, line: int, path: str, start: Micros) -> str:
    """One conversation; returns the type of a block that is unknown."""
    messages = [fields_of(one) for one in list_of(fields.get("chat_messages"))]
    messages = [one for one in messages if one]
    if not messages:
        return ""
    ident = string_of(fields.get("uuid")) or f"{NAME}-{string_of(messages[0].get('uuid'))}"
    talk = Talk(path=path, start=start, agent=NAME, session_id=ident)
    project = fields_of(fields.get("project"))
    name = string_of(project.get("name")) or string_of(project.get("uuid"))
    name = name or string_of(fields.get("project_uuid"))
    talk.go(f"{NAME}/{name}" if name else NAME)
    talk.at(fields.get("created_at"), line, b"")
    unknown = ""
    for message in _branch(messages):
        unknown = _message(talk, message, line) or unknown
    talk.finish(sessions)
    return unknown


def _branch(messages: list[Fields]) -> list[Fields]:
    """The messages up to the newest one; a retry leaves its earlier answer aside.

    Where messages name no parents (older exports) all are one line.
    """
    by_id = {string_of(one.get("uuid")): one for one in messages}
    if len(by_id) < len(messages) or not any(
        string_of(one.get("parent_message_uuid")) in by_id for one in messages
    ):
        return messages
    place = {string_of(one.get("uuid")): place for place, one in enumerate(messages)}
    parents = {string_of(one.get("parent_message_uuid")) for one in messages}
    leaves = [name for name in by_id if name not in parents]
    when = {name: (string_of(by_id[name].get("created_at")), place[name]) for name in by_id}
    here = max(leaves or by_id, key=when.__getitem__)
    path: list[Fields] = []
    while here in by_id:
        path.append(by_id.pop(here))
        here = string_of(path[-1].get("parent_message_uuid"))
    return path[::-1]


def _message(talk: Talk, fields: Fields, line: int) -> str:
    talk.at(fields.get("created_at"), line, json_of(fields))
    ident, sender = fields.get("uuid"), string_of(fields.get("sender"))
    blocks = [fields_of(one) for one in list_of(fields.get("content"))]
    said = text_of([one for one in blocks if one.get("type") == "text"])
    said = said or string_of(fields.get("text"))
    if sender == "human":
        talk.person(ident, said)
        return ""
    if sender != "assistant":
        return f"sender:{sender}"
    draft = talk.reply(ident, said)
    unknown = ""
    for place, block in enumerate(blocks):
        kind = string_of(block.get("type"))
        if kind == "tool_use":
            call = string_of(block.get("id")) or f"{draft.turn_id}:{place}"
            talk.call(draft, call, block.get("name"), block.get("input"))
        elif kind == "tool_result":
            output = text_of(block.get("content"))
            talk.result(block.get("tool_use_id"), output, error=block.get("is_error") is True)
        elif kind != "text" and kind not in _SILENT:
            unknown = f"block:{kind}"
    return unknown
