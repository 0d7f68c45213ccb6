"""What is known of one Codex rollout while its lines pass in file order.

A message stands in a rollout up to three times: as the model's item, as an event, as a completed
item. The n-th copy from one place is the n-th from the others, so each is one turn whatever a
version writes or a crash took away. Forks and sub-agents begin with a copy of their parent's
lines, written anew: ids are made of Codex's own turn ids and the words, never of times.
"""

from __future__ import annotations

import contextlib
import re
from collections import defaultdict

from msgspec import Struct

from everest_pipelines.core.records import Channel, Micros, Role
from everest_pipelines.core.transcripts import machine, times
from everest_pipelines.core.transcripts.codex_wire import Entry, Item, value_of
from everest_pipelines.core.transcripts.draft import Draft, Source
from everest_pipelines.core.transcripts.queued import squeeze
from everest_pipelines.core.transcripts.wire import Record
from everest_pipelines.core.transcripts.words import Words
from everest_pipelines.text.ids import digest, uuid7_ms

_FILE_ID = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl(?:\.zst)?\Z")
BURST: Micros = 2_000_000  # a copied history is written within moments of its first line
NEAR = 20  # lines between the copies of one message: beyond, they do not widen its span


class Said(Struct):
    """A message and the places of the file that it has been met in."""

    draft: Draft
    stretch: int
    places: set[str]


class Stretch(Struct):
    """One turn in Codex's sense: what one prompt set going."""

    number: int = 0
    turn_id: str = ""
    began: Micros = 0  # 0 where nothing tells
    worked: bool = False  # the agent has answered or called a tool


class Session:
    """The state of a reading."""

    def __init__(self, path: str, start: Micros) -> None:
        self.path = path
        self.start = start
        name = re.split(r"[/\\]", path)[-1]
        found = _FILE_ID.search(name)
        self.stem = found.group(1) if found else name.removesuffix(".jsonl")
        self.meta: Item | None = None
        self.parent_session = ""
        self.is_subagent = False
        self.machine = ""
        self.cwd = ""
        self.first_cwd = ""
        self.branch = ""
        self.version = ""
        self.model = ""
        self.owner = ""  # session that the lines belong to: another one in a copied history
        self.copied_at: Micros | None = None  # time of the line that began the copied history
        self.copied = False
        self.began: Micros = 0  # this session's own beginning
        self.stretch = Stretch()
        self.stamps: list[Micros | None] = []
        self.drafts: list[Draft] = []
        self.by_id: dict[str, Draft] = {}
        self.stretch_of: dict[str, int] = {}  # turn -> number of its stretch
        self.told: set[int] = set()  # stretches whose words an event tells
        self.said: dict[tuple[str, str], list[Said]] = {}
        self.only_item: dict[str, Said] = {}  # a person's words that no event told so far
        self.calls: dict[str, tuple[Draft, int]] = {}
        self.by_event: set[str] = set()  # calls whose output an event brought
        self.orphans: dict[str, Draft] = {}
        self.moved: dict[str, str] = {}
        self.agent: Draft | None = None  # the answer that calls are still added to
        self.last_agent = ""
        self.stops: dict[tuple[int, int], Draft] = {}
        self.rounds = 0  # messages of the person so far
        self.withdrawn: set[str] = set()
        self.prompted: str | None = None  # why the first prompt is a program's
        self._counts: defaultdict[tuple[str, ...], int] = defaultdict(int)

    @property
    def session_id(self) -> str:
        """The session that the turns belong to; a sub-agent's are its parent's."""
        return self.parent_session or self.own_id

    @property
    def own_id(self) -> str:
        return (self.meta.id if self.meta else None) or self.stem

    @property
    def subagent(self) -> str:
        return self.own_id if self.is_subagent else ""

    def meet(self, entry: Entry, line: int, content: bytes) -> Source:
        """Note a line's time, and whether it still belongs to a copied history."""
        at = times.parse(entry.timestamp)
        if self.copied and not self.stretch.began and at is not None:
            self.copied = at <= max(self.copied_at or 0, self.began) + BURST
        if self.copied and self.stretch.began:
            at = self.stretch.began  # the copy carries the time at which it was made
        if at is not None or entry.timestamp is not None:
            self.stamps.append(at)
        record = Record(
            type=entry.type,
            cwd=self.cwd or None,
            version=self.version or None,
            gitBranch=self.branch or None,
        )
        return Source(record, line, content, max(len(self.stamps) - 1, 0))

    def begin(self, meta: Item, at: Micros | None) -> None:
        """A session's first line; another session's behind it begins a copied history."""
        began = times.parse(meta.timestamp) or at or 0
        if self.meta is not None and meta.id and meta.id != self.meta.id:
            self.copied, self.copied_at, self.owner = True, at, meta.id
            return
        if self.meta is None:
            self.meta, self.began = meta, began
            self._place(meta)
        self.owner = ""
        self.version = meta.cli_version or self.version
        self.branch = (meta.git.branch if meta.git else None) or self.branch
        self.go(meta.cwd)

    def _place(self, meta: Item) -> None:
        source = value_of(meta.source)
        inner = source.get("subagent") if isinstance(source, dict) else None
        self.is_subagent = inner is not None or meta.thread_source == "subagent"
        if self.is_subagent:
            spawn = inner.get("thread_spawn") if isinstance(inner, dict) else None
            parent = spawn.get("parent_thread_id") if isinstance(spawn, dict) else None
            root = meta.session_id if meta.session_id != meta.id else None
            named = parent if isinstance(parent, str) else ""
            self.parent_session = root or meta.parent_thread_id or named
            return
        originator = (meta.originator or "").lower()
        if source == "exec" or originator.startswith("codex_exec") or "sdk" in originator:
            self.machine = "sdk"
        elif source == "mcp":
            self.machine = "mcp"
        elif isinstance(source, dict) and "internal" in source:
            self.machine = "internal"
        elif meta.thread_source not in (None, "", "user"):
            self.machine = "internal"  # scheduled and background threads

    def go(self, cwd: str | None) -> None:
        """The working directory from here on."""
        if cwd:
            self.cwd = cwd
            if not self.copied or not self.first_cwd:
                self.first_cwd = self.first_cwd or cwd

    def begin_stretch(self, turn_id: str | None, began: Micros | None) -> None:
        """A new prompt's work begins; the same turn id again changes nothing."""
        if turn_id and turn_id == self.stretch.turn_id:
            return
        known = began or 0
        if turn_id and turn_id[14:15] == "7":
            with contextlib.suppress(ValueError):
                known = uuid7_ms(turn_id) * 1000
        self.stretch = Stretch(self.stretch.number + 1, turn_id or "", known)
        self.agent = None
        if self.copied and known and self.began and known >= self.began - BURST:
            self.copied = False
            self.owner = ""

    def name(self, kind: str, text: str) -> str:
        """A turn's id: of Codex's turn, else of the session, the words and how often they came."""
        key = (self.stretch.turn_id or self.owner or self.own_id, kind, text)
        self._counts[key] += 1
        return digest("codex", *key, str(self._counts[key]))

    def say(self, kind: str, place: str, words: Words, source: Source) -> tuple[Draft, bool]:
        """The turn of a message met in one ``place`` of the file, and whether it is new."""
        key = (kind, squeeze(words.text))
        number = self.stretch.number
        near = [said for said in self.said.get(key, ()) if number - said.stretch <= 1]
        for said in near:
            if place not in said.places:
                said.places.add(place)
                self.widen(said.draft, source)
                return said.draft, False
        draft = self.open(self.name(kind, key[1]), source, words)
        near.append(Said(draft, number, {place}))
        self.said[key] = near
        if kind == "user" and place == "item":
            self.only_item[draft.turn_id] = near[-1]
        return draft, True

    def open(self, turn_id: str, source: Source, words: Words, *, agent: bool = False) -> Draft:
        """A new turn in file order."""
        draft = Draft(
            turn_id,
            source,
            words.role,
            words.channel,
            session_id=self.session_id,
            subagent=self.subagent,
            text=words.text,
            flags=words.flags,
        )
        self.drafts.append(draft)
        self.by_id[turn_id] = draft
        self.stretch_of[turn_id] = self.stretch.number
        if words.role is Role.ASSISTANT:
            draft.model = self.model
            self.stretch.worked = True
            self.agent = draft
            self.last_agent = turn_id
        return draft

    def widen(self, draft: Draft, source: Source) -> None:
        """A further line of a turn."""
        draft.hash.update(source.content)
        if 0 <= source.line - draft.line_to <= NEAR:
            draft.line_to = source.line

    def take_back(self, count: int) -> None:
        """The person rolled the last ``count`` prompts back, with all that came of them."""
        gone: list[str] = []
        turns: set[object] = set()
        for draft in reversed(self.drafts):
            if draft.turn_id in self.withdrawn:
                continue
            if draft.role is Role.HUMAN:
                stretch = self.stretch_of[draft.turn_id]
                turns.add(stretch if self.stretch.turn_id else draft.turn_id)
                if len(turns) > count:
                    break
            elif len(turns) == count and self.stretch_of[draft.turn_id] not in turns:
                break
            gone.append(draft.turn_id)
        self.withdrawn.update(gone)

    def is_scheduled(self) -> bool:
        """Whether a schedule's prompt is all that was said to the agent."""
        said = {draft.role for draft in self.drafts if draft.role is Role.HUMAN}
        return not said and any(draft.channel is Channel.MACHINE for draft in self.drafts)

    def machine_of(self) -> str:
        """Why no person led the session, or an empty string."""
        return machine.place_of(self.first_cwd) or self.prompted or self.machine
