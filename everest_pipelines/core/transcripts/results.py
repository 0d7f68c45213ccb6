"""Tool results: their stored text, and what a person's refusal looks like in each version.

Refusal phrases also occur inside files that the agent reads: they count only on results that
are errors, from the start of the text.
"""

from __future__ import annotations

import hashlib
import re

from msgspec import Raw, Struct

from everest_pipelines.core.transcripts.wire import Block

_BARE = "The user doesn't want to proceed with this tool use"
_PLAN_KEPT = "The agent proposed a plan that was rejected by the user"
_CLARIFY = "The user wants to clarify these questions"
_SIBLING = "The user doesn't want to take this action right now"
_REASONS = (
    "To tell you how to proceed, the user said:",  # 2.0.76 and later
    "The user provided the following reason for the rejection:",  # VS Code 2.0.37 to 2.0.42
)
_NOTE = "Note: The user's next message may contain"  # the harness's words from 2.1.205 on

# VS Code 2.0.5 writes a refusal's words alone, exactly like an error's text. These tell errors.
_MACHINE_TEXT = re.compile(
    r"\A\W*(?:error|warn|warning|fatal|exit code|traceback|usage|cannot|could not|failed|request "
    r"failed|enoent|eacces|file has|file does|found \d|string to replace|no such|command |input"
    r" ?validation|invalid|unexpected|claude requested|this command|this bash|mcp error|agent type|"
    r"shell |tool |sibling|permission|interrupted|\[request|timeout|process |environment )"
    r"|status code|no such file|not found|has not been read|does not exist|timed out|exited with|"
    r"is not running|requires approval|permission denied|[{}<>│╭]|^\s+at ",
    re.IGNORECASE | re.MULTILINE,
)
_ASKED_FIRST = frozenset({"Bash", "Edit", "MultiEdit", "Write", "NotebookEdit", "WebFetch"})
_RAW_VERSIONS = re.compile(r"2\.0\.(?:[0-9]|[12][0-9]|3[0-6])\Z")  # before variant 3 appeared


class Refusal(Struct, frozen=True):
    """A call that the person refused; ``words`` are theirs, empty when they gave none."""

    words: str = ""
    kind: str = "refused"  # refused, clarify, raw


def output_text(content: str | list[Block | str] | None) -> str:
    """The whole text of a result; images and other blocks as short marks."""
    if isinstance(content, str) or content is None:
        return content or ""
    parts: list[str] = []
    for block in content:
        if isinstance(block, str):
            parts.append(block)
        elif block.text is not None:
            parts.append(block.text)
        elif block.source:
            parts.append(_mark(block.type or "image", block.source))
        elif block.type:
            parts.append(f"[{block.type}]")
    return "\n".join(parts)


def _mark(kind: str, source: Raw) -> str:
    data = bytes(source)
    if found := re.search(rb"\[base64 (\d+) bytes sha256:([0-9a-f]+)\]", data):
        size, digest = int(found.group(1)), found.group(2).decode()
    else:
        size, digest = len(data), hashlib.sha256(data).hexdigest()[:16]
    return f"[{kind} {size} bytes sha256:{digest}]"


def refusal_of(
    text: str, *, denial: str, whole: str, tool: str, version: str, in_ide: bool
) -> Refusal | None:
    """The refusal in a result that is an error, or None for an error of another kind.

    ``denial`` is the record's toolDenialKind, ``whole`` its toolUseResult when that is a text,
    ``in_ide`` whether the session shows signs of VS Code (the only place of raw refusals).
    """
    if denial and denial != "user-rejected":
        return None
    if text.startswith(_SIBLING):
        return None  # cancelled along with a refused call, not refused itself
    if text.startswith(_CLARIFY):
        return Refusal(kind="clarify")
    if text.startswith((_BARE, _PLAN_KEPT)) or denial or whole == "User rejected tool use":
        for phrase in _REASONS:
            place = text.find(phrase)
            if place >= 0:
                words = text[place + len(phrase) :].split(_NOTE)[0].strip()
                if words.startswith(_CLARIFY):
                    return Refusal(kind="clarify")
                return Refusal(words)
        return Refusal()
    could_be_raw = in_ide and tool in _ASKED_FIRST and _RAW_VERSIONS.match(version)
    if could_be_raw and whole == f"Error: {text}" and _reads_like_a_person(text):
        return Refusal(text.strip(), "raw")
    return None


def _reads_like_a_person(text: str) -> bool:
    plain = re.sub(r"https?://\S+|@?\S*[/\\]\S*", " ", text)
    if _MACHINE_TEXT.search(plain) or text.count("\n") > 6 or len(plain.split()) < 2:
        return False
    letters = sum(character.isalpha() or character == " " for character in plain)
    return letters >= 0.8 * len(plain)  # tables, paths and stack traces stay below
