"""What an agent did just before a person's turn and just after it.

What is undone at once was wrong: the strongest signs of a correction are not in its words. Only
the turns next to the person's are looked at, and of their calls only edits and commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import orjson

from everest_pipelines.core.detect.commands import base_name
from everest_pipelines.core.detect.fixes import EDITORS
from everest_pipelines.core.detect.model import tokens
from everest_pipelines.core.records import ToolCall, Turn

LOOK_BACK = 60  # calls before the words that are looked at, newest first
LOOK_ON = 40  # calls after the words
TURNS_ON = 24  # of the agent's turns after the words; what comes later is other work
RUN = 3  # words in a row that make a quotation of what the agent said

_UNDO = re.compile(r"\bgit (?:revert|restore|reset|checkout (?:HEAD|--|\S+ -- ))")
_TEST = re.compile(r"\b(?:test|pytest|jest|vitest|spec|check|lint)\b")
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_PATCHES = ("input", "patch", "cmd", "command")
_NAME = re.compile(r"[A-Za-z_][\w-]*[A-Z_.-]\w+|\w+\(\)|[\w-]+\.\w{1,5}\b")


class Edit(NamedTuple):
    """One edit of a file: the text that it took away and the text that it put there."""

    path: str
    old: str
    new: str


class Work(NamedTuple):
    """What the agent did in a stretch of turns."""

    edits: list[Edit]
    paths: frozenset[str]
    tested: bool
    undid: bool
    failed: bool
    asked: bool  # a question put through a tool
    calls: int


def work_of(turns: Iterable[Turn], limit: int, *, newest_first: bool = False) -> Work:
    """The work in the first ``limit`` calls of the turns."""
    edits: list[Edit] = []
    paths: set[str] = set()
    tested = undid = failed = asked = False
    count = 0
    for turn in turns:
        calls = reversed(turn.tool_calls) if newest_first else turn.tool_calls
        for call in calls:
            count += 1
            if count > limit:
                break
            failed |= call.is_error and not call.refused
            asked |= call.name in ("AskUserQuestion", "ExitPlanMode", "exit_plan_mode")
            if call.name in EDITORS or "*** Begin Patch" in call.input:
                for edit in _edits(call):
                    edits.append(edit)
                    paths.add(base_name(edit.path).lower())
            elif '"command"' in call.input or '"cmd"' in call.input:
                tested |= _TEST.search(call.input) is not None
                undid |= "git" in call.input and _UNDO.search(call.input) is not None
    return Work(edits, frozenset(paths), tested, undid, failed, asked, min(count, limit))


def _edits(call: ToolCall) -> Iterator[Edit]:
    """The edits of one call; input that was cut or is no JSON gives none."""
    if not call.input.startswith("{"):
        yield from _patched(call.input)
        return
    try:
        given: Any = orjson.loads(call.input)
    except orjson.JSONDecodeError:
        return
    patch = next((text for key in _PATCHES if "***" in (text := _text(given, key))), "")
    if patch:
        yield from _patched(patch)
        return
    path = _text(given, "file_path") or _text(given, "notebook_path") or _text(given, "path")
    parts: Any = given.get("edits")
    for part in [given, *(parts if isinstance(parts, list) else ())]:
        old, new = _text(part, "old_string"), _text(part, "new_string") or _text(part, "content")
        if path and (old or new):
            yield Edit(path, old, new)


def _patched(patch: str) -> Iterator[Edit]:
    """The edits of a patch in the form that Codex writes."""
    parts = _PATCHED.split(patch)
    for path, body in zip(parts[1::2], parts[2::2], strict=True):
        lines = body.split("\n")
        old = "\n".join(line[1:] for line in lines if line.startswith("-"))
        new = "\n".join(line[1:] for line in lines if line.startswith("+"))
        yield Edit(path.strip(), old, new)


def _text(fields: Any, name: str) -> str:
    value: Any = fields.get(name) if isinstance(fields, dict) else None
    return value if isinstance(value, str) else ""


def again(before: Work, after: Work) -> dict[str, float]:
    """How much of what was just done is done over: the same files, the same lines."""
    if not before.edits or not after.edits:
        return {}
    shared = before.paths & after.paths
    flags = {"same_files": len(shared) / len(after.paths)}
    written = {line for edit in before.edits for line in _lines(edit.new)}
    taken = {line for edit in after.edits for line in _lines(edit.old)}
    put = {line for edit in after.edits for line in _lines(edit.new)}
    removed = {line for edit in before.edits for line in _lines(edit.old)}
    flags["rewrites"] = min(1.0, len(written & (taken - put)) / 3.0)
    flags["puts_back"] = min(1.0, len((removed - written) & (put - taken)) / 2.0)
    return flags


def _lines(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        flat = line.strip()
        if len(flat) > 8:
            yield flat


def named(words: str, before: Work, reply: str) -> dict[str, float]:
    """Whether the words name a file or something else that the agent just wrote."""
    names = {name.strip("()").lower() for name in _NAME.findall(words[:2000])}
    if not names:
        return {}
    flags: dict[str, float] = {"names": 1.0}
    stems = {path.rsplit(".", 1)[0] for path in before.paths}
    if names & before.paths or any(name.rsplit(".", 1)[0] in stems for name in names):
        flags["names_touched"] = 1.0
    new = "\n".join(edit.new for edit in before.edits).lower()
    if any(name in new for name in names):
        flags["names_written"] = 1.0
    if any(name in reply.lower() for name in names):
        flags["names_said"] = 1.0
    return flags


def quoted(words: list[str], reply: str) -> float:
    """The share of the words that repeat the agent's, three or more in a row."""
    if len(words) < RUN or not reply:
        return 0.0
    said = tokens(reply)
    runs = {tuple(said[i : i + RUN]) for i in range(len(said) - RUN + 1)}
    hit = sum(tuple(words[i : i + RUN]) in runs for i in range(len(words) - RUN + 1))
    return hit / (len(words) - RUN + 3.0)
