"""Codex's rollout lines as they stand: only the fields that memory needs.

Three shapes: an envelope ``{timestamp, type, payload}``; in files of 2025 the payloads bare, one
a line, behind a first line without any type; and inside an ``item_completed`` event the newer
items, with their own names of types. All become one struct.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec
import orjson
from msgspec import Raw, Struct

from everest_pipelines.core.transcripts.wire import NotARecord, NotJson, load, mend_characters

NOTHING = Raw(b"")
META = "session_meta"
STATE = "state"  # filler lines of the oldest files


class Git(Struct, gc=False):
    branch: str | None = None


class Item(Struct, gc=False):
    """What a line says; fields of all kinds of lines together."""

    type: str | None = None
    role: str | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    tool: str | None = None
    server: str | None = None
    author: str | None = None
    reason: str | None = None
    status: str | None = None
    turn_id: str | None = None
    timestamp: str | int | float | None = None
    cwd: str | None = None
    model: str | None = None
    cli_version: str | None = None
    originator: str | None = None
    thread_source: str | None = None
    session_id: str | None = None
    parent_thread_id: str | None = None
    started_at: str | int | float | None = None
    num_turns: int | None = None
    exit_code: int | None = None
    success: bool | None = None
    git: Git | None = None
    source: Raw = NOTHING
    content: Raw = NOTHING
    message: Raw = NOTHING
    text: Raw = NOTHING
    arguments: Raw = NOTHING
    input: Raw = NOTHING
    action: Raw = NOTHING
    output: Raw = NOTHING
    result: Raw = NOTHING
    error: Raw = NOTHING
    command: Raw = NOTHING
    changes: Raw = NOTHING
    query: Raw = NOTHING
    invocation: Raw = NOTHING
    content_items: Raw = NOTHING
    aggregated_output: Raw = NOTHING
    stdout: Raw = NOTHING
    stderr: Raw = NOTHING
    images: Raw = NOTHING
    local_images: Raw = NOTHING
    item: Raw = NOTHING


class Entry(Struct, gc=False):
    """One line: the envelope's type and time, and its payload."""

    type: str
    timestamp: str | int | float | None
    item: Item


class _Line(Struct, gc=False):
    type: str | None = None
    timestamp: str | int | float | None = None
    record_type: str | None = None
    id: str | None = None
    payload: Raw = NOTHING


_line = msgspec.json.Decoder(_Line)
_item = msgspec.json.Decoder(Item)
_text = msgspec.json.Decoder(str)
_any = msgspec.json.Decoder()
# What stands bare on a line of the files of 2025.
BARE = frozenset(
    [
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
        "local_shell_call",
        "custom_tool_call",
        "custom_tool_call_output",
        "web_search_call",
    ]
)


def decode(line: bytes) -> Entry:
    """One entry from one JSON object.

    Raises NotJson for anything but one whole JSON value, NotARecord for what is no line of Codex.
    """
    try:
        return _entry(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    line = mend_characters(line)
    try:
        value = load(line)
    except RecursionError as error:
        raise NotJson("nested too deeply") from error
    if not isinstance(value, dict):
        raise NotARecord("no object")
    try:
        return _entry(orjson.dumps(_fit(cast("dict[str, Any]", value))))
    except (msgspec.DecodeError, TypeError, RecursionError) as error:
        raise NotARecord("fields of a wrong shape") from error


def is_record(fields: dict[str, Any], nested: bool) -> bool:
    """Whether an object has the fields of a line; ``nested``: it may be a part of another one."""
    if isinstance(fields.get("type"), str) and isinstance(fields.get("payload"), dict):
        return "timestamp" in fields or not nested
    if nested:
        return False
    kind = fields.get("type")
    return (isinstance(kind, str) and kind in BARE) or "record_type" in fields or _begins(fields)


def _begins(fields: dict[str, Any]) -> bool:
    """Whether an object is the first line of a file of 2025."""
    return "type" not in fields and isinstance(fields.get("id"), str) and "timestamp" in fields


def item_of(raw: Raw) -> Item | None:
    """The item inside an event, or None where it is none."""
    if not bytes(raw).startswith(b"{"):
        return None
    try:
        return _item.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        value = load(bytes(raw))
        return _item.decode(orjson.dumps(_fit(value)))
    except (NotJson, msgspec.DecodeError, TypeError, RecursionError):
        return None


def value_of(raw: Raw) -> Any:
    """The value of a field whose shape differs; None where it is absent."""
    if not raw:
        return None
    try:
        return _any.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def text_of(raw: Raw) -> str:
    """The field's text where it is a string, else an empty one."""
    if not bytes(raw).startswith(b'"'):
        return ""
    try:
        return _text.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def _entry(line: bytes) -> Entry:
    found = _line.decode(line)
    if found.payload:
        if found.type is None:
            raise NotARecord("no type")
        if not bytes(found.payload).startswith(b"{"):
            return Entry(found.type, found.timestamp, Item())
        return Entry(found.type, found.timestamp, _item.decode(found.payload))
    if found.record_type is not None:
        return Entry(STATE, found.timestamp, Item())
    if found.type is not None:
        kind = "response_item" if found.type in BARE else found.type
        return Entry(kind, found.timestamp, _item.decode(line))
    if found.id is None or found.timestamp is None:
        raise NotARecord("no type")
    return Entry(META, found.timestamp, _item.decode(line))


_TEXTS = frozenset(
    field.name
    for struct in (_Line, Item)
    for field in msgspec.structs.fields(struct)
    if field.type == (str | None)
)
_WHOLE = frozenset(["num_turns", "exit_code"])


def _fit(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields without those whose value has a shape that nothing can be made of."""
    fitted: dict[str, Any] = {}
    for name, value in fields.items():
        if value is None:
            continue
        if name in _TEXTS:
            if isinstance(value, str | int | float):
                fitted[name] = str(value)
        elif name in _WHOLE:
            if isinstance(value, int):
                fitted[name] = int(value)
        elif name == "success":
            fitted[name] = str(value).lower() in {"true", "1"}
        elif name in ("timestamp", "started_at"):
            if isinstance(value, str | int | float) and not isinstance(value, bool):
                fitted[name] = value
        elif name == "git":
            if isinstance(value, dict):
                fitted[name] = _fit(cast("dict[str, Any]", value))
        elif name == "branch":
            fitted[name] = value if isinstance(value, str) else None
        elif name == "payload":
            fitted[name] = _fit(cast("dict[str, Any]", value)) if isinstance(value, dict) else value
        else:
            fitted[name] = value
    return fitted
