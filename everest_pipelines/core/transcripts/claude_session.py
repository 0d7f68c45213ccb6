"""What is known of one Claude Code file while its records pass in file order."""

from __future__ import annotations

import re

from everest_pipelines.core.records import Channel, Micros, Role
from everest_pipelines.core.transcripts import machine, times
from everest_pipelines.core.transcripts.draft import Draft, Source
from everest_pipelines.core.transcripts.queued import Queue
from everest_pipelines.core.transcripts.wire import Record
from everest_pipelines.text.ids import digest

_AGENT_FILE = re.compile(r"(?:^|[/\\])agent-([^/\\]+)\.jsonl$")
_INNER_NAME = 8  # characters of the first record's id that name an agent without an id


class Session:
    """The state of a reading: turns so far, calls, queue, the chain of records."""

    def __init__(self, path: str, start: Micros) -> None:
        self.path = path
        self.start = start
        self.stem = re.split(r"[/\\]", path)[-1].removesuffix(".jsonl")
        file_agent = _AGENT_FILE.search(path)
        self.file_agent = file_agent.group(1) if file_agent else ""
        self.session_id = ""
        self.first_cwd = ""
        self.drafts: list[Draft] = []
        self.by_id: dict[str, Draft] = {}
        self.calls: dict[str, tuple[Draft, int]] = {}  # call id -> its turn and place there
        self.orphans: dict[str, Draft] = {}  # call id -> the turn of a result without a call
        self.moved: dict[str, str] = {}  # such a turn -> the turn of the call that came later
        self.stamps: list[Micros | None] = []
        self.up: dict[str, str] = {}  # record -> the record it follows
        self.owner: dict[str, str] = {}  # record -> the turn it belongs to
        self.queue = Queue()
        self.last_main = ""  # the latest turn of the main thread
        self.in_ide = False
        self.sdk = False
        self.person = False
        self.place = ""  # why no person works in the session's directory
        self.prompted: str | None = None  # why the first prompt is a program's
        self._inner: dict[str, str] = {}  # record of a sub-agent inside this file -> its name

    def meet(self, record: Record, line: int, content: bytes) -> Source:
        """Note what every record may carry, whatever its type."""
        if record.sessionId and not self.session_id:
            self.session_id = record.sessionId
        if record.timestamp is not None:
            self.stamps.append(times.parse(record.timestamp))
        if record.uuid and record.parentUuid:
            self.up[record.uuid] = record.parentUuid
        if record.cwd and not self.first_cwd:
            self.first_cwd = record.cwd
            self.place = machine.place_of(record.cwd)
        return Source(record, line, content, max(len(self.stamps) - 1, 0))

    def agent_of(self, record: Record) -> str:
        """The sub-agent that a record belongs to; empty in the main thread."""
        if self.file_agent:
            return record.agentId or self.file_agent
        if not record.isSidechain:
            return ""
        name = record.agentId or self._inner.get(record.parentUuid or "")
        name = name or (record.uuid or "")[:_INNER_NAME] or "sidechain"
        if record.uuid:
            self._inner[record.uuid] = name  # CLI 1.0: sub-agents stand inside the parent's file
        return name

    def record_id(self, record: Record, text: str) -> str:
        """The record's id, else a digest of its time and text (never of path or line)."""
        return record.uuid or digest(str(record.timestamp), text)

    def open(
        self,
        turn_id: str,
        source: Source,
        role: Role,
        channel: Channel,
        *,
        text: str = "",
        flags: tuple[str, ...] = (),
        agent: str = "",
        owns: bool = True,
    ) -> Draft | None:
        """A new turn, or None where the file repeats a record.

        ``owns``: later records that follow this one answer this turn.
        """
        earlier = self.by_id.get(turn_id)
        if earlier is not None:
            if earlier.channel is channel and earlier.holds(text):
                return None
            turn_id = digest(turn_id, channel.value, text)  # one id, two texts: keep both
            if turn_id in self.by_id:
                return None
        draft = Draft(
            turn_id,
            source,
            role,
            channel,
            session_id=source.record.sessionId or self.session_id or self.stem,
            subagent=agent,
            text=text,
            flags=flags,
        )
        self.drafts.append(draft)
        self.by_id[turn_id] = draft
        if owns:
            if source.record.uuid:
                self.owner[source.record.uuid] = turn_id
            if not agent:
                self.last_main = turn_id
        return draft
