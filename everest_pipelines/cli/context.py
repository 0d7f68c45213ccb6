"""What every command starts from: the home, the settings, the clock, and how to ask and answer."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from everest_pipelines.text.errors import CallerError
from everest_pipelines.text.home import Home
from everest_pipelines.text.settings import Settings, load

_COMMAND = re.compile(r"(?:^|(?<=Next: )|(?<=`))everest (?=[a-z])")


def home() -> Home:
    """The home in force; nothing is created."""
    return Home.resolve(os.environ)


def opened() -> tuple[Home, Settings]:
    """The home and the settings in force. Raises SettingsError for a name or value unknown."""
    place = home()
    return place, load(os.environ, place.config)


def program() -> str:
    """How to call us from here: ``everest`` where that finds us, else the path."""
    ours = Path(sys.argv[0]).absolute()
    found = shutil.which("everest")
    if ours.name != "everest" or (found and Path(found).absolute() == ours):
        return "everest"
    cwd = Path.cwd()
    return str(ours.relative_to(cwd)) if ours.is_relative_to(cwd) else str(ours)


def as_typed(text: str) -> str:
    """The text with our commands as they work when typed: at its start, after Next: or a tick."""
    return _COMMAND.sub(lambda found: found[0].replace("everest", program()), text)


def now() -> int:
    """Microseconds UTC."""
    return time.time_ns() // 1000


def answer(body: dict[str, Any]) -> None:
    """Print one JSON object as the last line of stdout."""
    print(json.dumps(body, ensure_ascii=False, default=str), flush=True)


def tell(*lines: str) -> None:
    """What a person should know but no program should parse: stderr."""
    for line in lines:
        print(as_typed(line), file=sys.stderr, flush=True)


def table(rows: Iterable[tuple[str, ...]]) -> None:
    """Columns on stdout, each as wide as its widest cell; the last is never padded."""
    lines = [tuple(str(cell) for cell in row) for row in rows]
    if not lines:
        return
    widths = [max(len(row[column]) for row in lines) for column in range(len(lines[0]))]
    for row in lines:
        padded = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        print("  ".join([*padded, row[-1]]).rstrip())


def is_person() -> bool:
    """Whether somebody sits in front of this: both ends are a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def agreed(question: str, *, yes: bool) -> bool:
    """Ask y/N on the terminal. ``yes`` answers itself; without a terminal it must be given."""
    if yes:
        return True
    if not is_person():
        raise CallerError(f"{question} Nobody can answer here.", "the same command with --yes")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return input().strip().casefold() in ("y", "yes", "j", "ja")


def size(count: int) -> str:
    """Bytes for people."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            return f"{amount:.0f} {unit}" if unit in ("B", "kB") else f"{amount:.1f} {unit}"
        amount /= 1000
    raise AssertionError("unreachable")
