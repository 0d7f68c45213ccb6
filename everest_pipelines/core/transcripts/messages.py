"""The reader of message arrays: what programs send to OpenAI's, Anthropic's and Gemini's APIs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from everest_pipelines.core.records import Channel, Micros
from everest_pipelines.core.transcripts.fields import Fields, read_document
from everest_pipelines.core.transcripts.lines import Redact, Sink, Suspects, unredacted
from everest_pipelines.core.transcripts.reading import Reading
from everest_pipelines.core.transcripts.talk import (
    Talk,
    fields_of,
    json_of,
    list_of,
    string_of,
    text_of,
)
from everest_pipelines.text.ids import digest

OPENAI, ANTHROPIC, GEMINI = "openai-messages", "anthropic-messages", "gemini-messages"
_BEGINS = re.compile(rb'\{\s*"(?:role|messages|contents|model|system|custom_id)"\s*:')
_ROLE = re.compile(rb'"role"\s*:\s*"(?:system|developer|user|assistant|tool|model|function)"')
_START = re.compile(
    rb'[\[{\s]*"(?:role|messages|contents|content|parts|model|system|tools|id)"\s*:'
)
_GEMINI = re.compile(rb'"(?:contents|parts)"\s*:|"role"\s*:\s*"model"')
_ANTHROPIC = re.compile(
    rb'"type"\s*:\s*"(?:tool_use|tool_result|thinking|redacted_thinking)"|"cache_control"|'
    rb'"stop_reason"|"system"\s*:\s*[\["]'
)
_OPENAI = re.compile(
    rb'"tool_calls"|"tool_call_id"|"function_call"|"image_url"|"refusal"|'
    rb'"role"\s*:\s*"(?:system|developer|tool)"'
)
_ANSWER_IN_BLOCKS = re.compile(rb'"role"\s*:\s*"assistant"\s*,\s*"content"\s*:\s*\[')


def kind_of(head: bytes) -> str:
    """Whose messages a file begins with: the name of a format, or an empty string."""
    beginning = head.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf \t\r\n")
    if not _START.match(beginning) or not _ROLE.search(beginning):
        return ""
    if _GEMINI.search(beginning) and b'"content"' not in beginning:
        return GEMINI
    if _ANTHROPIC.search(beginning):
        return ANTHROPIC
    if _OPENAI.search(beginning):
        return OPENAI
    return ANTHROPIC if _ANSWER_IN_BLOCKS.search(beginning) else OPENAI


def recognises(name: str) -> Callable[[bytes, str], bool]:
    """A detector of one of the three."""
    return lambda head, path: kind_of(head) == name


def reader(name: str) -> Any:
    """The reader of one of the three; they differ in their agent's name alone."""
    return partial(read, agent=name)


def read(
    blocks: Iterable[bytes],
    *,
    agent: str,
    path: str,
    start: Micros,
    redact: Redact = unredacted,
    suspects: Suspects | None = None,
    sink: Sink | None = None,
) -> Reading:
    """Read arrays of messages, bare, in an object, or one object a line; see ``claude.read``.

    Messages carry no times: all take ``start``, for which the caller gives the file's own.
    """
    sessions = Reading()
    bare: list[tuple[Fields, int]] = []

    def take(fields: Fields, line: int, _: bytes) -> str:
        if "role" in fields:
            bare.append((fields, line))
            return ""
        body = fields_of(fields.get("body")) or fields  # a line of a batch
        found = list_of(body.get("messages")) or list_of(body.get("contents"))
        _conversation([(fields_of(one), line) for one in found], agent, path, start, sessions)
        return ""

    reading = read_document(
        blocks,
        path=path,
        redact=redact,
        suspects=suspects,
        sink=sink,
        begins=_BEGINS,
        is_record=_is_record,
        take=take,
    )
    _conversation(bare, agent, path, start, sessions)
    reading.adopt(sessions)
    return reading


def _is_record(fields: Fields) -> bool:
    body = fields_of(fields.get("body")) or fields
    if isinstance(body.get("messages"), list) or isinstance(body.get("contents"), list):
        return True
    return isinstance(fields.get("role"), str) and not fields.keys().isdisjoint(
        ("content", "parts", "tool_calls", "function_call")
    )


def _conversation(
    messages: list[tuple[Fields, int]], agent: str, path: str, start: Micros, sessions: Reading
) -> None:
    """One conversation. It has no id: its first words and its first answer are its name."""
    if not messages:
        return
    first = [json_of(one).decode() for one, _ in messages if _is_said(one)][:2]
    talk = Talk(path=path, start=start, agent=agent, session_id=f"{agent}-{digest(*first)}")
    talk.go(agent)
    for fields, line in messages:
        if fields:
            stamp = fields.get("timestamp") or fields.get("created_at")
            talk.at(stamp, line, json_of(fields))
            _message(talk, fields)
    talk.finish(sessions)


def _is_said(fields: Fields) -> bool:
    return fields.get("role") in ("user", "assistant", "model")


def _message(talk: Talk, fields: Fields) -> None:
    role = string_of(fields.get("role"))
    content = fields.get("content") if "content" in fields else fields.get("parts")
    parts = [fields_of(one) for one in list_of(content)]
    ident = fields.get("id")
    if role in ("assistant", "model"):
        draft = talk.reply(ident, text_of(content), fields.get("model"))
        for part in parts:
            if part.get("type") == "tool_use":
                talk.call(draft, part.get("id"), part.get("name"), part.get("input"))
            call = fields_of(part.get("functionCall"))
            if call:
                talk.call(draft, call.get("id"), call.get("name"), call.get("args"))
        for call in map(fields_of, list_of(fields.get("tool_calls"))):
            asked = fields_of(call.get("function")) or fields_of(call.get("custom"))
            arguments = asked.get("arguments", asked.get("input"))
            talk.call(draft, call.get("id"), asked.get("name"), arguments)
        asked = fields_of(fields.get("function_call"))
        if asked:
            talk.call(draft, None, asked.get("name"), asked.get("arguments"))
        return
    if role in ("tool", "function"):
        answered = _answers(talk, parts)
        if not answered:
            talk.result(fields.get("tool_call_id"), text_of(content))
        return
    if role == "user":
        answered = _answers(talk, parts)
        text = text_of(content)
        if text or not answered:
            talk.person(ident, text, channel=Channel.COMMENT if answered else Channel.PROMPT)
        return
    talk.harness(ident, text_of(content))


def _answers(talk: Talk, parts: list[Fields]) -> bool:
    """The results of tools among the parts; several may stand in one message."""
    found = False
    for part in parts:
        if part.get("type") == "tool_result":
            output = text_of(part.get("content"))
            talk.result(part.get("tool_use_id"), output, error=part.get("is_error") is True)
            found = True
        answer = fields_of(part.get("functionResponse"))
        if answer:
            response = fields_of(answer.get("response"))
            wrong = string_of(response.get("error"))
            output = string_of(response.get("output")) or string_of(response.get("result")) or wrong
            output = output or (json_of(response).decode() if response else "")
            talk.result(answer.get("id"), output, error=bool(wrong))
            found = True
    return found
