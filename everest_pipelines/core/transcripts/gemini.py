"""The reader of Gemini CLI's chats (``tmp/<project>/chats/session-*.json`` and ``.jsonl``)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from itertools import chain

from everest_pipelines.core.records import Channel, Micros
from everest_pipelines.core.transcripts.fields import Fields, read_document, read_lines
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

NAME = "gemini-cli"
_HEADER = re.compile(rb'"sessionId"\s*:\s*"')
_HASH = re.compile(rb'"projectHash"\s*:\s*"')
_BEGINS = re.compile(rb'\{\s*"sessionId"\s*:')
_CONTEXT = re.compile(r"\s*<session_context>.*?(?:</session_context>\s*|\Z)", re.DOTALL)
_PATH = re.compile(r"(?:/|[A-Za-z]:[\\/])[^\s\"'`<>|*?:,;()]+")
LOOKED_AT = 20  # lines of a file's beginning
PATHS = 500  # different paths of a file that are tried against the project's hash
TYPES = frozenset(["user", "gemini", "info", "warning", "error"])


def recognises(head: bytes, path: str) -> bool:
    """Whether a file begins like a chat: a session with the hash of its project."""
    del path
    beginning = head.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf \t\r\n")[:4096]
    return (
        beginning.startswith(b"{")
        and _HEADER.search(beginning) is not None
        and _HASH.search(beginning) is not None
    )


def read(
    blocks: Iterable[bytes],
    *,
    path: str,
    start: Micros,
    redact: Redact = unredacted,
    suspects: Suspects | None = None,
    sink: Sink | None = None,
) -> Reading:
    """Read a whole chat from its first byte; parameters and promises as of ``claude.read``.

    Older versions write one document, anew at every turn. In newer ones each line adds a message
    (again when it changed), sets fields ($set) or takes messages back ($rewindTo).
    """
    stem = re.split(r"[/\\]", path)[-1].rsplit(".", 1)[0]
    chat = _Chat(Talk(path=path, start=start, agent=NAME, session_id=stem))
    ahead = iter(blocks)
    first = next(ahead, b"")
    both: Iterator[bytes] = chain((first,), ahead)
    if _is_lines(first):
        reading = read_lines(
            both, path=path, redact=redact, suspects=suspects, sink=sink,
            is_record=_is_line, take=chat.take,
        )  # fmt: skip
    else:
        reading = read_document(
            both, path=path, redact=redact, suspects=suspects, sink=sink,
            begins=_BEGINS, is_record=_is_line, take=chat.take, rewritten=True,
        )  # fmt: skip
    if reading.records:
        chat.finish(reading)
    return reading


def _is_lines(first: bytes) -> bool:
    beginning = first.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf \t\r\n")
    whole = beginning.split(b"\n")[:-1][:LOOKED_AT]
    return any(line.startswith(b'{"') and line.rstrip().endswith(b"}") for line in whole)


def _is_line(fields: Fields) -> bool:
    return (
        "sessionId" in fields
        or "$set" in fields
        or "$rewindTo" in fields
        or (isinstance(fields.get("type"), str) and "id" in fields)
    )


class _Chat:
    """One session: its header, its messages, and where the project lies."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        self.hash = ""
        self.subagent = False
        self._tried: set[str] = set()

    def take(self, fields: Fields, line: int, content: bytes) -> str:
        """One record; returns the name of an unknown type."""
        if "$rewindTo" in fields:
            self._rewind(string_of(fields["$rewindTo"]))
            return ""
        changed = fields_of(fields.get("$set"))
        header = changed or fields
        unknown = ""
        if "sessionId" in header or "messages" in header or "directories" in header:
            self._header(header, line, content)
            for message in map(fields_of, list_of(header.get("messages"))):
                unknown = self._message(message, line) or unknown
        elif not changed:
            unknown = self._message(fields, line)
        return unknown

    def _header(self, fields: Fields, line: int, content: bytes) -> None:
        talk = self.talk
        talk.session_id = string_of(fields.get("sessionId")) or talk.session_id
        self.hash = string_of(fields.get("projectHash")) or self.hash
        self.subagent = self.subagent or fields.get("kind") == "subagent"
        if "startTime" in fields and not talk.stamps:
            talk.at(fields["startTime"], line, content)
        for folder in list_of(fields.get("directories"))[:1]:
            talk.go(folder)

    def _message(self, fields: Fields, line: int) -> str:
        talk, ident, kind = self.talk, fields.get("id"), string_of(fields.get("type"))
        if kind not in TYPES:
            return kind[:60] or "(empty)"
        own = json_of(fields)  # not the whole document, which grows
        talk.at(fields.get("timestamp"), line, own)
        text = text_of(fields.get("content"))
        if kind == "user":
            said = _CONTEXT.sub("", text) if text.lstrip().startswith("<session_context>") else text
            if self.subagent:
                talk.harness(ident, said, Channel.SUBAGENT_PROMPT)
            elif not said.strip():
                talk.harness(ident, text)
            else:
                talk.person(ident, said)
        elif kind == "gemini":
            draft = talk.reply(ident, text, fields.get("model"))
            for call in map(fields_of, list_of(fields.get("toolCalls"))):
                talk.call(draft, call.get("id"), call.get("name"), call.get("args"))
                self._result(call)
        else:
            stopped = kind == "info" and text.startswith("Request cancelled")
            channel = Channel.INTERRUPTION if stopped else Channel.OTHER
            talk.harness(ident, text, channel, f"gemini:{kind}")
        return ""

    def _result(self, call: Fields) -> None:
        status = string_of(call.get("status"))
        if status not in ("success", "error", "cancelled"):
            return  # still at work
        texts: list[str] = []
        for part in map(fields_of, list_of(call.get("result"))):
            response = fields_of(fields_of(part.get("functionResponse")).get("response"))
            texts += [string_of(response.get(name)) for name in ("output", "error")]
        output = "\n".join(text for text in texts if text)
        if not output:
            output = string_of(call.get("resultDisplay"))
        self._look_for_the_project(f"{output} {call.get('args')}")
        wrong = status != "success"
        self.talk.result(call.get("id"), output, error=wrong, refused=status == "cancelled")

    def _look_for_the_project(self, text: str) -> None:
        """A directory above a path that the chat names, if its hash is the project's."""
        if self.talk.first_cwd or len(self.hash) != 64:
            return
        for found in _PATH.findall(text.replace("\\\\", "\\")):
            path = found.rstrip("/\\.")
            while len(path) > 1 and path not in self._tried and len(self._tried) < PATHS:
                self._tried.add(path)
                if hashlib.sha256(path.encode("utf-8", "replace")).hexdigest() == self.hash:
                    self.talk.go(path)
                    return
                path = path[: max(path.rfind("/"), path.rfind("\\"), 0)]

    def _rewind(self, ident: str) -> None:
        """A message and all behind it were taken back; an unknown one takes all back."""
        names = [draft.turn_id for draft in self.talk.drafts]
        place = names.index(f"{NAME}:{ident}") if f"{NAME}:{ident}" in names else 0
        self.talk.withdrawn.update(names[place:])

    def finish(self, reading: Reading) -> None:
        """The turns; a project that only its hash tells gets a name of its own."""
        if not self.talk.first_cwd:
            self.talk.go(f"{NAME}/{self.hash[:12] or 'unknown'}")
        reading.subagent = self.subagent
        self.talk.finish(reading)
