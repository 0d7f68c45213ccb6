"""Failed tool calls, by class, with what then worked."""

from __future__ import annotations

import re
from collections.abc import Iterator

from everest_pipelines.core.detect import error_classes as classes
from everest_pipelines.core.detect.commands import Request, is_refused, request_of
from everest_pipelines.core.detect.finding import episode, one_line
from everest_pipelines.core.detect.fixes import fix_of
from everest_pipelines.core.detect.scene import Scene
from everest_pipelines.core.records import Episode, EpisodeKind, Origin, ToolCall

NAME, VERSION = "error", 1

_INTERRUPTED = re.compile(r"\s*\[Request interrupted by user")
_ON_PURPOSE = re.compile(
    r"(?i)\b(?:test|verify|check|confirm|ensure|try|see)\b.*\b(?:unknown|invalid|bad|wrong|error"
    r"|fail\w*|missing|suggest\w*|reject\w*|unsupported|nonexist\w*|non-exist\w*)\b"
)
_ASKING = re.compile(r"(?:grep|rg|egrep|fgrep|diff|cmp|test|\[|which|pgrep|type|command -v)\b")
_EXIT_ONE = re.compile(r"\s*(?:Error: )?Exit code 1\s*\Z")
MESSAGE_LENGTH = 600  # characters of the cleaned output that are kept in detail


def is_failure(call: ToolCall) -> bool:
    """A call that failed by itself: not refused, not interrupted, not cancelled by a sibling."""
    if not call.is_error or is_refused(call) or call.output is None:
        return False
    return not _INTERRUPTED.match(call.output)


def is_expected(request: Request, name: str, output: str) -> bool:
    """A failure that was wanted: a search without hits, a command meant to be rejected."""
    if _EXIT_ONE.match(output) and _ASKING.match(request.last_step):
        return True
    return name in _REJECTIONS and bool(_ON_PURPOSE.search(request.description))


_REJECTIONS = frozenset({"cli_usage", classes.COMMAND_FAILED})


def detect(scene: Scene) -> Iterator[Episode]:
    """One episode for each failed call, of the main thread and of sub-agents."""
    for calls, index in scene.calls():
        turn, call = calls[index]
        if not is_failure(call):
            continue
        output = call.output or ""
        request = request_of(call)
        found = classes.classify(call.name, request.command, output)
        if found.name == classes.CANCELLED or is_expected(request, found.name, output):
            continue
        label = classes.LABELS[found.name]
        line = one_line(found.line, 120)
        worked = fix_of(calls, index, request, found.name)
        yield episode(
            turn,
            EpisodeKind.ERROR,
            span=call.id,
            detector=NAME,
            version=VERSION,
            origin=Origin.TOOL,
            sub=found.name,
            title=f"{label}: {line}" if line else f"{label}: {request.shown}",
            gist=f"{request.shown} failed" + (f": {line}" if line else " and printed nothing"),
            detail=found.body[:MESSAGE_LENGTH],
            sure=True,
            score=1.0,
            reason=f"is_error:{found.name}",
            fix=worked.text if worked else "",
            fix_turn=worked.turn if worked else None,
        )
