"""One conversation while a reader passes its messages: what the chat-like formats share.

Readers of formats whose records are whole messages (no streaming, no harness in between) say what
was said, called and answered, in order; ``finish`` makes the turns.
"""

from __future__ import annotations

from typing import Any, cast

import orjson
from msgspec.structs import replace

from everest_pipelines.core.records import Channel, Micros, Role, ToolCall, Turn
from everest_pipelines.core.transcripts import machine, times, words
from everest_pipelines.core.transcripts.caps import TOOL_CAP, byte_size, clip, clip_json
from everest_pipelines.core.transcripts.draft import Draft, Source
from everest_pipelines.core.transcripts.reading import Reading
from everest_pipelines.core.transcripts.wire import Record
from everest_pipelines.text.ids import digest

Fields = dict[str, Any]


class Talk:
    """The state of one session; ``agent`` also keeps its ids apart from other formats'."""

    def __init__(self, *, path: str, start: Micros, agent: str, session_id: str) -> None:
        self.path = path
        self.start = start
        self.agent = agent
        self.session_id = session_id
        self.cwd = ""
        self.first_cwd = ""
        self.branch = ""
        self.version = ""
        self.model = ""
        self.machine = ""
        self.line = 1
        self.content = b""
        self.stamps: list[Micros | None] = []
        self.drafts: list[Draft] = []
        self.by_id: dict[str, Draft] = {}
        self.withdrawn: set[str] = set()
        self._calls: dict[str, tuple[Draft, int]] = {}
        self._last = ""  # the latest turn that a next one answers
        self._same: dict[tuple[str, str], int] = {}

    def go(self, cwd: object) -> None:
        """The working directory from here on."""
        if isinstance(cwd, str) and cwd:
            self.cwd = cwd
            self.first_cwd = self.first_cwd or cwd

    def at(self, stamp: Any, line: int, content: bytes) -> None:
        """The record that what follows was read from, and its time (any shape, or None)."""
        self.line, self.content = line, content
        self.stamps.append(times.parse(stamp) if isinstance(stamp, str | int | float) else None)

    def name(self, message_id: object, kind: str, text: str) -> str:
        """A turn's id: of the message's own, else of session, words and how often they came."""
        if isinstance(message_id, str) and message_id:
            return f"{self.agent}:{message_id}"
        key = (kind, text)
        self._same[key] = self._same.get(key, 0) + 1
        return digest(self.agent, self.session_id, kind, text, str(self._same[key]))

    def person(
        self,
        message_id: object,
        text: str,
        *,
        channel: Channel = Channel.PROMPT,
        flags: tuple[str, ...] = (),
    ) -> Draft | None:
        """Words in the person's place; those of a harness among them are told apart."""
        said = words.read_words(text, person=False, plan=False)
        kept = channel if said.channel is Channel.PROMPT else said.channel
        return self._open(message_id, said.role, kept, text=said.text, flags=(*said.flags, *flags))

    def harness(
        self, message_id: object, text: str, channel: Channel = Channel.OTHER, *flags: str
    ) -> Draft | None:
        """Nobody's words: system prompts, notes, stops."""
        return self._open(message_id, Role.HARNESS, channel, text=text, flags=flags)

    def reply(self, message_id: object, text: str, model: object = "") -> Draft:
        """What the agent said; a further part of a message with the same id joins it."""
        name = f"{self.agent}:{message_id}" if isinstance(message_id, str) and message_id else ""
        draft = self.by_id.get(name) if name else None
        if draft is None or draft.role is not Role.ASSISTANT:
            draft = self._open(message_id, Role.ASSISTANT, Channel.REPLY, kind="reply", text="")
            assert draft is not None  # nothing was said yet, so nothing is repeated
        else:
            draft.line_to = max(self.line, draft.line_to)
            draft.hash.update(self.content)
        if text.strip():
            draft.add_text(text.strip())
        if isinstance(model, str) and model:
            draft.model = model
        return draft

    def call(self, draft: Draft, call_id: object, name: object, arguments: Any) -> None:
        """A tool call of a reply; ``arguments`` a JSON text or a value."""
        ident = call_id if isinstance(call_id, str) and call_id else ""
        ident = ident or f"{draft.turn_id}:{len(draft.calls)}"
        if ident in self._calls:
            return
        data = arguments.encode("utf-8", "replace") if isinstance(arguments, str) else b""
        if not data and arguments is not None:
            data = json_of(arguments)
        title = name if isinstance(name, str) else ""
        self._calls[ident] = (draft, len(draft.calls))
        draft.calls.append(
            ToolCall(id=ident, name=title, input=clip_json(data), input_bytes=len(data))
        )

    def result(
        self, call_id: object, output: str, *, error: bool = False, refused: bool = False
    ) -> None:
        """What a call gave; without a known id it belongs to the last call that has none yet."""
        found = self._calls.get(call_id) if isinstance(call_id, str) else None
        if found is None:
            open_ = [one for one in self._calls.values() if one[0].calls[one[1]].output is None]
            if not open_ or (isinstance(call_id, str) and call_id):
                draft = self.harness(None, "", Channel.OTHER, "no_call")
                if draft is not None:
                    ident = str(call_id or draft.turn_id)
                    draft.calls.append(ToolCall(id=ident, name=""))
                    self._calls[ident] = found = (draft, 0)
            else:
                found = open_[-1]
        if found is None:
            return
        draft, place = found
        if draft.calls[place].output is not None:
            return  # the file repeats the record
        draft.hash.update(self.content)
        draft.calls[place] = replace(
            draft.calls[place],
            output=clip(output, TOOL_CAP),
            output_bytes=byte_size(output),
            is_error=error,
            refused=refused,
        )

    def refuse(self, call_id: object, why: str) -> None:
        """The person refused a call, perhaps with words."""
        found = self._calls.get(call_id) if isinstance(call_id, str) else None
        if found is not None:
            draft, place = found
            draft.calls[place] = replace(draft.calls[place], refused=True, is_error=True)
        if why.strip():
            self._open(None, Role.HUMAN, Channel.REFUSAL, text=why.strip())

    def _open(
        self,
        message_id: object,
        role: Role,
        channel: Channel,
        *,
        text: str,
        kind: str = "",
        flags: tuple[str, ...] = (),
    ) -> Draft | None:
        kind = kind or channel.value
        name = self.name(message_id, kind, text or (str(len(self.drafts)) if kind else ""))
        if name in self.by_id:
            return None  # the file repeats the message
        if not self.stamps:
            self.stamps.append(None)
        record = Record(
            type=kind,
            cwd=self.cwd or None,
            version=self.version or None,
            gitBranch=self.branch or None,
        )
        source = Source(record, self.line, self.content, len(self.stamps) - 1)
        draft = Draft(
            name,
            source,
            role,
            channel,
            session_id=self.session_id,
            subagent="",
            text=text,
            flags=flags,
        )
        draft.up_turn = self._last
        draft.model = self.model if role is Role.ASSISTANT else ""
        self.drafts.append(draft)
        self.by_id[name] = draft
        if role is not Role.HARNESS:
            self._last = name
        return draft

    def finish(self, reading: Reading) -> None:
        """Add the session's turns to the reading; the first session gives the file its name."""
        at, replaced = times.mended(self.stamps or [None], self.start)
        dated = any(stamp is not None and stamp >= self.start for stamp in self.stamps)
        began = at[0] if dated or self.drafts else 0
        if not reading.session_id:
            reading.session_id = self.session_id
            reading.session_started_at = began
            reading.first_cwd = self.first_cwd
            reading.machine = self.machine
        if self.drafts:
            reading.last_at = max(reading.last_at, *at)
        if machine.is_own_place(self.first_cwd):
            self.machine = reading.machine = "own"
        empty = {draft.turn_id for draft in self.drafts if draft.is_empty()}
        turns: list[Turn] = []
        begun = False
        before = (0, -1)  # line and time of the turn before
        for draft in self.drafts:
            if draft.turn_id in empty:
                continue
            if self.machine and draft.role is Role.HUMAN:
                draft.role, draft.channel = Role.HARNESS, Channel.MACHINE
                draft.add_flags((f"machine:{self.machine}",))
            flags: tuple[str, ...] = ()
            if not begun and draft.role is Role.HUMAN:
                begun, flags = True, ("first_prompt",)
            if draft.time in replaced:
                flags = (*flags, "time_corrected")
            up = draft.up_turn
            while up in empty:
                up = self.by_id[up].up_turn
            if not draft.cwd and self.first_cwd:
                draft.cwd = self.first_cwd  # learnt later in the file
            when = at[draft.time]
            if draft.line_from == before[0] and when <= before[1]:
                when = before[1] + 1  # one line holds them all: only the time keeps their order
            before = (draft.line_from, when)
            turn = draft.finished(
                occurred_at=when,
                parent=up,
                path=self.path,
                started_at=began,
                flags=flags,
                withdrawn=draft.turn_id in self.withdrawn,
            )
            turns.append(replace(turn, agent=self.agent))
        reading.turns.extend(turns)


def text_of(content: Any) -> str:
    """The text of a message's content: a string, or a list of strings and text parts."""
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for part in cast("list[Any]", content) if isinstance(content, list) else []:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            fields = cast("Fields", part)
            inner = fields.get("text")
            hidden = fields.get("thought") or fields.get("type") in ("thinking", "reasoning")
            if isinstance(inner, str) and not hidden:
                texts.append(inner)
    return "\n".join(text for text in texts if text)


def fields_of(value: Any) -> Fields:
    """The value where it is an object, else an empty one."""
    return cast("Fields", value) if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    """The value where it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def string_of(value: Any) -> str:
    """The value where it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def json_of(value: Any) -> bytes:
    """A decoded value as JSON again; empty where it is nested too deeply to be any record's."""
    try:
        return orjson.dumps(value)
    except (TypeError, RecursionError):
        return b""
