"""How much text of a turn is stored: head and tail, with a visible mark where it was cut."""

from __future__ import annotations

from typing import Any, cast

import orjson

TEXT_CAP = 64 * 1024  # characters of a turn's text
HARNESS_CAP = 2_000  # of a harness turn's: nobody's words, kept to be recognised
TOOL_CAP = 2_000  # of a tool's input or output
HEAD = 0.6  # share of the cap that the beginning gets: the error's end matters too
MARK = "\n… [{} characters cut] …\n"
_STRING_CAPS = (600, 300, 150, 60)  # tried in turn for the strings of a long input


def clip(text: str, cap: int) -> str:
    """The text, or its head and tail around a mark when it is longer than the cap."""
    if len(text) <= cap:
        return text
    head = int(cap * HEAD)
    tail = cap - head
    return text[:head] + MARK.format(len(text) - cap) + text[-tail:]


def byte_size(text: str) -> int:
    """UTF-8 bytes of a text."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def clip_json(data: bytes, cap: int = TOOL_CAP) -> str:
    """A tool's input as JSON text below the cap: long strings in it are cut, keys stay.

    Only when that is not enough is the JSON text itself cut (and is then no JSON any more).
    """
    if len(data) <= cap:
        return data.decode("utf-8", "replace")
    try:
        value = orjson.loads(data)
        for limit in _STRING_CAPS:
            text = orjson.dumps(_clipped(value, limit)).decode()
            if len(text) <= cap:
                return text
    except (orjson.JSONDecodeError, TypeError, RecursionError):
        pass
    return clip(data.decode("utf-8", "replace"), cap)


def _clipped(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return clip(value, limit)
    if isinstance(value, list):
        return [_clipped(item, limit) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: _clipped(item, limit) for key, item in cast("dict[str, Any]", value).items()}
    return value
