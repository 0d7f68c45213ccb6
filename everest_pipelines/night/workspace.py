"""What a stage works with: the lake, its calendar, the settings, a clock and a progress bar."""

from __future__ import annotations

import datetime as dt
import gc
import time
from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from everest_pipelines.core.records import Day, Micros, ProjectKey, Turn, micros
from everest_pipelines.lake.calendar import Calendar
from everest_pipelines.lake.history import History
from everest_pipelines.lake.lake import CellResult, Lake
from everest_pipelines.text.home import Home
from everest_pipelines.text.settings import Settings

if TYPE_CHECKING:
    from everest_pipelines.night.models.ollama import Server


class Progress(Protocol):
    """Told what is being done; the command line draws bars of it."""

    def begin(self, stage: str, total: int, unit: str) -> None: ...

    def advance(self, amount: int = 1) -> None: ...

    def end(self) -> None: ...


class Silent:
    """Progress that nobody watches."""

    def begin(self, stage: str, total: int, unit: str) -> None:
        """Nothing to show."""

    def advance(self, amount: int = 1) -> None:
        """Nothing to show."""

    def end(self) -> None:
        """Nothing to show."""


class Span(Struct, frozen=True):
    """Days from ``first`` to ``last``, both included."""

    first: Day
    last: Day

    def __contains__(self, day: object) -> bool:
        return isinstance(day, str) and self.first <= day <= self.last


class Failure(Struct, frozen=True):
    """Something that was left behind: where (path, stage, day or project) and what happened."""

    where: str
    what: str


class StageResult(Struct, kw_only=True):
    """What a stage did. ``cells`` are those it looked at or wrote; ``changed`` tells which."""

    stage: str
    cells: list[CellResult] = []
    counts: dict[str, int] = {}
    failures: list[Failure] = []
    seconds: float = 0.0

    @property
    def changed(self) -> list[CellResult]:
        """The cells whose bytes are new."""
        return [cell for cell in self.cells if cell.changed]


# Turns of about this many cells are kept between the stages of one night (some 100 MB at most).
_CACHED_CELLS = 64
# Characters of turns that ingest may leave here for the next stages, so that they need not read
# what was just written (some three bytes of memory each, with all that is around them).
FRESH_CHARACTERS = 8_000_000
TURN_CHARACTERS = 300  # what a turn holds beside its texts


class _Fresh(Struct, frozen=True):
    """A cell as it was just written."""

    sha256: str
    turns: list[Turn]
    characters: int


@dataclass
class Workspace:
    """One open memory. Stages read and write through it; the caller holds the lake's lock."""

    home: Home
    settings: Settings
    lake: Lake
    calendar: Calendar
    progress: Progress = field(default_factory=Silent)
    now: Callable[[], Micros] = field(default=lambda: micros(dt.datetime.now(tz=dt.UTC)))
    model_server: Server | None = None  # instead of the configured one: given by tests
    history: History = field(init=False)
    _turns: OrderedDict[tuple[Day, ProjectKey, str], list[Turn]] = field(
        default_factory=OrderedDict[tuple[Day, ProjectKey, str], list[Turn]]
    )
    _fresh: dict[tuple[Day, ProjectKey], _Fresh] = field(
        default_factory=dict[tuple[Day, ProjectKey], "_Fresh"]
    )
    _fresh_characters: int = 0

    def __post_init__(self) -> None:
        self.history = History(self.lake)

    def turns(self, day: Day, project: ProjectKey, sha256: str) -> list[Turn]:
        """The turns of one cell as it was when its digest was ``sha256``."""
        key = (day, project, sha256)
        fresh = self._fresh.get((day, project))
        if fresh is not None and fresh.sha256 == sha256:
            return fresh.turns
        if key not in self._turns:
            self._turns[key] = self.lake.read_cell("transcripts", day, project)
            while len(self._turns) > _CACHED_CELLS:
                self._turns.popitem(last=False)
        self._turns.move_to_end(key)
        return self._turns[key]

    def remember(self, cell: CellResult, turns: list[Turn]) -> None:
        """Keep the turns of a cell just as it would be read, while there is room.

        ``turns`` are what was written, in the order of the table's key.
        """
        size = sum(
            len(turn.text)
            + sum(len(call.input) + len(call.output or "") for call in turn.tool_calls)
            + TURN_CHARACTERS
            for turn in turns
        )
        earlier = self._fresh.pop((cell.day, cell.project), None)
        if earlier is not None:
            self._fresh_characters -= earlier.characters
        if self._fresh_characters + size <= FRESH_CHARACTERS:
            self._fresh_characters += size
            self._fresh[cell.day, cell.project] = _Fresh(cell.sha256, turns, size)


def open_workspace(
    home: Home,
    settings: Settings,
    *,
    progress: Progress | None = None,
    now: Callable[[], Micros] | None = None,
) -> Workspace:
    """Open (and at first run make) the memory at ``home``.

    Raises SettingsError when zone or start differ from those that the lake was made with.
    """
    home.ensure()
    workspace = Workspace(home, settings, Lake(home), Calendar.of(home, settings))
    if progress is not None:
        workspace.progress = progress
    if now is not None:
        workspace.now = now
    return workspace


def horizon_of(ws: Workspace, now: Micros | None = None) -> Day:
    """The last closed day in the lake's zone."""
    return ws.calendar.yesterday(ws.now() if now is None else now)


@contextmanager
def rare_collections() -> Generator[None]:
    """Look for cycles seldom: rows hold none, and looking at all of them again and again is work.

    With the usual thresholds it is a tenth of the CPU seconds of reading.
    """
    before = gc.get_threshold()
    gc.set_threshold(100_000, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    @property
    def seconds(self) -> float:
        return round(time.monotonic() - self._start, 3)
