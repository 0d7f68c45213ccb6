"""What then worked: the next call that asked for the same and succeeded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from everest_pipelines.core.detect.commands import Request, alike, base_name, request_of
from everest_pipelines.core.records import ToolCall, Turn

LOOK_AHEAD = 120  # calls; a fix that comes later is another piece of work

EDITORS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit", "apply_patch"})
_READERS = frozenset({"Read", "NotebookRead"})
_TOUCHES = EDITORS | _READERS
_NO_FIX = frozenset({"harness_unavailable", "task_handle"})


class Fix(NamedTuple):
    text: str
    turn: Turn


def fix_of(
    calls: Sequence[tuple[Turn, ToolCall]], index: int, request: Request, name: str
) -> Fix | None:
    """The fix of the failed call at ``index`` among the calls of its stream, None without one."""
    if name in _NO_FIX:
        return None
    between: list[Request] = []
    for turn, call in calls[index + 1 : index + 1 + LOOK_AHEAD]:
        if call.output is None or call.is_error or call.refused:
            continue
        if call.name != request.tool and call.name not in _TOUCHES:
            continue  # neither the fix nor a step towards it
        later = request_of(call)
        if later.tool == request.tool and _meets(request, later, name):
            return Fix(_describe(request, later, between), turn)
        between.append(later)
    return None


def _meets(request: Request, later: Request, name: str) -> bool:
    if alike(request, later):
        return True
    if name == "path_not_found" and request.target and not request.command:
        return base_name(request.target) == base_name(later.target)
    return name == "tool_misuse" and not request.command and bool(later.target)


def _describe(request: Request, later: Request, between: list[Request]) -> str:
    if request.command:
        if request.words == later.words:
            edited = list(_edited(between))
            if edited:
                return f"{later.shown} passed after edits of {_list(edited)}"
            return f"{later.shown} passed on another try"
        return f"{later.shown} worked"
    if request.target != later.target:
        return f"{later.tool} of `{later.target}` worked"
    if request.tool in EDITORS and any(
        step.tool in _READERS and step.target == request.target for step in between
    ):
        return f"{request.tool} worked after a Read of `{base_name(request.target)}`"
    return f"{request.tool} of `{base_name(request.target)}` worked with other input"


def _edited(between: list[Request]) -> Iterator[str]:
    seen: set[str] = set()
    for step in between:
        if step.tool in EDITORS and step.target and step.target not in seen:
            seen.add(step.target)
            yield base_name(step.target)


def _list(names: list[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:3])
    return shown + (f" and {len(names) - 3} more" if len(names) > 3 else "")
