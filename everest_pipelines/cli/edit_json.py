"""Changing a JSON file of somebody else by inserting text: everything that is there stays.

Comments and trailing commas (JSONC) are read where the owner of the file allows them. Nothing is
ever written anew: a member is put behind the last one, in the file's own indentation, and taken
out again with its comma.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

Key = str | int
Path = tuple[Key, ...]


class BrokenFileError(ValueError):
    """The text is not what its name promises. `line` counts from 1."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.what = what
        self.line = line


@dataclass
class Node:
    """A value and where it stands."""

    start: int
    end: int
    value: Any
    # Of an object or array: (where the member starts, its key or index, its value).
    members: list[tuple[int, Key, Node]] = field(default_factory=list)
    comma_after_last: bool = False

    def at(self, path: Path) -> Node | None:
        """The node at a path below this one; None when there is none. The last of equal keys."""
        node: Node | None = self
        for key in path:
            if node is None:
                return None
            found = [child for _, name, child in node.members if name == key]
            node = found[-1] if found and isinstance(node.value, dict | list) else None
        return node


_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_DEEPEST = 200


class _Reader:
    def __init__(self, text: str, *, comments: bool) -> None:
        self.text = text
        self.comments = comments

    def whole(self) -> Node:
        node = self.value(self.skip(0), 0)
        end = self.skip(node.end)
        if end != len(self.text):
            raise self.broken("something follows the value", end)
        return node

    def broken(self, what: str, at: int) -> BrokenFileError:
        return BrokenFileError(what, self.text.count("\n", 0, at) + 1)

    def skip(self, at: int) -> int:
        while True:
            found = _SPACE.match(self.text, at)
            at = found.end() if found else at
            comment = _COMMENT.match(self.text, at)
            if comment is None:
                return at
            if not self.comments:
                raise self.broken("a comment, which this agent does not read", at)
            at = comment.end()

    def value(self, at: int, depth: int) -> Node:
        if depth > _DEEPEST:
            raise self.broken("nested too deeply", at)
        sign = self.text[at : at + 1]
        if sign == "{":
            return self.container(at, depth, "}", {})
        if sign == "[":
            return self.container(at, depth, "]", [])
        if sign == '"':
            return self.string(at)
        found = _SCALAR.match(self.text, at)
        if found is None:
            what = f"unexpected {sign!r}" if sign else "the end came too early"
            raise self.broken(what, at)
        return Node(at, found.end(), json.loads(found[0]))

    def string(self, at: int) -> Node:
        found = _STRING.match(self.text, at)
        try:
            if found is None:
                raise ValueError
            return Node(at, found.end(), json.loads(found[0]))
        except ValueError:
            raise self.broken("a broken string", at) from None

    def container(self, at: int, depth: int, closing: str, value: Any) -> Node:
        node = Node(at, at, value)
        here = self.skip(at + 1)
        while self.text[here : here + 1] != closing:
            if node.members and not node.comma_after_last:
                raise self.broken("a comma is missing", here)
            start = here
            key: Key = len(node.members)
            if closing == "}":
                if self.text[here : here + 1] != '"':
                    raise self.broken("a name in quotes was expected", here)
                name = self.string(here)
                key = str(name.value)
                here = self.skip(name.end)
                if self.text[here : here + 1] != ":":
                    raise self.broken("a colon is missing", here)
                here = self.skip(here + 1)
            child = self.value(here, depth + 1)
            node.members.append((start, key, child))
            if isinstance(value, dict):
                value[key] = child.value
            else:
                value.append(child.value)
            here = self.skip(child.end)
            node.comma_after_last = self.text[here : here + 1] == ","
            if node.comma_after_last:
                here = self.skip(here + 1)
        if node.comma_after_last and not self.comments:
            raise self.broken("a comma with nothing behind it", here)
        node.end = here + 1
        return node


def read(text: str, *, comments: bool) -> Node:
    """The tree of a text. Raises BrokenFileError with the line."""
    return _Reader(text, comments=comments).whole()


def add(text: str, path: Path, value: Any, *, comments: bool) -> str:
    """`text` with `value` under the last key of `path`, or, when that is -1, at a list's end.

    Objects on the way that are missing are made. Raises BrokenFileError for a text that is no JSON
    and for a value on the way that is no object (or list); the key must not be there yet.
    """
    root = read(text, comments=comments)
    node = root
    for depth, key in enumerate(path):
        wanted = list if key == -1 else dict
        if not isinstance(node.value, wanted):
            raise BrokenFileError(
                f"{'.'.join(map(str, path[:depth])) or 'the file'} is no"
                f" {'list' if wanted is list else 'object'}",
                text.count("\n", 0, node.start) + 1,
            )
        child = node.at((key,)) if key != -1 and depth < len(path) - 1 else None
        if child is None:
            for missing in reversed(path[depth + 1 :]):
                value = [value] if missing == -1 else {missing: value}
            return _insert(text, node, key, value, comments=comments)
        node = child
    raise AssertionError("unreachable: the last key is inserted")


def _insert(text: str, node: Node, key: Key, value: Any, *, comments: bool) -> str:
    newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    before = text[: node.start]
    outer = re.match(r"[ \t]*", before[before.rfind("\n") + 1 :])
    closing_indent = outer[0] if outer else ""
    name = "" if key == -1 else f"{json.dumps(key, ensure_ascii=False)}: "
    if node.members:
        first = text[node.start + 1 : node.members[0][0]]
        last = node.members[-1][2]
        if "\n" not in first:  # all on one line, as it is
            comma = "" if node.comma_after_last else ","
            at = _behind(text, last.end) if node.comma_after_last else last.end
            flat = json.dumps(value, ensure_ascii=False)
            return f"{text[:at]}{comma} {name}{flat}{text[at:]}"
        indent = first[first.rfind("\n") + 1 :]
        if indent.strip(" \t"):  # a comment stands before the first name on its line
            indent = closing_indent + "  "
        unit = indent[len(closing_indent) :] if indent.startswith(closing_indent) else "  "
        body = name + _laid_out(value, unit or "  ", indent, newline)
        stop = _last_of_trivia(text, last.end, node.end - 1)
        comma = "" if node.comma_after_last else ","
        middle = text[last.end : stop]
        return f"{text[: last.end]}{comma}{middle}{newline}{indent}{body}{text[stop:]}"
    unit = _unit(text)
    indent = closing_indent + unit
    body = name + _laid_out(value, unit, indent, newline)
    inside = text[node.start + 1 : node.end - 1].rstrip()
    return (
        f"{text[: node.start + 1]}{inside}{newline}{indent}{body}{newline}{closing_indent}"
        f"{text[node.end - 1 :]}"
    )


def _behind(text: str, at: int) -> int:
    """Behind the comma that follows a value."""
    return text.index(",", at) + 1


def _last_of_trivia(text: str, start: int, stop: int) -> int:
    """Where comma and comments after the last value end, before the space that closes."""
    return start + len(text[start:stop].rstrip())


def _unit(text: str) -> str:
    """One step of the file's indentation; two spaces when it shows none."""
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found else "  "


def _laid_out(value: Any, unit: str, indent: str, newline: str) -> str:
    width: str | int = "\t" if "\t" in unit else unit
    lines = json.dumps(value, ensure_ascii=False, indent=width).split("\n")
    return f"{newline}{indent}".join(lines)


def remove(text: str, path: Path, *, comments: bool) -> str:
    """`text` without the member at `path`, its comma and its line. No such member: unchanged."""
    root = read(text, comments=comments)
    parent, node = root.at(path[:-1]), root.at(path)
    if parent is None or node is None:
        return text
    places = [index for index, (_, key, _) in enumerate(parent.members) if key == path[-1]]
    index = places[-1]
    start, _, child = parent.members[index]
    end = child.end
    if len(parent.members) == 1:
        rest = text[end : parent.end - 1]
        if parent.comma_after_last:
            comma = _comma(text, end, comments=comments)
            rest = text[end:comma] + text[comma + 1 : parent.end - 1]
        before = text[parent.start + 1 : start]
        if not before.strip() and not rest.strip():
            return text[: parent.start + 1] + text[parent.end - 1 :]
        return (
            text[: parent.start + 1] + before.rstrip(" \t") + rest.lstrip() + text[parent.end - 1 :]
        )
    if index + 1 < len(parent.members) or parent.comma_after_last:
        comma = _comma(text, end, comments=comments)
        line = text.rfind("\n", 0, start) + 1
        own_line = not text[line:start].strip() and text[comma + 1 :].lstrip(" \t")[:1] in "\r\n"
        if own_line:
            stop = text.index("\n", comma) + 1
            return text[:line] + text[stop:]
        stop = comma + 1 + len(text[comma + 1 :]) - len(text[comma + 1 :].lstrip(" \t"))
        return text[:start] + text[stop:]
    previous = parent.members[index - 1][2].end
    comma = _comma(text, previous, comments=comments)
    between = text[comma + 1 : start].rstrip()
    rest = text[end:]
    if "//" in between and "\n" not in rest[: len(rest) - len(rest.lstrip())]:
        between += "\n"  # a comment to the end of its line must not swallow what follows
    return text[:comma] + between + rest


def _comma(text: str, at: int, *, comments: bool) -> int:
    return _Reader(text, comments=comments).skip(at)
