"""Writes Claude Code transcripts of the shapes that the real client writes (CLI 2.1.x).

A `Tale` is one session told call by call; every id and time follows from the session's name
and the position in it, so the same story always gives the same bytes.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import uuid
from pathlib import Path
from typing import Any

NAMESPACE = uuid.UUID("6f1e0c1e-0000-4000-8000-65766572e571")
VERSION = "2.1.62"
MODEL = "claude-opus-4-5-20251101"
REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it "
    "was a file edit, the new_string was NOT written to the file). "
)
REFUSED_WHY = REFUSED + "To tell you how to proceed, the user said:\n"
REFUSED_BARE = REFUSED + "STOP what you are doing and wait for the user to tell you how to proceed."


def compact(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()


class Tale:
    """One session, written line by line. Times move on with every call."""

    def __init__(self, name: str, cwd: str, start: str, branch: str = "main") -> None:
        self.name = name
        self.cwd = cwd
        self.branch = branch
        self.session_id = str(uuid.uuid5(NAMESPACE, name))
        self.now = dt.datetime.fromisoformat(start).replace(tzinfo=dt.UTC)
        self.lines: list[bytes] = []
        self.parent: str | None = None
        self.agent_id = ""
        self.serial = 0

    @property
    def folder(self) -> str:
        return "".join(c if c.isalnum() else "-" for c in self.cwd)

    def _id(self, prefix: str) -> str:
        self.serial += 1
        digest = hashlib.sha256(f"{self.name}/{self.serial}".encode()).hexdigest()
        return f"{prefix}01{digest[:22]}"

    def _tick(self, seconds: float) -> str:
        self.now += dt.timedelta(seconds=seconds)
        return self.now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{self.now.microsecond // 1000:03d}Z"

    def _record(self, kind: str, after: float, **fields: Any) -> str:
        self.serial += 1
        own = str(uuid.uuid5(NAMESPACE, f"{self.name}/{self.serial}"))
        record: dict[str, Any] = {
            "parentUuid": self.parent,
            "isSidechain": bool(self.agent_id),
            "userType": "external",
            "cwd": self.cwd,
            "sessionId": self.session_id,
            "version": VERSION,
            "gitBranch": self.branch,
        }
        if self.agent_id:
            record["agentId"] = self.agent_id
        record |= {"type": kind, **fields, "uuid": own, "timestamp": self._tick(after)}
        self.lines.append(compact(record))
        self.parent = own
        return own

    # what the person does
    def wait(self, **span: float) -> Tale:
        self.now += dt.timedelta(**span)
        return self

    def human(self, text: str, after: float = 41.2) -> Tale:
        snapshot = {"messageId": self._id("snap_"), "trackedFileBackups": {}}
        self.lines.append(
            compact(
                {"type": "file-history-snapshot", "snapshot": snapshot, "isSnapshotUpdate": False}
            )
        )
        message = {"role": "user", "content": text}
        self._record("user", after, message=message, permissionMode="default")
        return self

    def interrupt(self, *, tool: bool = False) -> Tale:
        text = "[Request interrupted by user" + (" for tool use]" if tool else "]")
        message = {"role": "user", "content": [{"type": "text", "text": text}]}
        self._record("user", 3.1, message=message)
        return self

    def queue(self, text: str) -> Tale:
        """Words typed while the agent works: queued, delivered, never a user record."""
        for operation, words in (("enqueue", {"content": text}), ("remove", {})):
            stamp = self._tick(0.4)
            self.lines.append(
                compact(
                    {
                        "type": "queue-operation",
                        "operation": operation,
                        "timestamp": stamp,
                        "sessionId": self.session_id,
                        **words,
                    }
                )
            )
        return self

    def compacted(self, retelling: str) -> Tale:
        boundary = {"trigger": "auto", "preTokens": 158_203}
        logical, self.parent = self.parent, None
        self._record(
            "system",
            2.0,
            subtype="compact_boundary",
            content="Conversation compacted",
            logicalParentUuid=logical,
            compactMetadata=boundary,
        )
        text = "This session is being continued from a previous conversation. " + retelling
        message = {"role": "user", "content": text}
        self._record("user", 0.1, message=message, isCompactSummary=True)
        return self

    # what the agent does: one line for each content block, all of one message id
    def _assistant(self, blocks: list[dict[str, Any]], after: float) -> str:
        message_id, request = self._id("msg_"), self._id("req_")
        own = ""
        for number, block in enumerate(blocks, start=1):
            usage = {
                "input_tokens": 4,
                "cache_creation_input_tokens": 812,
                "cache_read_input_tokens": 20_411,
                "output_tokens": 37 * number,
                "service_tier": "standard",
            }
            message = {
                "model": MODEL,
                "id": message_id,
                "type": "message",
                "role": "assistant",
                "content": [block],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": usage,
            }
            own = self._record(
                "assistant", after if number == 1 else 0.6, message=message, requestId=request
            )
        return own

    def says(self, text: str, after: float = 6.3) -> Tale:
        thinking = {"type": "thinking", "thinking": "", "signature": "c2FtcGxl"}
        self._assistant([thinking, {"type": "text", "text": text}], after)
        self._record(
            "system", 0.2, subtype="turn_duration", durationMs=int(after * 1000), isMeta=False
        )
        return self

    def _call(self, name: str, arguments: dict[str, Any], saying: str) -> tuple[str, str]:
        tool_id = self._id("toolu_")
        blocks: list[dict[str, Any]] = [{"type": "text", "text": saying}] if saying else []
        blocks.append({"type": "tool_use", "id": tool_id, "name": name, "input": arguments})
        return tool_id, self._assistant(blocks, 4.7)

    def _result(
        self, tool_id: str, source: str, content: str, result: Any, *, error: bool, after: float
    ) -> None:
        block = {
            "tool_use_id": tool_id,
            "type": "tool_result",
            "content": content,
            "is_error": error,
        }
        self._record(
            "user",
            after,
            message={"role": "user", "content": [block]},
            toolUseResult=result,
            sourceToolAssistantUUID=source,
        )

    def bash(self, command: str, output: str, *, exit_code: int = 0, saying: str = "") -> Tale:
        arguments = {"command": command, "description": command.split("&&")[0].strip()[:40]}
        tool_id, source = self._call("Bash", arguments, saying)
        if exit_code:
            text = f"Exit code {exit_code}\n{output}"
            self._result(tool_id, source, text, f"Error: {text}", error=True, after=2.9)
        else:
            result = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
            self._result(tool_id, source, output, result, error=False, after=2.2)
        return self

    def refused(self, command: str, why: str, *, saying: str = "") -> Tale:
        """A call that the person refused, with their words when there are any."""
        tool_id, source = self._call("Bash", {"command": command}, saying)
        text = REFUSED_WHY + why if why else REFUSED_BARE
        self._result(tool_id, source, text, f"Error: {text}", error=True, after=14.0)
        return self

    def tool(
        self, name: str, arguments: dict[str, Any], output: str, *, error: bool = False
    ) -> Tale:
        tool_id, source = self._call(name, arguments, "")
        content = f"<tool_use_error>{output}</tool_use_error>" if error else output
        result: Any = f"Error: {output}" if error else {"type": "text", "file": {"content": output}}
        self._result(tool_id, source, content, result, error=error, after=0.3)
        return self

    def read(self, path: str, text: str) -> Tale:
        return self.tool("Read", {"file_path": f"{self.cwd}/{path}"}, text)

    def edit(self, path: str, old: str, new: str) -> Tale:
        arguments = {"file_path": f"{self.cwd}/{path}", "old_string": old, "new_string": new}
        return self.tool("Edit", arguments, f"The file {self.cwd}/{path} has been updated.")

    # what else is found in real files
    def torn(self) -> Tale:
        """The client died in the middle of a line; the next line is whole again."""
        self.lines.append(self.lines[-1][:211])
        return self

    def summary(self, title: str) -> Tale:
        self.lines.insert(
            0, compact({"type": "summary", "summary": title, "leafUuid": self.parent})
        )
        return self

    def fork(self, name: str) -> Tale:
        """A resumed copy: the same records under another session id."""
        copy = Tale(name, self.cwd, "2026-01-01", self.branch)
        old, new = self.session_id.encode(), copy.session_id.encode()
        copy.lines = [line.replace(old, new) for line in self.lines]
        copy.now, copy.parent = self.now, self.parent
        return copy

    def subagent(self, task: str, answer: str) -> Tale:
        """A sub-agent's own file: the parent's session id, its first words the parent's."""
        child = Tale(f"{self.name}/agent", self.cwd, "2026-01-01", self.branch)
        child.session_id, child.now = self.session_id, self.now
        child.agent_id = hashlib.sha256(child.name.encode()).hexdigest()[:7]
        child._record("user", 0.1, message={"role": "user", "content": task})
        child.bash("git ls-files src | head -20", "src/ui/Chart.tsx\nsrc/ui/Legend.tsx\nsrc/api.ts")
        child.says(answer)
        self.tool("Task", {"description": "Explore", "prompt": task}, answer)
        return child

    def write(self, root: Path) -> Path:
        """Write the session under ``root`` (a projects folder); returns the file's path."""
        folder = root / self.folder
        path = folder / f"{self.session_id}.jsonl"
        if self.agent_id:
            path = folder / self.session_id / "subagents" / f"agent-{self.agent_id}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\n".join(self.lines) + b"\n")
        return path
