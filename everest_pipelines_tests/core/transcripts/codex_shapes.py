"""Rollouts of every shape that Codex has written, for tests: made by hand, no one's words.

Shapes that the shared real files lack (2025, the first envelopes, completed items, items alone)
follow the format's reference and public parsers' fixtures.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from everest_pipelines.core.transcripts.codex import read
from everest_pipelines.core.transcripts.reading import Reading
from everest_pipelines_tests.core.transcripts.shapes import START, Fields, line, stamp

BEGAN = 1_769_940_000_000  # milliseconds; what ``stamp(0)`` says


def thread_id(second: float, mark: str = "a") -> str:
    """A UUIDv7 of that second, as Codex names its sessions and turns."""
    moment = f"{BEGAN + int(second * 1000):012x}"
    return f"{moment[:8]}-{moment[8:]}-7000-8000-{mark:0>12}"


SESSION = thread_id(0)
PATH = f"sessions/2026/02/01/rollout-2026-02-01T10-00-00-{SESSION}.jsonl"
AGENTS = "# AGENTS.md instructions for /src/tidepool\n\n<INSTRUCTIONS>\nUse make.\n</INSTRUCTIONS>"
ENVIRONMENT = "<environment_context>\n  <cwd>/src/tidepool</cwd>\n</environment_context>"
OLD_ENVIRONMENT = (
    "<environment_context>\nCurrent working directory: /src/tidepool\nApproval policy: never\n"
    "</environment_context>"
)
SHAPES = ("2025", "first envelopes", "current", "completed items", "items only", "all at once")


def entry(kind: str, second: float, payload: Fields) -> Fields:
    return {"timestamp": stamp(second), "type": kind, "payload": payload}


def meta(second: float = 0, session: str = SESSION, **more: Any) -> Fields:
    fields: Fields = {
        "id": session,
        "timestamp": stamp(second),
        "cwd": "/src/tidepool",
        "originator": "codex-tui",
        "cli_version": "0.142.0",
        "source": "cli",
        "thread_source": "user",
        "git": {"branch": "main"},
    }
    return entry("session_meta", second, fields | more)


def item(second: float, kind: str, **fields: Any) -> Fields:
    return entry("response_item", second, {"type": kind} | fields)


def event(second: float, kind: str, **fields: Any) -> Fields:
    return entry("event_msg", second, {"type": kind} | fields)


def completed(second: float, kind: str, **fields: Any) -> Fields:
    return event(second, "item_completed", thread_id="t", item={"type": kind, "id": "i"} | fields)


def message(second: float, role: str, *texts: str) -> Fields:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text} for text in texts]
    return item(second, "message", role=role, content=content)


def user_event(second: float, text: str, **more: Any) -> Fields:
    return event(second, "user_message", message=text, images=[], local_images=[], **more)


def call(second: float, call_id: str, name: str = "exec_command", **arguments: Any) -> Fields:
    return item(
        second, "function_call", name=name, arguments=json.dumps(arguments), call_id=call_id
    )


def output(second: float, call_id: str, text: Any) -> Fields:
    return item(second, "function_call_output", call_id=call_id, output=text)


def ran(text: str, code: int = 0) -> str:
    """What exec_command returns."""
    return (
        f"Chunk ID: 6a63a5\nWall time: 0.4 seconds\nProcess exited with code {code}\n"
        f"Original token count: 2\nOutput:\n{text}"
    )


def turn(second: float, turn_id: str, *, started: bool = True) -> list[Fields]:
    """What opens one of Codex's turns."""
    fields = {"cwd": "/src/tidepool", "model": "gpt-test", "timezone": "UTC"}
    context = entry("turn_context", second, fields | ({"turn_id": turn_id} if turn_id else {}))
    begun = event(second, "task_started", turn_id=turn_id, started_at=1_769_940_000 + int(second))
    return [begun, context] if started else [context]


def conversation(shape: str) -> list[Fields]:
    """Two prompts, a failing and a working command, two answers, in one of the shapes."""
    said = ["make it build", "yes"]
    answers = ["I run make first.", "It builds now."]
    if shape == "2025":
        first: Fields = {
            "id": SESSION,
            "timestamp": stamp(0),
            "instructions": None,
            "git": {"branch": "main"},
        }
        bare = [
            message(0, "user", OLD_ENVIRONMENT),
            message(0, "user", said[0]),
            message(0, "assistant", answers[0]),
            call(0, "c1", "shell", command=["bash", "-lc", "make"]),
            output(0, "c1", json.dumps({"output": "no rule", "metadata": {"exit_code": 2}})),
            message(0, "user", said[1]),
            call(0, "c2", "shell", command=["bash", "-lc", "make all"]),
            output(0, "c2", json.dumps({"output": "done", "metadata": {"exit_code": 0}})),
            message(0, "assistant", answers[1]),
        ]
        state: Fields = {"record_type": "state"}
        return [first, state, *(one for fields in bare for one in (fields["payload"], state))]
    records = [meta()]
    for n, (words, answer) in enumerate(zip(said, answers, strict=True), 1):
        second = n * 10
        turn_id = thread_id(second, "b")
        asked = [message(second, "user", words)]
        replied = [message(second + 3, "assistant", answer)]
        if shape in ("first envelopes", "current", "all at once"):
            asked.append(user_event(second, words))
            replied.insert(0, event(second + 3, "agent_message", message=answer))
        if shape in ("completed items", "all at once"):
            asked.append(
                completed(second, "UserMessage", content=[{"type": "text", "text": words}])
            )
            replied.append(
                completed(second + 3, "AgentMessage", content=[{"type": "Text", "text": answer}])
            )
        if shape == "completed items":
            asked, replied = asked[1:], replied[1:]
        context = message(second, "user", AGENTS, ENVIRONMENT)
        code, text = (2, "no rule") if n == 1 else (0, "done")
        work = [
            call(second + 1, f"c{n}", cmd="make" if n == 1 else "make all"),
            output(second + 2, f"c{n}", ran(text, code)),
        ]
        if shape == "first envelopes":
            bare_context = entry("turn_context", second, {"cwd": "/src/tidepool", "model": "m"})
            opening = [*asked, bare_context]
        else:
            opening = [*turn(second, turn_id), context, *asked]
        middle = [*replied, *work] if n == 1 else [*work, *replied]
        records += [*opening, *middle]
        if shape != "first envelopes":
            records.append(event(second + 4, "task_complete", turn_id=turn_id))
    return records


def file_of(records: Iterable[Fields | bytes]) -> bytes:
    lines = (one if isinstance(one, bytes) else line(one) for one in records)
    return b"".join(one + b"\n" for one in lines)


def read_bytes(data: bytes, *, path: str = PATH, block: int = 1 << 20) -> Reading:
    blocks = [data[place : place + block] for place in range(0, len(data), block)]
    return read(blocks, path=path, start=START)


def read_records(*records: Fields | bytes, path: str = PATH) -> Reading:
    return read_bytes(file_of(records), path=path)
