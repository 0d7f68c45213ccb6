"""What a call of Codex returned: its text, whether it failed, whether the person refused it.

Codex flags no errors: the exit code stands in the output's text, in a JSON of its own (2025), or
in the event that ends the call.
"""

from __future__ import annotations

import json
import re
from typing import Any, cast

from msgspec import Struct

# "Process exited with code 1" of exec_command, "Exit code: 1" of shell and apply_patch. Both stand
# above the output itself, which may quote them: only the head is asked.
_EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)\s*$", re.MULTILINE)
_OUTPUT = re.compile(r"^(?:Output|Total output lines):", re.MULTILINE)
_ABORTED = re.compile(r"\s*(?:command )?aborted(?: by user)?\b(?: after [\d.]+ ?s\w*)?\W*\Z")
_REFUSED = re.compile(
    r"\A\W*(?:(?:exec(?:ution)?(?: command| error)?|exec_command failed for .{0,2000}?|patch|user|"
    r"command|tool call|mcp tool call)\b[ :]*)?(?:Rejected\(\"?)?"
    r"(?:rejected|cancelled|declined|denied) (?:by (?:the )?user|MCP tool call)\b",
    re.DOTALL,
)
_FAILED = re.compile(
    r"\A(?:exec_command failed|execution error|apply_patch verification failed|apply_patch "
    r"(?:handler|failed)|failed to |unsupported (?:call|custom tool call)|tool call error|error: |"
    r"Error: |err: |write_stdin failed|unknown (?:tool|process)|Unknown process|sandbox (?:error|"
    r"denied)|command timed out|approval policy is |patch rejected|resources/read failed|collab "
    r"spawn failed|agent with id .{1,80} not found)"
)


class Result(Struct, frozen=True):
    """The text of a result; ``failed`` None where nothing says how it went."""

    text: str
    failed: bool | None = None
    refused: bool = False
    aborted: bool = False  # the person stopped the agent while it ran


def of_output(output: Any) -> Result:
    """The result in an output record: a text, blocks, an object, or JSON inside a text."""
    failed: bool | None = None
    if isinstance(output, dict):
        fields = cast("dict[str, Any]", output)
        failed = _failed(fields)
        output = next((fields[key] for key in ("content", "output", "body") if key in fields), "")
    text = output if isinstance(output, str) else _blocks(output)
    if text.startswith('{"output"') and (inner := _inner(text)) is not None:
        text, failed = inner
    return of_text(text, failed)


def of_text(text: str, failed: bool | None = None) -> Result:
    """The result that a text tells; ``failed`` is what is known from elsewhere."""
    if _ABORTED.match(text[:120]):
        return Result(text, False, aborted=True)
    if _REFUSED.match(text[:2200]):
        return Result(text, True, refused=True)
    if failed is None:
        head = text[:400]
        body = _OUTPUT.search(head)
        code = _EXIT.search(head[: body.start()] if body else head)
        if code is not None:
            failed = int(code.group(1)) != 0
        elif _FAILED.match(text):
            failed = True
        elif text.startswith("Wall time:") and body is not None:
            rest = text[text.find("Output:") + 7 :].lstrip()
            failed = True if rest.startswith(('{"error"', '{"isError":true')) else None
    return Result(text, failed)


def of_event(
    *,
    output: str,
    exit_code: int | None = None,
    success: bool | None = None,
    status: str = "",
) -> Result:
    """The result in the event that ends a call."""
    failed: bool | None = None
    if exit_code is not None:
        failed = exit_code != 0
    elif success is not None:
        failed = not success
    elif status in ("failed", "Failed"):
        failed = True
    elif status in ("completed", "Completed"):
        failed = False
    if status.lower() == "declined":
        return Result(output, True, refused=True)
    return of_text(output, failed)


def _failed(fields: dict[str, Any]) -> bool | None:
    success, error = fields.get("success"), fields.get("isError", fields.get("is_error"))
    if isinstance(success, bool):
        return not success
    if isinstance(error, bool):
        return error
    metadata = fields.get("metadata")
    if isinstance(metadata, dict):
        code = cast("dict[str, Any]", metadata).get("exit_code")
        if isinstance(code, int):
            return code != 0
    return None


def _inner(text: str) -> tuple[str, bool | None] | None:
    """The output and the exit code's verdict in the JSON text that older versions write."""
    try:
        value: Any = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, Any]", value)
    inner = fields.get("output")
    return (inner, _failed(fields)) if isinstance(inner, str) else None


def _blocks(output: Any) -> str:
    if output is None:
        return ""
    if not isinstance(output, list):
        return json.dumps(output, ensure_ascii=False)
    parts: list[str] = []
    for block in cast("list[Any]", output):
        if isinstance(block, str):
            parts.append(block)
        elif isinstance(block, dict):
            fields = cast("dict[str, Any]", block)
            text = fields.get("text")
            parts.append(text if isinstance(text, str) else f"[{fields.get('type', 'block')}]")
    return "\n".join(parts)
