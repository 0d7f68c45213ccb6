"""Throw-away memories over real transcripts, and what of them must be equal."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from everest_pipelines.night.run import run
from everest_pipelines.night.workspace import Workspace, open_workspace
from everest_pipelines.text.home import Home
from everest_pipelines.text.settings import load

HORIZON = "2026-07-17"  # the last day of the shared transcripts
DERIVED = (
    "transcripts",
    "sessions",
    "offers",
    "episodes",
    "vectors",
    "lessons",
    "merges",
    "predictions",
    "verifications",
)


def workspace(home: Path, claude_dir: Path, **variables: str) -> Workspace:
    """A memory at ``home`` over ``claude_dir``, in UTC unless a variable says otherwise."""
    environ = {
        "HOME": str(home.parent),
        "EVEREST_TZ": "UTC",
        "EVEREST_CLAUDE_DIR": str(claude_dir),
        **variables,
    }
    place = Home(home)
    return open_workspace(place, load(environ, place.config))


def night(home: Path, claude_dir: Path, horizon: str = HORIZON, **variables: str) -> Workspace:
    """Run one whole night and return its workspace."""
    ws = workspace(home, claude_dir, **variables)
    run(ws, horizon)
    return ws


def rows(ws: Workspace, tables: tuple[str, ...] = DERIVED) -> dict[str, object]:
    """Every row of every derived table, and the bytes of ``lessons.jsonl``."""
    found: dict[str, object] = {table: list(ws.lake.read(table)) for table in tables}
    found["lessons.jsonl"] = (ws.home.current / "lessons.jsonl").read_bytes()
    return found


def file_digests(ws: Workspace) -> dict[str, str]:
    """Digest of every file of the derived tables, by its path in the lake."""
    return {
        str(path.relative_to(ws.home.lake)): hashlib.sha256(path.read_bytes()).hexdigest()
        for table in DERIVED
        for path in sorted((ws.home.lake / table).rglob("*.parquet"))
    }


def copy_some(source: Path, target: Path, folders: tuple[str, ...]) -> Path:
    """A Claude Code folder that holds only some of the shared projects; returns it."""
    for folder in folders:
        shutil.copytree(source / "projects" / folder, target / "projects" / folder)
    for path in target.rglob("*"):
        os.chmod(path, 0o755 if path.is_dir() else 0o644)
    return target


def grow(whole: Path, claude: Path, share: float = 1.0) -> None:
    """Let every transcript of ``claude`` hold this share of the bytes it has in ``whole``.

    Its last line may be torn, as where an agent is at work.
    """
    for path in whole.rglob("*.jsonl"):
        target = claude / path.relative_to(whole)
        target.parent.mkdir(parents=True, exist_ok=True)
        content = path.read_bytes()
        target.write_bytes(content[: int(len(content) * share)])
