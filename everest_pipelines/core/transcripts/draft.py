"""A turn while its file is still being read."""

from __future__ import annotations

import hashlib
from typing import Any

from msgspec import Struct

from everest_pipelines.core.records import Channel, Micros, Role, ToolCall, Turn
from everest_pipelines.core.transcripts.caps import HARNESS_CAP, TEXT_CAP, clip
from everest_pipelines.core.transcripts.wire import Record

REPEAT = 20  # characters; a longer text that a later block begins with is the same text growing
SLACK = 64  # characters: room for the mark of a text that was cut before
LOOK_BACK = 16  # blocks of a turn that a new one is compared with


class Source(Struct, frozen=True, gc=False):
    """A record and where it stands: line (1-based), redacted bytes, place among the times."""

    record: Record
    line: int
    content: bytes
    time: int


class Draft:
    """Collects what a turn's lines say; ``finished`` makes the row."""

    __slots__ = (
        "branch",
        "calls",
        "channel",
        "cwd",
        "flags",
        "hash",
        "line_from",
        "line_to",
        "model",
        "person",
        "role",
        "session_id",
        "subagent",
        "texts",
        "time",
        "turn_id",
        "up",
        "up_turn",
        "version",
    )

    def __init__(
        self,
        turn_id: str,
        source: Source,
        role: Role,
        channel: Channel,
        *,
        session_id: str,
        subagent: str,
        text: str = "",
        flags: tuple[str, ...] = (),
    ) -> None:
        record = source.record
        self.turn_id = turn_id
        self.role = role
        self.channel = channel
        self.texts = [clip(text, TEXT_CAP)] if text else []
        self.calls: list[ToolCall] = []
        self.flags = list(flags)
        if len(text) > TEXT_CAP:
            self.flags.append("text_cut")
        self.time = source.time
        self.session_id = session_id
        self.subagent = subagent
        self.up = record.parentUuid or ""  # record that this turn's first record follows
        self.up_turn = ""  # turn that it answers, where that is known at once
        self.person = False  # the record itself says that a person typed it
        self.version = record.version or ""
        self.model = ""
        self.cwd = record.cwd or ""
        self.branch = record.gitBranch or ""
        self.line_from = source.line
        self.line_to = source.line
        self.hash: Any = hashlib.sha256(source.content)

    def is_empty(self) -> bool:
        """Nothing but thinking (so far): no contribution. A person's image alone is one."""
        return not self.texts and not self.calls and self.role is not Role.HUMAN

    def add_text(self, text: str) -> None:
        """A further text block; one that repeats or continues an earlier block replaces it."""
        if len(text) > TEXT_CAP:
            text = clip(text, TEXT_CAP)
            self.add_flags(("text_cut",))
        for place in range(max(len(self.texts) - LOOK_BACK, 0), len(self.texts)):
            earlier = self.texts[place]
            if text == earlier:
                return
            if len(earlier) > REPEAT and text.startswith(earlier):
                self.texts[place] = text
                return
        self.texts.append(text)

    def holds(self, text: str) -> bool:
        """Whether the turn's text is just this one."""
        return self.texts == ([clip(text, TEXT_CAP)] if text else [])

    def add_flags(self, flags: tuple[str, ...]) -> None:
        self.flags.extend(flag for flag in flags if flag not in self.flags)

    def finished(
        self,
        *,
        occurred_at: Micros,
        parent: str,
        path: str,
        started_at: Micros,
        flags: tuple[str, ...] = (),
        withdrawn: bool = False,
        duplicate_of: str = "",
    ) -> Turn:
        """The row; ``flags`` come on top of the draft's own."""
        text = "\n\n".join(self.texts)
        cap = HARNESS_CAP if self.role is Role.HARNESS else TEXT_CAP
        if len(text) > cap + SLACK:
            text = clip(text, cap)
            self.add_flags(("text_cut",))
        return Turn(
            turn_id=self.turn_id,
            session_id=self.session_id,
            role=self.role,
            channel=self.channel,
            occurred_at=occurred_at,
            text=text,
            tool_calls=tuple(self.calls),
            agent_version=self.version,
            model=self.model,
            cwd=self.cwd,
            git_branch=self.branch,
            subagent=self.subagent,
            parent=parent,
            withdrawn=withdrawn,
            duplicate_of=duplicate_of,
            flags=(*self.flags, *flags),
            source_path=path,
            line_from=self.line_from,
            line_to=self.line_to,
            sha256=self.hash.hexdigest(),
            session_started_at=started_at,
        )
