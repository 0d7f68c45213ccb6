"""Turns of the shapes that the readers write, a minute apart."""

from __future__ import annotations

import itertools
import json
from typing import Any

from everest_pipelines.core.records import Channel, Day, Micros, Role, ToolCall, Turn, moment

START: Micros = 1_760_000_000_000_000
MINUTE: Micros = 60_000_000
_NUMBERS = itertools.count(1)


def day_of(at: Micros) -> Day:
    """The UTC day."""
    return moment(at).date().isoformat()


def call(
    name: str,
    output: str | None = "ok",
    *,
    id: str = "",
    error: bool = False,
    refused: bool = False,
    **fields: Any,
) -> ToolCall:
    """A call with its input as JSON; every call of a test has its own id."""
    text = json.dumps(fields)
    return ToolCall(
        id=id or f"toolu_{name}_{next(_NUMBERS)}",
        name=name,
        input=text,
        output=output,
        is_error=error,
        refused=refused,
    )


class Talk:
    """A session that grows turn by turn."""

    def __init__(self, session: str = "s1", *, start: Micros = START, agent: str = "") -> None:
        self.session = session
        self.start = start
        self.subagent = agent
        self.turns: list[Turn] = []

    def human(self, text: str, channel: Channel = Channel.PROMPT, **more: Any) -> Turn:
        return self._add(Role.HUMAN, channel, text, **more)

    def agent(self, text: str = "", *calls: ToolCall, **more: Any) -> Turn:
        return self._add(Role.ASSISTANT, Channel.REPLY, text, tool_calls=calls, **more)

    def harness(self, text: str, channel: Channel, **more: Any) -> Turn:
        return self._add(Role.HARNESS, channel, text, **more)

    def _add(self, role: Role, channel: Channel, text: str, **more: Any) -> Turn:
        number = len(self.turns) + 1
        fields: dict[str, Any] = {
            "turn_id": f"{self.session}-{self.subagent}{number}",
            "session_id": self.session,
            "role": role,
            "channel": channel,
            "occurred_at": self.start + number * MINUTE,
            "text": text,
            "subagent": self.subagent,
            "parent": self.turns[-1].turn_id if self.turns else "",
            "source_path": f"claude/projects/p/{self.session}.jsonl",
            "line_from": number,
            "line_to": number,
            "session_started_at": self.start,
            "family_id": "f1",
        }
        turn = Turn(**{**fields, **more})
        self.turns.append(turn)
        return turn
