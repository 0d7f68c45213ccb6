"""Whether what readers see is one whole generation."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import duckdb

from everest_pipelines.lake import generations, views
from everest_pipelines.lake.generations import Manifest
from everest_pipelines.text.home import Home

Counts = dict[str, int]  # table -> rows


def counts_of(manifest: Manifest) -> Counts:
    """The rows that a generation says it has."""
    return {name: sum(file.rows for file in files) for name, files in manifest.tables.items()}


def counted(connection: duckdb.DuckDBPyConnection, names: list[str]) -> Counts:
    """The rows that DuckDB finds in each view, asked one after another."""
    found: Counts = {}
    for name in names:
        row = connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()
        assert row is not None
        found[name] = row[0]
    return found


def assert_whole(home: Home) -> str:
    """Read all of the generation in force, by every door; returns its name, "" without one."""
    if not os.path.lexists(home.current):
        return ""
    folder = generations.resolve(home)
    manifest = generations.manifest_of(folder)
    expected = counts_of(manifest)
    with views.connect(home) as connection:
        assert counted(connection, list(expected)) == expected
    with duckdb.connect(str(home.duckdb), read_only=True) as connection:
        assert counted(connection, list(expected)) == expected
    assert len(lines(folder)) == expected["lessons_now"]
    for name, sha256 in manifest.extra.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == sha256, name
    return folder.name


def lines(folder: Path) -> list[dict[str, object]]:
    """The lessons of a generation's ``lessons.jsonl``."""
    return [json.loads(line) for line in (folder / "lessons.jsonl").read_bytes().splitlines()]
