"""Before a large first import: what was found, how long it will take, and which projects."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from everest_pipelines.cli.context import size, tell
from everest_pipelines.text.errors import CallerError

LARGE_BYTES = 200_000_000
LARGE_FILES = 500
# 52.8 MB of real transcripts took 13 s of a first night, Dagster's start and records included, on a
# busy two-core machine.
BYTES_A_SECOND = 4_000_000
_HEAD = 65_536
_CWD = re.compile(rb'"cwd"\s*:\s*"((?:[^"\\]|\\.)*)"')


@dataclass
class Found:
    """One agent folder and what waits there."""

    folder: str
    files: list[str] = field(default_factory=list)
    bytes: int = 0
    cwd: str = ""

    @property
    def name(self) -> str:
        """What the person calls it: the directory that the sessions ran in."""
        return self.cwd or self.folder


def is_large(files: int, bytes_: int) -> bool:
    """Whether an import asks first."""
    return files > LARGE_FILES or bytes_ > LARGE_BYTES


def grouped(pending: Iterable[tuple[str, int]]) -> list[Found]:
    """(path, size) pairs by the directory that the sessions ran in; largest first."""
    by_folder: dict[str, Found] = {}
    for path, count in pending:
        folder = _agent_folder(path)
        found = by_folder.setdefault(folder, Found(folder))
        found.files.append(path)
        found.bytes += count
    for found in by_folder.values():
        found.cwd = next(filter(None, map(_cwd, found.files[:5])), "")
    return sorted(by_folder.values(), key=lambda one: (-one.bytes, one.folder))


def _agent_folder(path: str) -> str:
    parts = Path(path).parts
    if "projects" in parts:
        at = len(parts) - 1 - parts[::-1].index("projects")
        if at + 2 < len(parts):
            return str(Path(*parts[: at + 2]))
    return str(Path(path).parent)


def _cwd(path: str) -> str:
    try:
        with open(path, "rb") as file:
            match = _CWD.search(file.read(_HEAD))
    except OSError:
        return ""
    return match[1].decode("utf-8", "replace").replace("\\\\", "\\") if match else ""


def describe(projects: list[Found]) -> None:
    """What was found and how long it will take, on stderr."""
    files = sum(len(one.files) for one in projects)
    count = sum(one.bytes for one in projects)
    tell(f"Found {files:,} transcripts of {len(projects)} projects, {size(count)}:")
    for number, one in enumerate(projects, start=1):
        tell(f"  {number:>3}  {size(one.bytes):>9}  {len(one.files):>6,} files  {one.name}")
    tell(f"Reading them takes about {duration(count)}; the newest days come first.")
    tell("Ctrl-C stops it; the same command resumes.")


def duration(count: int) -> str:
    """How long so many bytes take, roughly."""
    seconds = max(count / BYTES_A_SECOND, 1)
    return f"{seconds:.0f} seconds" if seconds < 90 else f"{seconds / 60:.0f} minutes"


def named(projects: list[Found], wanted: str) -> tuple[list[Found], list[Found]]:
    """(chosen, others) by ``--projects``: paths, ends of paths or numbers, separated by commas.

    Raises CallerError for a word that fits no project.
    """
    words = [word.strip() for word in wanted.split(",") if word.strip()]
    fitting: dict[str, set[int]] = defaultdict(set)
    for word in words:
        for number, one in enumerate(projects, start=1):
            if word == str(number) or one.name == word or one.name.endswith("/" + word):
                fitting[word].add(number)
        if not fitting[word]:
            raise CallerError(f"No project found is called {word}.", "everest night")
    chosen = set().union(*fitting.values())
    return (
        [one for number, one in enumerate(projects, start=1) if number in chosen],
        [one for number, one in enumerate(projects, start=1) if number not in chosen],
    )


def chosen(
    projects: list[Found], ask: Callable[[str], str] | None = None
) -> tuple[list[Found], list[Found]] | None:
    """Ask which projects to read: (chosen, others), or None when the answer is no."""
    ask = ask or _ask
    reply = ask("Read them? [y/N, or the numbers of those to read, such as 1,3] ").strip()
    if reply.casefold() in ("y", "yes", "j", "ja"):
        return projects, []
    if not reply or not reply[0].isdigit():
        return None
    return named(projects, reply)


def _ask(question: str) -> str:
    print(question, end="", file=sys.stderr, flush=True)
    return input()
