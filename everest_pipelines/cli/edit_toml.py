"""A table of our own in somebody's TOML file: appended as text, taken out as text.

Whether the text does what it should is asked of the parser, before anything is written.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

from everest_pipelines.cli.edit_json import BrokenFileError

_HEADER = re.compile(r"^[ \t]*\[{1,2}[ \t]*([^\]\n]+?)[ \t]*\]{1,2}[ \t]*(?:#.*)?$")


def read(text: str) -> dict[str, Any]:
    """The value of a text. Raises BrokenFileError with the line."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        number = int(line[1]) if line else text.count("\n") + 1
        raise BrokenFileError(re.sub(r" \(at .*\)$", "", str(error)), number) from None


def add(text: str, path: tuple[str, ...], value: dict[str, Any]) -> str:
    """`text` with the table `value` at `path`, behind all that is there.

    Raises BrokenFileError for a text that is no TOML, and for one that has no room for a table of
    that name (where its parent is written on one line).
    """
    before = read(text)
    newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    lines = _table(path, value)
    gap = "" if not text or text.endswith(("\n\n", "\n\r\n")) else newline
    if text and not text.endswith("\n"):
        gap = newline * 2
    after = text + gap + newline.join(lines) + newline
    wanted = json.loads(json.dumps(before, default=str))
    inner = wanted
    for key in path[:-1]:
        inner = inner.setdefault(key, {})
    inner[path[-1]] = value
    try:
        found = json.loads(json.dumps(read(after), default=str))
    except BrokenFileError:
        found = None
    if found != wanted:
        raise BrokenFileError(f"there is no room for a table [{'.'.join(path)}]", 1)
    return after


def _table(path: tuple[str, ...], value: dict[str, Any]) -> list[str]:
    lines = [f"[{'.'.join(path)}]"]
    lines += [f"{key} = {_value(one)}" for key, one in value.items()]
    return lines


def _value(value: Any) -> str:
    if isinstance(value, dict):
        inside = ", ".join(f"{key} = {_value(one)}" for key, one in value.items())
        return f"{{ {inside} }}"
    # Strings and lists of them: JSON's escapes are TOML's, but for U+007F.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def remove(text: str, path: tuple[str, ...]) -> str:
    """`text` without the table at `path`, those below it, and the empty line before it.

    Raises BrokenFileError where that would change anything else.
    """
    before = read(text)
    kept: list[str] = []
    ours = False
    name = ".".join(path)
    for line in text.splitlines(keepends=True):
        header = _HEADER.match(line.rstrip("\r\n"))
        if header:
            title = re.sub(r"[\s\"']", "", header[1])
            starts = title == name or title.startswith(f"{name}.")
            if starts and not ours and kept and not kept[-1].strip():
                kept.pop()
            ours = starts
        if not ours:
            kept.append(line)
    after = "".join(kept)
    wanted = json.loads(json.dumps(before, default=str))
    _drop(wanted, path)
    found = json.loads(json.dumps(read(after), default=str))
    _drop(found, path)
    if found != wanted:
        raise BrokenFileError(f"[{name}] cannot be taken out by itself", 1)
    return after


def _drop(value: dict[str, Any], path: tuple[str, ...]) -> None:
    """Take the key out, and each of its parents that is empty then."""
    chain = [value]
    for key in path[:-1]:
        inner = chain[-1].get(key)
        if not isinstance(inner, dict):
            return
        chain.append(inner)
    chain[-1].pop(path[-1], None)
    for inner, key in zip(reversed(chain[:-1]), reversed(path[:-1]), strict=True):
        if inner.get(key) == {}:
            del inner[key]
