"""Records of the shapes that Claude Code writes, for tests: made by hand, no one's words."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from everest_pipelines.core.transcripts.claude import read
from everest_pipelines.core.transcripts.reading import Reading

START = 1_667_260_800_000_000  # 2022-11-01
SESSION = "11111111-2222-3333-4444-555555555555"
REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was "
    "a file edit, the new_string was NOT written to the file). "
)
BARE = REFUSED + "STOP what you are doing and wait for the user to tell you how to proceed."

Fields = dict[str, Any]


def stamp(second: float) -> str:
    """A time on 2026-02-01, so many seconds after ten o'clock."""
    whole = int(second)
    hours, minutes = 10 + whole // 3600, whole // 60 % 60
    return f"2026-02-01T{hours:02}:{minutes:02}:{whole % 60:02}.{int(second * 1000) % 1000:03}Z"


def record(kind: str, uuid: str, second: float, parent: str | None = None, **more: Any) -> Fields:
    """What every record of the conversation carries."""
    fields: Fields = {
        "parentUuid": parent,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/src/tidepool",
        "sessionId": SESSION,
        "version": "2.1.20",
        "gitBranch": "main",
        "type": kind,
        "uuid": uuid,
        "timestamp": stamp(second),
    }
    return fields | more


def user(uuid: str, second: float, content: Any, parent: str | None = None, **more: Any) -> Fields:
    message = {"role": "user", "content": content}
    return record("user", uuid, second, parent, message=message, **more)


def assistant(
    uuid: str,
    second: float,
    blocks: list[Fields],
    parent: str | None = None,
    *,
    message_id: str | None = None,
    model: str = "claude-test",
    **more: Any,
) -> Fields:
    message: Fields = {
        "id": message_id or f"msg_{uuid}",
        "role": "assistant",
        "model": model,
        "content": blocks,
    }
    return record("assistant", uuid, second, parent, message=message, **more)


def text(words: str) -> Fields:
    return {"type": "text", "text": words}


def call(call_id: str, name: str = "Bash", **arguments: Any) -> Fields:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def result(
    uuid: str,
    second: float,
    call_id: str,
    content: Any,
    parent: str | None = None,
    *,
    is_error: bool | None = None,
    beside: Iterable[Fields] = (),
    **more: Any,
) -> Fields:
    block: Fields = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    if is_error is not None:
        block["is_error"] = is_error
    return user(uuid, second, [block, *beside], parent, **more)


def queue(operation: str, second: float, content: Any = None) -> Fields:
    fields: Fields = {
        "type": "queue-operation",
        "operation": operation,
        "timestamp": stamp(second),
        "sessionId": SESSION,
    }
    return fields if content is None else fields | {"content": content}


def line(fields: Fields) -> bytes:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def file_of(*records: Fields | bytes) -> bytes:
    """A file, one record a line; bytes are taken as they are."""
    lines = (one if isinstance(one, bytes) else line(one) for one in records)
    return b"".join(one + b"\n" for one in lines)


def read_bytes(data: bytes, *, path: str = f"p/{SESSION}.jsonl", block: int = 1 << 20) -> Reading:
    blocks = [data[place : place + block] for place in range(0, len(data), block)]
    return read(blocks, path=path, start=START)


def read_records(*records: Fields | bytes, path: str = f"p/{SESSION}.jsonl") -> Reading:
    return read_bytes(file_of(*records), path=path)


def summary(reading: Reading) -> list[tuple[str, str, str]]:
    """(role, channel, text) of every turn."""
    return [(turn.role.value, turn.channel.value, turn.text) for turn in reading.turns]
