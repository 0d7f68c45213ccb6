"""The reader of ChatGPT's exports (``conversations.json``, or shards of it)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

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

NAME = "chatgpt"
_BEGINS = re.compile(rb'\{\s*"(?:title|conversation_id|create_time)"\s*:')
_MAPPING = re.compile(rb'"mapping"\s*:\s*\{')
_TITLE = re.compile(rb'"(?:title|create_time|conversation_id)"\s*:')
_HIDDEN = ("is_visually_hidden_from_conversation", "is_user_system_message")
# What a message's content can be; what stands under None is thinking and is not kept.
_CONTENT: dict[str, str | None] = {
    "text": "text",
    "multimodal_text": "text",
    "code": "code",
    "execution_output": "output",
    "computer_output": "output",
    "tether_browsing_display": "output",
    "tether_browsing_code": "code",
    "tether_quote": "output",
    "sonic_webpage": "output",
    "super_widget_content": "output",
    "system_error": "error",
    "user_editable_context": "hidden",
    "model_editable_context": "hidden",
    "citable_code_output": "output",
    "app_pairing_content": "hidden",
    "thoughts": None,
    "reasoning_recap": None,
}


def recognises(head: bytes, path: str) -> bool:
    """Whether a file begins like a list of conversations that are trees of messages."""
    del path
    beginning = head.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf \t\r\n")
    return (
        beginning[:1] in (b"[", b"{")
        and _TITLE.search(beginning, 0, 4096) is not None
        and _MAPPING.search(beginning) is not None
    )


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
    if "mapping" in fields:
        return True
    return "title" in fields and ("id" in fields or "conversation_id" in fields)


def _take(sessions: Reading, fields: Fields, line: int, path: str, start: Micros) -> str:
    """One conversation; returns the name of a kind of content that is unknown."""
    ident = string_of(fields.get("conversation_id")) or string_of(fields.get("id"))
    nodes = fields_of(fields.get("mapping"))
    if not nodes:
        return ""  # deleted, or never begun
    ident = ident or f"{NAME}-{next(iter(nodes))}"
    talk = Talk(path=path, start=start, agent=NAME, session_id=ident)
    project = string_of(fields.get("gizmo_id")) or string_of(fields.get("conversation_template_id"))
    talk.go(f"{NAME}/{project}" if project.startswith("g-p-") else NAME)
    talk.at(fields.get("create_time"), line, b"")
    unknown = ""
    for node in _branch(nodes, string_of(fields.get("current_node"))):
        message = fields_of(nodes[node]).get("message")
        if isinstance(message, dict):
            unknown = _message(talk, node, fields_of(message), line) or unknown
    talk.finish(sessions)
    return unknown


def _branch(nodes: Fields, current: str) -> list[str]:
    """The nodes from the root to the current one; without one, to the newest leaf.

    A parent that is missing is the node that names this one as its child.
    """
    above = {child: name for name, node in nodes.items() for child in _children(node)}
    if current not in nodes:
        leaves = [
            (_time_of(node), place, name)
            for place, (name, node) in enumerate(nodes.items())
            if not any(child in nodes for child in _children(node))
        ]
        current = max(leaves)[2] if leaves else next(reversed(nodes))
    path: list[str] = []
    seen: set[str] = set()
    while current in nodes and current not in seen:
        seen.add(current)
        path.append(current)
        parent = string_of(fields_of(nodes[current]).get("parent"))
        current = parent if parent in nodes else above.get(current, "")
    return path[::-1]


def _children(node: Any) -> list[str]:
    children = list_of(fields_of(node).get("children"))
    return [child for child in children if isinstance(child, str)]


def _time_of(node: Any) -> float:
    at = fields_of(fields_of(node).get("message")).get("create_time")
    return float(at) if isinstance(at, int | float) else 0.0


def _message(talk: Talk, node: str, fields: Fields, line: int) -> str:
    content, meta = fields_of(fields.get("content")), fields_of(fields.get("metadata"))
    kind = string_of(content.get("content_type")) or "text"
    use = _CONTENT.get(kind, "output")
    talk.at(fields.get("create_time"), line, json_of(fields))
    role = string_of(fields_of(fields.get("author")).get("role"))
    ident = string_of(fields.get("id")) or node
    text = text_of(content.get("parts")) or string_of(content.get("text"))
    text = text or string_of(content.get("result"))
    if use is None:
        return ""
    if use == "hidden" or role == "system" or any(meta.get(name) for name in _HIDDEN):
        talk.harness(ident, text or string_of(content.get("user_instructions")))
    elif role == "user":
        talk.person(ident, text)
    elif role == "tool":
        talk.result(None, text, error=use == "error")
    elif role == "assistant":
        recipient = string_of(fields.get("recipient")) or "all"
        if recipient == "all" and use != "code":
            talk.reply(ident, text, meta.get("model_slug"))
        else:
            name = recipient if recipient != "all" else string_of(content.get("language"))
            talk.call(talk.reply(ident, "", meta.get("model_slug")), ident, name, {"code": text})
    else:
        return f"role:{role}"
    return "" if kind in _CONTENT else f"content:{kind}"
