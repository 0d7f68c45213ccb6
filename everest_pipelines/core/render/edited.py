"""Reading back what somebody made of a rendered file: the rule's text, as they left it."""

from __future__ import annotations

import re

_BLOCK = re.compile(
    r"^(?P<fence>`{3,})text\r?\n(?P<text>.*?)\r?\n?^(?P=fence)[ \t]*\r?$", re.M | re.S
)
_LINE = re.compile(
    r"^- `(?P<id>[0-9a-z]+)`(?: unreviewed| disputed \(said [0-9-]+\))?: (?P<rest>.*?)\s*$", re.M
)
_SPAN = re.compile(r"^(?P<fence>`+) ?(?P<text>.*?) ?(?P=fence)(?!`)")
_SECTION = re.compile(r"^[ \t]*<!-- everest:begin\b.*?^[ \t]*<!-- everest:end\b", re.M | re.S)


def text_of_file(content: str) -> str:
    """The lesson's text in its own file, on one line; "" when its block is not there."""
    found = _BLOCK.search(content)
    return " ".join(found["text"].split()) if found else ""


def text_of_line(line: str) -> str:
    """The lesson's text on its line in MEMORY.md; "" when it cannot be told or was cut there."""
    found = _LINE.match(line)
    span = _SPAN.match(found["rest"]) if found else None
    text = span["text"].strip() if span else ""
    return "" if text.endswith("…") else text


def texts_of_section(content: str) -> dict[str, str] | None:
    """Short id -> line of the section between our markers; None when there is no section."""
    found = _SECTION.search(content)
    if found is None:
        return None
    return {match["id"]: match[0].rstrip() for match in _LINE.finditer(found[0])}
