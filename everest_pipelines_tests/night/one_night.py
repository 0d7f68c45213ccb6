"""One whole night in a process of its own, for tests that kill it or run several at once.

The processes are forked from a server that has imported everything, so each costs a night only.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from multiprocessing.connection import Connection
from pathlib import Path

import sklearn.cluster  # noqa: F401  (the fold imports it late: it shall be there when forked)

from everest_pipelines.night.run import run
from everest_pipelines_tests.night.homes import HORIZON, workspace

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload([__name__])
SECONDS = 120


class Night:
    """A night at work. ``step``: it kills itself at that rename, an odd one just before it is
    made, an even one just after it; ``before``: just before the rename to that name."""

    def __init__(self, home: Path, claude: Path, *, step: int = 0, before: str = "") -> None:
        self._end, other = _context.Pipe()
        self._process = _context.Process(target=_run, args=(other, home, claude, step, before))
        self._process.start()
        other.close()
        assert self._end.recv() == "ready"

    def kill(self) -> None:
        """kill -9, wherever it is."""
        self._process.kill()

    def join(self) -> bool:
        """Wait until it is over; returns whether it was killed. Any other end is an error."""
        self._process.join(SECONDS)
        assert self._process.exitcode in (0, -signal.SIGKILL)
        return self._process.exitcode != 0

    def is_alive(self) -> bool:
        return self._process.is_alive()

    def changed(self) -> int:
        """Wait for its good end; returns how many cells it changed."""
        assert self._end.poll(SECONDS)
        found = self._end.recv()
        assert not self.join()
        return found


def _run(told: Connection, home: Path, claude: Path, step: int, before: str) -> None:
    ws = workspace(home, claude)
    told.send("ready")
    if step or before:
        _kill_at(step, before)
    results, _ = run(ws, HORIZON)
    told.send(sum(len(result.changed) for result in results))


def _kill_at(step: int, before: str) -> None:
    count = 0

    def counted(rename):
        def renamed(source, target):
            nonlocal count
            count += 1
            if count * 2 - 1 == step or Path(target).name == before:
                os.kill(os.getpid(), signal.SIGKILL)
            rename(source, target)
            if count * 2 == step:
                os.kill(os.getpid(), signal.SIGKILL)

        return renamed

    os.replace, os.rename = counted(os.replace), counted(os.rename)
