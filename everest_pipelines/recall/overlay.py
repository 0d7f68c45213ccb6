"""What hides a lesson at once: every way of recall reads this file before it answers."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, NamedTuple

from everest_pipelines.text.atomic import make_dir, write_atomic
from everest_pipelines.text.errors import DamagedError
from everest_pipelines.text.home import Home

OVERLAY_VERSION = 1


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
    try:
        text = home.overlay.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    try:
        body = json.loads(text)
        if body["version"] > OVERLAY_VERSION:
            raise ValueError(f"version {body['version']} is newer than this everest")
        return [_entry(entry) for entry in body["hidden"]]
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedError(
            f"{home.overlay} cannot be read ({error}); nothing is recalled until it is mended.",
            "everest doctor",
        ) from error


def hidden(home: Home) -> frozenset[str]:
    """The ids and value keys that `search` must not show. Raises DamagedError as `read` does."""
    entries = read(home)
    return frozenset(key for entry in entries for key in (entry.id, entry.value_key) if key)


def hide(home: Home, lesson_id: str, *, value_key: str = "", why: str = "", at: int = 0) -> bool:
    """Hide a lesson from the next call on; False when it was hidden already.

    `at` is in microseconds UTC. Raises DamagedError, and changes nothing, on an unreadable overlay.
    """
    with _alone(home):
        entries = read(home)
        if any(entry.id == lesson_id and entry.value_key == value_key for entry in entries):
            return False
        _write(home, [*entries, Hidden(lesson_id, value_key, why, at)])
        return True


def unhide(home: Home, lesson_id: str) -> bool:
    """Show a lesson again; False when it was not hidden. Raises DamagedError as `read` does."""
    with _alone(home):
        entries = read(home)
        kept = [entry for entry in entries if entry.id != lesson_id]
        if len(kept) == len(entries):
            return False
        _write(home, kept)
        return True


def _entry(entry: dict[str, Any]) -> Hidden:
    return Hidden(
        str(entry["id"]),
        str(entry["value_key"]),
        str(entry.get("why", "")),
        int(entry.get("at", 0)),
    )


def _write(home: Home, entries: list[Hidden]) -> None:
    body = {"version": OVERLAY_VERSION, "hidden": [entry._asdict() for entry in entries]}
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
