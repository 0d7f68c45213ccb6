"""Snapshots to search in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from everest_pipelines.recall.snapshot import Snapshot, build, open_file
from everest_pipelines.text.home import Home
from everest_pipelines.text.ids import digest
from everest_pipelines.text.value_key import value_key

HERE = "harbor-api-1a2b3c4d"
ELSEWHERE = "tidepool-web-5e6f7a8b"


def lesson(text: str, **changes: Any) -> dict[str, Any]:
    """An object of the wire format."""
    identifier = digest("lesson", text, changes.get("scope", HERE))
    fields: dict[str, Any] = {
        "version": 1,
        "id": identifier,
        "short_id": identifier[:8],
        "kind": "rule",
        "scope": HERE,
        "state": "stated",
        "text": text,
        "fix": "",
        "quote": "",
        "strength": 1.0,
        "seen": 1,
        "last_seen": "2026-03-01T12:00:00.000000Z",
        "value_key": value_key(text),
    }
    return {**fields, **changes}


def episode(gist: str, **changes: Any) -> dict[str, Any]:
    """An episode as `build` takes it."""
    fields: dict[str, Any] = {
        "id": digest("episode", gist),
        "project": HERE,
        "kind": "error",
        "title": "",
        "gist": gist,
        "quote": "",
        "session": "s1",
        "occurred_at": 1_772_366_400_000_000,
    }
    return {**fields, **changes}


LESSONS = [
    lesson("Use pnpm, not npm, to install dependencies."),
    lesson("Never push to main without asking."),
    lesson("Run the integration tests against Postgres 16, port 5433."),
    lesson("部署之前先运行数据库迁移"),
    lesson("Commit messages are written in English.", scope="everywhere"),
    lesson("Use yarn to install dependencies.", scope=ELSEWHERE),
    lesson("ENOENT: no such file dist/app.js", kind="error", fix="run the build first"),
]


def snapshot(folder: Path, lessons: list[dict[str, Any]] | None = None, **more: Any) -> Snapshot:
    """A snapshot in `folder`, open."""
    path = folder / "recall.sqlite"
    given = LESSONS if lessons is None else lessons
    build(path, **{"lessons": given, "episodes": [], "generation": "g1", **more})
    return open_file(path)


def publish(home: Home, generation: str, lessons: list[dict[str, Any]]) -> None:
    """What publishing does to recall: a new folder, then one rename of the link."""
    folder = home.published / generation
    build(folder / "recall.sqlite", lessons=lessons, episodes=[], generation=generation)
    link = home.published / f".{generation}.link"
    link.symlink_to(generation)
    link.rename(home.current)
