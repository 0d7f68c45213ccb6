"""Files of every format that is no coding agent's main log, made by hand from the reference."""

from __future__ import annotations

import json
from typing import Any

from everest_pipelines.core.transcripts import Reading, format_of

START = 1_667_260_800_000_000  # 2022-11-01
Fields = dict[str, Any]


def dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def lines_of(*records: Fields | bytes, end: bytes = b"\n") -> bytes:
    return b"".join((one if isinstance(one, bytes) else dumped(one)) + end for one in records)


def stamp(second: int) -> str:
    return f"2026-02-01T10:{second // 60:02}:{second % 60:02}.000Z"


def event(kind: str, ident: str, second: int, **data: Any) -> Fields:
    """One event of Copilot."""
    return {"type": kind, "data": data, "id": ident, "timestamp": stamp(second), "parentId": None}


def copilot(turns: int = 3, cwd: str = "/src/tidepool") -> list[Fields]:
    context = {"cwd": cwd, "branch": "main"}
    found = [
        event("session.start", "e0", 0, sessionId="cop-1", copilotVersion="1", context=context)
    ]
    for n in range(1, turns + 1):
        call = {"toolCallId": f"c{n}", "name": "bash", "arguments": {"command": f"ls {n}"}}
        found += [
            event("user.message", f"u{n}", 10 * n, content=f"words {n}", transformedContent="x"),
            event("assistant.message", f"a{n}", 10 * n + 1, messageId=f"m{n}",
                  content=f"answer {n}", toolRequests=[call]),
            event("tool.execution_complete", f"t{n}", 10 * n + 2, toolCallId=f"c{n}",
                  success=n != 2, result={"content": "ok"}, error={"message": "no such file"}),
        ]  # fmt: skip
    return found


def gemini_messages(turns: int = 3) -> list[Fields]:
    found: list[Fields] = []
    for n in range(1, turns + 1):
        answer = {"functionResponse": {"id": f"c{n}", "response": {"output": "ok"}}}
        call = {"id": f"c{n}", "name": "read", "args": {"p": f"/src/tidepool/{n}.py"},
                "result": [answer], "status": "success"}  # fmt: skip
        found += [
            {"id": f"u{n}", "timestamp": stamp(10 * n), "type": "user",
             "content": [{"text": f"words {n}"}]},
            {"id": f"g{n}", "timestamp": stamp(10 * n + 1), "type": "gemini",
             "content": f"answer {n}", "toolCalls": [call], "model": "gemini-test"},
        ]  # fmt: skip
    return found


def gemini_header(project_hash: str = "0" * 64) -> Fields:
    return {"sessionId": "gem-1", "projectHash": project_hash, "startTime": stamp(0),
            "lastUpdated": stamp(0)}  # fmt: skip


def gemini(turns: int = 3, project_hash: str = "0" * 64) -> Fields:
    return gemini_header(project_hash) | {"messages": gemini_messages(turns)}


def gemini_lines(turns: int = 3, project_hash: str = "0" * 64) -> list[Fields]:
    return [gemini_header(project_hash), *gemini_messages(turns)]


def node(ident: str, parent: str | None, children: list[str], role: str, text: str, at: float,
         **content: Any) -> Fields:  # fmt: skip
    message = {
        "id": ident,
        "author": {"role": role},
        "create_time": at,
        "content": {"content_type": "text", "parts": [text]} | content,
        "recipient": "all",
        "metadata": {},
    }
    return {"id": ident, "message": message, "parent": parent, "children": children}


def conversation(n: int, **more: Any) -> Fields:
    """One conversation of ChatGPT: a prompt and an answer."""
    at = 1_750_000_000.5 + n * 100
    mapping = {
        f"r{n}": {"id": f"r{n}", "message": None, "parent": None, "children": [f"u{n}"]},
        f"u{n}": node(f"u{n}", f"r{n}", [f"a{n}"], "user", f"words {n}", at + 1),
        f"a{n}": node(f"a{n}", f"u{n}", [], "assistant", f"answer {n}", at + 2),
    }
    return {"title": f'talk "{n}" {{', "create_time": at, "mapping": mapping,
            "current_node": f"a{n}", "conversation_id": f"cg-{n}"} | more  # fmt: skip


def claude_ai(n: int, **more: Any) -> Fields:
    """One conversation of Claude.ai."""

    def said(ident: str, sender: str, text: str, second: int, parent: str) -> Fields:
        return {"uuid": ident, "sender": sender, "text": text, "created_at": stamp(second),
                "content": [{"type": "text", "text": text}],
                "parent_message_uuid": parent}  # fmt: skip

    messages = [said(f"h{n}", "human", f"words {n}", n, "0"),
                said(f"b{n}", "assistant", f"answer {n}", n + 1, f"h{n}")]  # fmt: skip
    return {"uuid": f"ca-{n}", "name": f"talk {n}", "created_at": stamp(n),
            "chat_messages": messages} | more  # fmt: skip


def activity(n: int, prefix: str = "Prompted ", minute: int | None = None) -> Fields:
    """One activity of Gemini in a Takeout."""
    minute = n if minute is None else minute
    return {"header": "Gemini Apps", "title": f"{prefix}words {n}",
            "time": f"2026-02-01T{10 + minute // 60}:{minute % 60:02}:00.000Z",
            "products": ["Gemini Apps"],
            "safeHtmlItem": [{"html": f"<p>answer {n} &amp; more</p>"}]}  # fmt: skip


def openai(turns: int = 3) -> Fields:
    messages: list[Fields] = [{"role": "system", "content": "Be short."}]
    for n in range(1, turns + 1):
        call = {
            "id": f"c{n}",
            "type": "function",
            "function": {"name": "sh", "arguments": '{"a": '},
        }
        messages += [
            {"role": "user", "content": f"words {n}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": "ok"},
            {"role": "assistant", "content": f"answer {n}"},
        ]
    return {"model": "m", "messages": messages}


def anthropic(turns: int = 3) -> Fields:
    messages: list[Fields] = []
    for n in range(1, turns + 1):
        call = {"type": "tool_use", "id": f"c{n}", "name": "sh", "input": {"a": n}}
        result = {"type": "tool_result", "tool_use_id": f"c{n}", "content": "no", "is_error": True}
        messages += [
            {"role": "user", "content": f"words {n}"},
            {"role": "assistant", "content": [{"type": "text", "text": f"answer {n}"}, call]},
            {"role": "user", "content": [result, {"type": "text", "text": f"beside {n}"}]},
            {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "A"}]},
        ]
    return {"model": "m", "system": "Be short.", "messages": messages}


def gemini_contents(turns: int = 3) -> Fields:
    contents: list[Fields] = []
    for n in range(1, turns + 1):
        call = {"functionCall": {"name": "sh", "args": {"a": n}}}
        result = {"functionResponse": {"name": "sh", "response": {"output": "ok"}}}
        contents += [
            {"role": "user", "parts": [{"text": f"words {n}"}]},
            {"role": "model", "parts": [{"text": f"answer {n}"}, call]},
            {"role": "user", "parts": [result]},
        ]
    return {"contents": contents}


def note(n: int, **more: Any) -> Fields:
    return {"project": "/src/tidepool", "kind": "note", "text": f"words {n}", "agent": "x"} | more


def read(data: bytes, *, path: str = "x/file.json", block: int = 1 << 20) -> Reading:
    """Read with the reader that the content asks for."""
    found = format_of(data[: 64 * 1024], path)
    assert found is not None, data[:200]
    blocks = [data[place : place + block] for place in range(0, len(data), block)]
    return found.read(blocks, path=path, start=START)


# Every format in one valid file each: (format, file, whether it is lines of records).
FILES: dict[str, tuple[str, bytes, bool]] = {
    "copilot": ("copilot", lines_of(*copilot()), True),
    "gemini document": ("gemini-cli", json.dumps(gemini(), indent=2).encode(), False),
    "gemini lines": ("gemini-cli", lines_of(*gemini_lines()), True),
    "chatgpt": ("chatgpt", dumped([conversation(n) for n in (1, 2, 3)]), False),
    "chatgpt indented": (
        "chatgpt", json.dumps([conversation(n) for n in (1, 2, 3)], indent=1).encode(), False,
    ),
    "claude-ai": ("claude-ai", dumped([claude_ai(n) for n in (1, 2, 3)]), False),
    "takeout": ("gemini-takeout", dumped([activity(n) for n in (3, 2, 1)]), False),
    "openai": ("openai-messages", dumped(openai()), False),
    "openai lines": (
        "openai-messages",
        lines_of(*({"messages": [{"role": "user", "content": f"words {n}"},
                                 {"role": "assistant", "content": f"answer {n}"}]}
                   for n in (1, 2, 3))),
        False,
    ),
    "anthropic": ("anthropic-messages", dumped(anthropic()["messages"]), False),
    "anthropic object": ("anthropic-messages", dumped(anthropic()), False),
    "gemini contents": ("gemini-messages", dumped(gemini_contents()), False),
    "events": ("everest-events", lines_of(note(1), note(2), note(3)), True),
}  # fmt: skip
