"""Turning text that somebody else wrote into data that cannot act: the one place for rendering."""

from __future__ import annotations

import re
import unicodedata

SHORT_ID_DIGITS = 8  # 32 bits: among 1,000 lessons two meet with a chance of 1 in 10,000

_RUN_OF_BACKTICKS = re.compile(r"`+")
# In code only a comment could end a section, and only a harness's own tag could pass for its words.
_ACTS_IN_CODE = re.compile(
    r"<(?=\s*(?:!--|/?\s*(?:everest|system|antml|function|tool|command|local-command|user-prompt|"
    r"task-notification|human|assistant)))",
    re.IGNORECASE,
)
_SEPARATORS = ("Zs", "Zl", "Zp")
_HIDDEN = ("Cc", "Cf", "Cs")


def short_id(lesson_id: str) -> str:
    """The id that a person types: the first eight digits of the lesson id."""
    return lesson_id[:SHORT_ID_DIGITS]


def file_name(lesson_id: str) -> str:
    """The name of a lesson's own file. A lesson id that is no plain word raises ValueError."""
    short = short_id(lesson_id)
    if not (short.isascii() and short.isalnum()):
        raise ValueError(f"{lesson_id!r} cannot name a file")
    return f"everest-{short}.md"


def visible(text: str) -> str:
    """`text` without what a reader cannot see: control and format characters, half characters.

    Line breaks and tabs become a space each, so does every kind of white space.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_seen(sign) for sign in text)


def _seen(sign: str) -> str:
    if sign.isspace():  # also line breaks, tabs, vertical tabs
        return " "
    category = unicodedata.category(sign)
    if category in _SEPARATORS:
        return " "
    return "" if category in _HIDDEN else sign


def one_line(text: str) -> str:
    """`text` on one line, white space folded, unable to open or close a tag or a comment."""
    return " ".join(visible(text).split()).replace("<", "&lt;").replace("-->", "--&gt;")


def code_line(text: str) -> str:
    """`text` on one line as it may stand in code or in a quoted YAML value: tags show as they are.

    Comments, and tags that an agent's harness speaks in, cannot be opened or closed.
    """
    return _ACTS_IN_CODE.sub("&lt;", " ".join(visible(text).split())).replace("-->", "--&gt;")


def clipped(text: str, limit: int) -> str:
    """At most `limit` characters of a one-line text, cut between words and marked as cut."""
    if len(text) <= limit:
        return text
    head = text[: limit - 2]
    space = head.rfind(" ")
    return (head[:space] if space > limit // 2 else head).rstrip() + " …"


def code_span(text: str) -> str:
    """`text` as inline code on one line: markdown, links and @imports inside have no effect."""
    line = code_line(text)
    longest = max((len(run) for run in _RUN_OF_BACKTICKS.findall(line)), default=0)
    fence = "`" * (longest + 1)
    space = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return f"{fence}{space}{line}{space}{fence}"


def code_block(text: str) -> str:
    """`text` as a fenced block that it cannot close; its line breaks are kept."""
    lines = [code_line(line) for line in text.splitlines()] or [""]
    longest = max(
        (len(run) for line in lines for run in _RUN_OF_BACKTICKS.findall(line)), default=0
    )
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}text", *lines, fence])
