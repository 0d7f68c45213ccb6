"""A session family laid out for the detectors: who spoke after whom.

The detectors never sort or filter turns themselves. A scene drops what was taken back and what
was said twice, keeps one stream for the main thread of each session and one for each of its
sub-agents, and answers the questions that context needs: what came before, what the agent
answered, what the person had said by then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from everest_pipelines.core.records import Channel, Role, ToolCall, Turn

PERSON = frozenset(
    {Channel.PROMPT, Channel.COMMAND, Channel.COMMENT, Channel.REFUSAL, Channel.QUEUED}
)
"""The channels that carry a person's sentences; a shell command typed by the person does not."""

_PLAN = re.compile(r"\s*Implement the following plan:")


def is_person(turn: Turn) -> bool:
    """Whether the turn holds sentences that a person wrote for the main agent."""
    return (
        turn.role == Role.HUMAN
        and turn.channel in PERSON
        and not turn.subagent
        and "machine" not in turn.flags
        and not _PLAN.match(turn.text)
    )


def order(turn: Turn) -> tuple[int, str, str, str, int, int, str]:
    """The sort key of turns: sessions by their start, then file order inside a session."""
    return (
        turn.session_started_at,
        turn.session_id,
        turn.subagent,
        turn.source_path,
        turn.line_from,
        turn.occurred_at,  # one line may hold a whole conversation
        turn.turn_id,
    )


class Place:
    """One turn of a scene with its neighbours."""

    __slots__ = ("flags", "index", "scene", "score", "stream", "turn")

    def __init__(self, scene: Scene, stream: list[Turn], index: int) -> None:
        self.scene = scene
        self.stream = stream
        self.index = index
        self.turn = stream[index]
        # What detectors worked out of it, for the next one that asks (see context, correction).
        self.flags: dict[str, float] | None = None
        self.score: float | None = None

    @property
    def before(self) -> Turn | None:
        """The turn just before, in this stream or, at its start, in the session forked from."""
        if self.index:
            return self.stream[self.index - 1]
        return self.scene.by_id.get(self.turn.parent)

    def reply_before(self) -> Turn | None:
        """The agent's last turn before this one that says something, else its last turn."""
        last: Turn | None = None
        for turn in self.back():
            if turn.role == Role.ASSISTANT:
                if turn.text.strip():
                    return turn
                last = last or turn
            elif is_person(turn) and last is not None:
                break
        return last

    def work_before(self) -> list[Turn]:
        """The agent's turns since the person last spoke, newest first."""
        work: list[Turn] = []
        for turn in self.back():
            if is_person(turn):
                break
            if turn.role == Role.ASSISTANT:
                work.append(turn)
        return work

    def reply_after(self) -> Turn | None:
        """The agent's first turn after this one that says something, before the next words."""
        for turn in self.stream[self.index + 1 :]:
            if turn.role == Role.ASSISTANT and turn.text.strip():
                return turn
            if is_person(turn):
                return None
        return None

    def recent_work(self, most: int) -> list[Turn]:
        """The agent's turns with calls, newest first, whoever spoke between, at most so many."""
        work: list[Turn] = []
        for turn in self.back():
            if turn.role == Role.ASSISTANT and turn.tool_calls:
                work.append(turn)
                if len(work) >= most:
                    break
        return work

    def work_after(self, most: int) -> list[Turn]:
        """The agent's next turns, at most so many, before the person speaks again."""
        work: list[Turn] = []
        for turn in self.stream[self.index + 1 :]:
            if is_person(turn) or len(work) >= most:
                break
            if turn.role == Role.ASSISTANT:
                work.append(turn)
        return work

    def words_before(self) -> Iterator[Turn]:
        """The person's earlier turns, newest first."""
        return (turn for turn in self.back() if is_person(turn))

    def back(self) -> Iterator[Turn]:
        """Every earlier turn, newest first, across the fork into the parent session."""
        for index in range(self.index - 1, -1, -1):
            yield self.stream[index]
        seen: set[str] = set()
        turn = self.scene.by_id.get(self.stream[0].parent)
        while turn is not None and turn.turn_id not in seen:
            seen.add(turn.turn_id)
            yield turn
            turn = self.scene.by_id.get(turn.parent)


class Scene:
    """All turns of one session family up to some instant, in order."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        kept = [turn for turn in turns if not turn.withdrawn and not turn.duplicate_of]
        self.turns: list[Turn] = sorted(kept, key=order)
        self.by_id: dict[str, Turn] = {}
        self.streams: dict[tuple[str, str], list[Turn]] = {}
        for turn in self.turns:
            self.by_id.setdefault(turn.turn_id, turn)
            self.streams.setdefault((turn.session_id, turn.subagent), []).append(turn)

    @cached_property
    def words(self) -> list[Place]:
        """The places where a person speaks, in order."""
        return [place for place in self.places() if is_person(place.turn)]

    @cached_property
    def spoken(self) -> frozenset[str]:
        """The ids of the turns in which a person speaks."""
        return frozenset(place.turn.turn_id for place in self.words)

    def places(self) -> Iterator[Place]:
        """Every turn with its neighbours."""
        for stream in self.streams.values():
            for index in range(len(stream)):
                yield Place(self, stream, index)

    def calls(self) -> Iterator[tuple[list[tuple[Turn, ToolCall]], int]]:
        """Every tool call as (the calls of its stream, its index there)."""
        for stream in self.streams.values():
            calls = [(turn, call) for turn in stream for call in turn.tool_calls]
            for index in range(len(calls)):
                yield calls, index
