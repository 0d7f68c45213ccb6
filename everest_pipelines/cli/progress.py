"""Bars with counts and time left on a terminal, plain lines anywhere else; always on stderr."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

QUIET_SECONDS = 5.0  # between two plain lines of one stage


class Watcher(Protocol):
    """What a stage tells; see ``night.workspace.Progress``."""

    def begin(self, stage: str, total: int, unit: str) -> None: ...

    def advance(self, amount: int = 1) -> None: ...

    def end(self) -> None: ...


class Lines:
    """A line when a stage begins, one now and then, and one when it ends."""

    def __init__(self) -> None:
        self._stage, self._unit, self._total, self._done = "", "", 0, 0
        self._began = self._said = 0.0

    def begin(self, stage: str, total: int, unit: str) -> None:
        self._stage, self._unit, self._total, self._done = stage, unit, total, 0
        self._began = self._said = time.monotonic()

    def advance(self, amount: int = 1) -> None:
        self._done += amount
        if time.monotonic() - self._said >= QUIET_SECONDS:
            self._said = time.monotonic()
            self._say(f"about {self._left()} left")

    def end(self) -> None:
        if self._total:
            self._say(f"{time.monotonic() - self._began:.1f} s")

    def _left(self) -> str:
        spent = time.monotonic() - self._began
        rest = spent * max(self._total - self._done, 0) / max(self._done, 1)
        return f"{rest:.0f} s" if rest < 90 else f"{rest / 60:.0f} min"

    def _say(self, tail: str) -> None:
        done = f"{self._done:,} of {self._total:,} {self._unit}"
        print(f"{self._stage}: {done}, {tail}", file=sys.stderr, flush=True)


class Bars:
    """One bar a stage."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def begin(self, stage: str, total: int, unit: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Drawn

        self.end()
        if not total:
            return
        self._progress = Drawn(
            TextColumn(f"{stage:<12}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn(unit),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=Console(stderr=True),
        )
        self._progress.start()
        self._task = self._progress.add_task(stage, total=total)

    def advance(self, amount: int = 1) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.advance(self._task, amount)

    def end(self) -> None:
        if self._progress is not None:
            self._progress.stop()
        self._progress = None


def shown() -> Watcher:
    """Bars when stderr is a terminal, else lines."""
    return Bars() if sys.stderr.isatty() else Lines()
