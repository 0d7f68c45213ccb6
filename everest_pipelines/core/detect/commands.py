"""What a tool call asked for, in the few words by which two calls are compared."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import orjson

from everest_pipelines.core.detect.finding import one_line
from everest_pipelines.core.records import ToolCall

_TARGETS = (
    "file_path",
    "notebook_path",
    "path",
    "url",
    "skill",
    "subagent_type",
    "pattern",
    "query",
)
_STEP = re.compile(r"\s*(?:&&|\|\||;|\n)\s*")
_CD = re.compile(r"cd\s+\S+$|export\s+\w+=\S*$|set\s+-\w+$|#.*$")
_WORD = re.compile(r"[^\s\"'`]+")
_ASSIGNMENT = re.compile(r"\w+=\S*$")


SIBLING = re.compile(r"\s*The user doesn't want to take this action right now")


class Request(NamedTuple):
    """A call's tool, its target (a path, a URL, …) or its command."""

    tool: str
    target: str
    command: str
    description: str
    words: frozenset[str]  # of the command: no redirections, pipes behind it, assignments
    last_step: str  # the last command of the line, that decides the exit code
    shown: str  # one short line for people


def request_of(call: ToolCall) -> Request:
    """The request of a call; input that was cut or is no JSON object gives empty fields."""
    return _request(call.name, call.input)


@lru_cache(maxsize=512)  # detectors ask the same calls, and on every day of a session
def _request(tool: str, given: str) -> Request:
    try:
        fields: Any = orjson.loads(given) if given else {}
    except orjson.JSONDecodeError:
        fields = {}
    if not isinstance(fields, dict):
        fields = {}
    command = _command(fields)
    target = next((text for key in _TARGETS if (text := _text(fields.get(key)))), "")
    steps = [step for step in _STEP.split(command) if step and not _CD.match(step)]
    last = steps[-1].split("|")[-1].strip() if steps else ""
    shown = f"`{one_line(' && '.join(steps) or command, 80)}`" if command else tool
    if target and not command:
        shown = f"{tool} of `{base_name(target)}`"
    return Request(
        tool=tool,
        target=target,
        command=command,
        description=_text(fields.get("description")),
        words=_words(steps),
        last_step=last,
        shown=shown,
    )


def is_refused(call: ToolCall) -> bool:
    """Refused by the person, itself or along with a refused sibling."""
    return call.refused or (call.is_error and SIBLING.match(call.output or "") is not None)


def base_name(path: str) -> str:
    """The last part of a POSIX or Windows path."""
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1] or path


def alike(one: Request, other: Request) -> bool:
    """Whether two calls ask for the same thing: same target, or mostly the same command."""
    if one.command or other.command:
        if not one.words or not other.words:
            return one.command == other.command
        common = len(one.words & other.words)
        return common / len(one.words | other.words) >= SAME_COMMAND
    return one.tool == other.tool and one.target == other.target and bool(one.target)


SAME_COMMAND = 0.6  # word overlap; `rtk bun run test` and `bun run test` have 0.75


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _command(fields: dict[str, Any]) -> str:
    value = fields.get("command", fields.get("cmd"))
    if isinstance(value, list):
        return " ".join(str(part) for part in msgspec.convert(value, list[Any]))
    return _text(value)


def _words(steps: list[str]) -> frozenset[str]:
    words: set[str] = set()
    for step in steps:
        for word in _WORD.findall(step.split("|")[0]):
            if ">" in word or word.startswith("<") or _ASSIGNMENT.match(word):
                continue
            words.add(word)
    return frozenset(words)
