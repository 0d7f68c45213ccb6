"""The one lock of the lake: whoever does the work holds it, everybody else waits or says who does.

The system frees it when its holder dies, however that happens. Readers never take it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from everest_pipelines.core.records import Micros
from everest_pipelines.lake.lake import Lake
from everest_pipelines.text.atomic import FILE_MODE, make_dir, write_all
from everest_pipelines.text.errors import BusyError, MissingError
from everest_pipelines.text.home import Home

POLL_SECONDS = 0.2
_TRIES = 3  # somebody who only asks for the holder has the file for microseconds


class _Live:
    """One holding; a context that outlives its block sees that it ended."""

    ended = False


_holdings: ContextVar[Mapping[str, _Live]] = ContextVar("everest_lake_locks")


@dataclass(frozen=True)
class Holder:
    """Who has the lock. `since` in microseconds UTC; a pid of 0 when not yet written."""

    pid: int
    who: str
    since: Micros

    def __str__(self) -> str:
        return f"{self.who or 'another run'} (process {self.pid})"


@contextmanager
def held(
    home: Home,
    who: str,
    wait: bool = True,
    on_wait: Callable[[Holder | None], None] | None = None,
) -> Generator[None]:
    """Hold the lake's lock for the length of the block.

    Without `wait`, raises BusyError naming the holder when it is taken. Otherwise `on_wait` is
    called with the holder (None when it just let go) at every look, five times a second; what it
    raises ends the waiting. A block within a block of the same context holds nothing more. Raises
    MissingError where the system has no such locks (native Windows).
    """
    name = str(home.lock)
    outer = _holdings.get({})
    if name in outer and not outer[name].ended:
        yield
        return
    flock = _flock()
    make_dir(home.root)
    descriptor = os.open(home.lock, os.O_RDWR | os.O_CREAT, FILE_MODE)
    try:
        _take(home, descriptor, flock, wait, on_wait)
        if os.pread(descriptor, 1, 0):  # whoever had it died: a living one leaves nothing
            Lake(home).sweep()
        since = time.time_ns() // 1000
        content = json.dumps({"pid": os.getpid(), "who": who, "since": since})
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        write_all(descriptor, content.encode())
        live = _Live()
        _holdings.set({**outer, name: live})
        try:
            yield
        finally:
            live.ended = True
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def holder(home: Home) -> Holder | None:
    """Who holds the lock now, or None. Never waits."""
    flock = _flock()
    try:
        descriptor = os.open(home.lock, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        if flock(descriptor, shared=True):
            return None
        return _parse(os.pread(descriptor, 4096, 0))
    finally:
        os.close(descriptor)


def _take(
    home: Home,
    descriptor: int,
    flock: _Flock,
    wait: bool,
    on_wait: Callable[[Holder | None], None] | None,
) -> None:
    tries = 0
    while not flock(descriptor, shared=False):
        tries += 1
        if not wait and tries >= _TRIES:
            raise BusyError(f"The lake is held by {holder(home) or 'another run'}.")
        if wait and on_wait is not None:
            on_wait(holder(home))
        time.sleep(POLL_SECONDS if wait else 0.01)


class _Flock:
    """flock without waiting; the module is looked up late, native Windows has none."""

    def __init__(self, fcntl: Any) -> None:
        self._fcntl = fcntl

    def __call__(self, descriptor: int, *, shared: bool) -> bool:
        kind = self._fcntl.LOCK_SH if shared else self._fcntl.LOCK_EX
        try:
            self._fcntl.flock(descriptor, kind | self._fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def _flock() -> _Flock:
    try:
        import fcntl
    except ImportError as error:
        raise MissingError(
            "This system has no file locks; on Windows run inside WSL.", "everest doctor"
        ) from error
    return _Flock(fcntl)


def _parse(data: bytes) -> Holder:
    try:
        found = json.loads(data)
        return Holder(int(found["pid"]), str(found["who"]), int(found["since"]))
    except (ValueError, KeyError, TypeError):  # between taking it and writing who
        return Holder(0, "", 0)
