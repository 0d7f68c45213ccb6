"""What hides a lesson at once: every way of recall reads this file before it answers."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import NamedTuple

from everest_pipelines.recall.hidden import OVERLAY_VERSION, entries, keys
from everest_pipelines.text.atomic import make_dir, write_atomic
from everest_pipelines.text.home import Home


class Hidden(NamedTuple):
    """One lesson that must not be shown."""

    id: str
    value_key: str = ""  # hides the same words under another id too
    why: str = ""
    at: int = 0  # microseconds UTC


def read(home: Home) -> list[Hidden]:
    """What is hidden, oldest first; empty when there is no overlay.

    Raises DamagedError when the file cannot be understood: then show nothing at all rather than a
    lesson that was called wrong.
    """
    return [Hidden(**entry) for entry in entries(str(home.overlay))]


def hidden(home: Home) -> frozenset[str]:
    """The ids and value keys that `search` must not show. Raises DamagedError as `read` does."""
    return keys(str(home.overlay))


def hide(home: Home, lesson_id: str, *, value_key: str = "", why: str = "", at: int = 0) -> bool:
    """Hide a lesson from the next call on; False when it was hidden already.

    `at` is in microseconds UTC. Raises DamagedError, and changes nothing, on an unreadable overlay.
    """
    with _alone(home):
        known = read(home)
        if any(entry.id == lesson_id and entry.value_key == value_key for entry in known):
            return False
        _write(home, [*known, Hidden(lesson_id, value_key, why, at)])
        return True


def unhide(home: Home, lesson_id: str) -> bool:
    """Show a lesson again; False when it was not hidden. Raises DamagedError as `read` does."""
    with _alone(home):
        known = read(home)
        kept = [entry for entry in known if entry.id != lesson_id]
        if len(kept) == len(known):
            return False
        _write(home, kept)
        return True


def _write(home: Home, hidden_now: list[Hidden]) -> None:
    body = {"version": OVERLAY_VERSION, "hidden": [entry._asdict() for entry in hidden_now]}
    write_atomic(home.overlay, (json.dumps(body, indent=1) + "\n").encode())


@contextmanager
def _alone(home: Home) -> Generator[None]:
    """Two that hide at the same time wait for each other; where there is no flock, they race."""
    make_dir(home.root)
    descriptor = os.open(
        home.overlay.with_name(f".{home.overlay.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600
    )
    try:
        if os.name != "nt":
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)  # gives the lock back
