"""The bytes of a snapshot. Apart from the reader, which hooks import."""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from everest_pipelines.recall.project import canonical
from everest_pipelines.recall.terms import index_terms

_PAGE_BYTES = 4096
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def content(
    schema: str,
    *,
    version: int,
    lessons: Iterable[Mapping[str, Any]],
    episodes: Iterable[Mapping[str, Any]],
    generation: str,
    projects: Iterable[tuple[str, str]],
) -> bytes:
    """A whole SQLite file. Rows are numbered by scope, so that a scope is one range of rows."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        connection.executescript(schema)
        connection.execute("BEGIN")
        newest_lesson = _lessons(connection, lessons)
        newest_episode = _episodes(connection, episodes)
        connection.executemany(
            "INSERT OR IGNORE INTO projects VALUES (?, ?)",
            sorted((canonical(path), project) for path, project in projects),
        )
        connection.executemany(
            "INSERT INTO meta VALUES (?, ?)",
            [
                ("version", str(version)),
                ("generation", generation),
                ("newest_at", str(max(newest_lesson, newest_episode))),
                *_sizes(connection, "lessons"),
                *_sizes(connection, "episodes"),
            ],
        )
        for part in ("lessons", "episodes"):
            connection.execute(f"INSERT INTO {part}_index({part}_index) VALUES ('optimize')")
        connection.execute("COMMIT")
        return connection.serialize()
    finally:
        connection.close()


def _lessons(connection: sqlite3.Connection, lessons: Iterable[Mapping[str, Any]]) -> int:
    ordered = sorted(lessons, key=lambda one: (one["scope"], -one["strength"], one["id"]))
    rows: list[tuple[Any, ...]] = []
    for row, one in enumerate(ordered, start=1):
        terms = index_terms(one["text"])
        known = set(terms)
        more = index_terms(f"{one['fix']}\n{one['quote']}")
        terms += [term for term in dict.fromkeys(more) if term not in known]
        rows.append(
            (
                row,
                one["id"],
                one["short_id"],
                one["scope"],
                one["kind"],
                one["state"],
                one["text"],
                one["fix"],
                one["quote"],
                float(one["strength"]),
                one["seen"],
                _micros(one["last_seen"]),
                one["value_key"],
                " ".join(terms),
            )
        )
    _fill(connection, "lessons", rows, scope_at=3)
    return max((row[11] for row in rows), default=0)


def _episodes(connection: sqlite3.Connection, episodes: Iterable[Mapping[str, Any]]) -> int:
    ordered = sorted(episodes, key=lambda one: (one["project"], one["occurred_at"], one["id"]))
    rows: list[tuple[Any, ...]] = []
    for row, one in enumerate(ordered, start=1):
        said = dict.fromkeys((one["title"], one["gist"], one["quote"]))
        terms = " ".join(index_terms("\n".join(said)))
        fields = ("id", "project", "kind", "title", "gist", "quote", "session", "occurred_at")
        rows.append((row, *(one[field] for field in fields), terms))
    _fill(connection, "episodes", rows, scope_at=2)
    return max((row[8] for row in rows), default=0)


def _fill(
    connection: sqlite3.Connection, part: str, rows: Sequence[tuple[Any, ...]], *, scope_at: int
) -> None:
    if not rows:
        return
    marks = ", ".join("?" * len(rows[0]))
    connection.executemany(f"INSERT INTO {part} VALUES ({marks})", rows)
    connection.executemany(
        f"INSERT INTO {part}_index(rowid, terms) VALUES (?, ?)", ((row[0], row[-1]) for row in rows)
    )
    documents: Counter[str] = Counter()
    spans: dict[str, tuple[int, int]] = {}
    for row in rows:
        documents.update(set(row[-1].split()))
        first, _ = spans.get(row[scope_at], (row[0], row[0]))
        spans[row[scope_at]] = (first, row[0])
    connection.executemany(
        f"INSERT INTO {part}_terms VALUES (?, ?)",
        sorted(documents.items(), key=lambda item: item[0]),
    )
    connection.executemany(
        "INSERT INTO ranges VALUES (?, ?, ?, ?)",
        [(part, scope, first, last) for scope, (first, last) in sorted(spans.items())],
    )


def _sizes(connection: sqlite3.Connection, part: str) -> list[tuple[str, str]]:
    count = connection.execute(f"SELECT count(*) FROM {part}").fetchone()[0]
    words = connection.execute(
        f"SELECT coalesce(sum(length(terms) - length(replace(terms, ' ', '')) + 1), 0) FROM {part}"
    ).fetchone()[0]
    return [(f"{part}", str(count)), (f"{part}_length", f"{words / count if count else 1.0:.6f}")]


def _micros(iso: str) -> int:
    delta = dt.datetime.fromisoformat(iso) - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
