"""Claude Code's records as they stand on a line: only the fields that memory needs.

Decoding climbs down a ladder: the typed decoder; the same after mending lone surrogates and
bytes that are no UTF-8; a plain JSON load whose ill-typed fields are left out. What still
fails is a matter for ``mend``.
"""

from __future__ import annotations

import json
import re
from typing import Any, cast

import msgspec
import orjson
from msgspec import Raw, Struct

NOTHING = Raw(b"")


class Block(Struct, gc=False):
    """A content block of a message; fields of all kinds of blocks together."""

    type: str | None = None
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = NOTHING
    tool_use_id: str | None = None
    content: str | list[Block | str] | None = None
    is_error: bool | None = None
    source: Raw = NOTHING


class Message(Struct, gc=False):
    id: str | None = None
    model: str | None = None
    content: str | list[Block | str] | None = None


class Origin(Struct, gc=False):
    kind: str | None = None


class Attachment(Struct, gc=False):
    type: str | None = None
    prompt: str | list[Block | str] | None = None
    commandMode: str | None = None
    content: Raw = NOTHING


class Record(Struct, gc=False):
    """One record; what a type lacks stays at its default."""

    type: str
    uuid: str | None = None
    parentUuid: str | None = None
    sessionId: str | None = None
    timestamp: str | int | float | None = None
    cwd: str | None = None
    version: str | None = None
    gitBranch: str | None = None
    isSidechain: bool | None = None
    agentId: str | None = None
    isMeta: bool | None = None
    isCompactSummary: bool | None = None
    isApiErrorMessage: bool | None = None
    entrypoint: str | None = None
    origin: Origin | None = None
    toolDenialKind: str | None = None
    message: Message | None = None
    toolUseResult: Raw = NOTHING
    planContent: Raw = NOTHING
    # queue-operation, system and attachment records
    operation: str | None = None
    subtype: str | None = None
    content: Raw = NOTHING
    attachment: Attachment | None = None


class NotARecord(ValueError):
    """Valid JSON, but no record."""


class NotJson(ValueError):
    """No whole JSON value."""


_record = msgspec.json.Decoder(Record)
_blocks = msgspec.json.Decoder(str | list[Block | str])
_text = msgspec.json.Decoder(str)
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def decode(line: bytes) -> Record:
    """One record from one JSON object.

    Raises NotJson for anything but one whole JSON value, NotARecord for a value without a type.
    """
    try:
        return _record.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    return _decode_slowly(line)


def content_of(raw: Raw) -> str | list[Block | str] | None:
    """The text or the blocks of a field whose shape differs by record type; None for others."""
    if not raw:
        return None
    try:
        return _blocks.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def text_of(raw: Raw) -> str | None:
    """The field's text where it is a JSON string, else None."""
    data = bytes(raw)
    if not data.startswith(b'"'):
        return None
    try:
        return _text.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def mend_characters(line: bytes) -> bytes:
    """Lone surrogates and bytes that are no UTF-8 become U+FFFD, everything else stays."""
    try:
        line.decode()
    except UnicodeDecodeError:
        line = line.decode("utf-8", "replace").encode()
    if b"\\ud" in line or b"\\uD" in line:
        line = _ESCAPE.sub(lambda found: b"\\ufffd" if found.group(1) else found.group(0), line)
    return line


def _decode_slowly(line: bytes) -> Record:
    line = mend_characters(line)
    try:
        value = load(line)
    except RecursionError as error:
        raise NotJson("nested too deeply") from error
    if not isinstance(value, dict):
        raise NotARecord("no object")
    fields = cast("dict[str, Any]", value)
    if not isinstance(fields.get("type"), str):
        raise NotARecord("no type")
    try:
        return _record.decode(orjson.dumps(_fit_record(fields)))
    except (msgspec.DecodeError, TypeError, RecursionError) as error:
        raise NotARecord("fields of a wrong shape") from error


def load(line: bytes) -> Any:
    """The value of one JSON text, also of one that only a lenient reader takes; else NotJson."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        pass
    try:  # raw control characters, NaN, numbers beyond 64 bits
        return json.loads(
            line.decode(), strict=False, parse_constant=lambda _: None, parse_int=_small_number
        )
    except ValueError as error:
        raise NotJson(str(error)) from error


def _small_number(digits: str) -> int | float:
    return int(digits) if len(digits) < 19 else float(digits)


_TEXTS = frozenset(
    [
        "type",
        "uuid",
        "parentUuid",
        "sessionId",
        "cwd",
        "version",
        "gitBranch",
        "agentId",
        "entrypoint",
        "toolDenialKind",
        "operation",
        "subtype",
        "id",
        "name",
        "model",
        "text",
        "tool_use_id",
        "kind",
        "commandMode",
    ]
)
_SWITCHES = frozenset(
    ["isSidechain", "isMeta", "isCompactSummary", "isApiErrorMessage", "is_error"]
)


def _fit_fields(fields: dict[str, Any]) -> dict[str, Any]:
    fitted: dict[str, Any] = {}
    for name, value in fields.items():
        if name in _TEXTS and value is not None and not isinstance(value, str):
            if isinstance(value, int | float):
                fitted[name] = str(value)
        elif name in _SWITCHES and value is not None and not isinstance(value, bool):
            fitted[name] = str(value).lower() in {"true", "1"}
        else:
            fitted[name] = value
    return fitted


def _fit_content(content: Any) -> Any:
    if isinstance(content, str) or content is None:
        return content
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return str(cast("object", content))
    blocks: list[Any] = []
    for item in cast("list[Any]", content):
        if isinstance(item, dict):
            block = _fit_fields(cast("dict[str, Any]", item))
            if "content" in block:
                block["content"] = _fit_content(block["content"])
            blocks.append(block)
        elif isinstance(item, str):
            blocks.append(item)
    return blocks


def _fit_record(fields: dict[str, Any]) -> dict[str, Any]:
    fitted = _fit_fields(fields)
    if not isinstance(fitted.get("timestamp"), str | int | float | None):
        del fitted["timestamp"]
    for name in ("message", "origin", "attachment"):
        value = fitted.get(name)
        if isinstance(value, dict):
            inner = _fit_fields(cast("dict[str, Any]", value))
            for key in ("content", "prompt"):
                if key in inner and (name != "attachment" or key == "prompt"):
                    inner[key] = _fit_content(inner[key])
            fitted[name] = inner
        elif value is not None:
            fitted[name] = {"content": value} if name == "message" else None
    if isinstance(fitted.get("message"), dict) and not isinstance(
        fitted["message"].get("content"), str | list
    ):
        fitted["message"]["content"] = _fit_content(fitted["message"].get("content"))
    return fitted
