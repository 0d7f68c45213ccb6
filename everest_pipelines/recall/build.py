"""The bytes of a snapshot. Apart from the reader, which hooks import."""

from __future__ import annotations

import datetime as dt
import math
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from everest_pipelines.recall import rank
from everest_pipelines.recall.project import canonical
from everest_pipelines.recall.replaced import replacements
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
                ("names", str(connection.execute("SELECT count(*) FROM names").fetchone()[0])),
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
    names: set[tuple[str, int]] = set()
    texts: list[set[str]] = []
    for row, one in enumerate(ordered, start=1):
        terms = index_terms(one["text"])
        known = set(terms)
        aliases = list(one.get("aliases", ()))
        more = index_terms("\n".join([one["fix"], one["quote"], *aliases]))
        terms += [term for term in dict.fromkeys(more) if term not in known]
        names |= {(" ".join(index_terms(name)), row) for name in aliases}
        texts.append(known)
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
                " ".join(one.get("sources", ())),
                " ".join(terms),
            )
        )
    held = Counter(term for row in rows for term in set(row[14].split()))
    weigh = {term: rank.idf(len(rows), count) for term, count in held.items()}
    rows = [
        (*row, round(math.fsum(weigh[term] for term in sorted(text)), 6))
        for row, text in zip(rows, texts, strict=True)
    ]
    _fill(connection, "lessons", rows, scope_at=3, terms_at=14)
    connection.executemany(
        "INSERT INTO names VALUES (?, ?)", sorted(name for name in names if name[0])
    )
    return max((row[11] for row in rows), default=0)


def _episodes(connection: sqlite3.Connection, episodes: Iterable[Mapping[str, Any]]) -> int:
    """Those of one session lie together in the order of time: neighbours are rows beside rows."""
    given = list(episodes)
    begun: dict[tuple[str, str], int] = {}
    for one in given:
        key = (one["project"], one["session"])
        begun[key] = min(begun.get(key, one["occurred_at"]), one["occurred_at"])
    ordered = sorted(
        given,
        key=lambda one: (
            one["project"],
            begun[one["project"], one["session"]],
            one["session"],
            one["occurred_at"],
            one["id"],
        ),
    )
    said = ["\n".join(dict.fromkeys((one["title"], one["gist"], one["quote"]))) for one in ordered]
    terms = [index_terms(text) for text in said]
    replaced_by = replacements(
        [(one["project"], one["occurred_at"]) for one in ordered], said, terms
    )
    fields = ("id", "project", "kind", "title", "gist", "quote", "session", "occurred_at")
    rows = [
        (row, *(one[field] for field in fields), " ".join(terms[row - 1]), replaced_by.get(row))
        for row, one in enumerate(ordered, start=1)
    ]
    _fill(connection, "episodes", rows, scope_at=2, terms_at=9)
    return max((one["occurred_at"] for one in ordered), default=0)


def _fill(
    connection: sqlite3.Connection,
    part: str,
    rows: Sequence[tuple[Any, ...]],
    *,
    scope_at: int,
    terms_at: int,
) -> None:
    if not rows:
        return
    marks = ", ".join("?" * len(rows[0]))
    connection.executemany(f"INSERT INTO {part} VALUES ({marks})", rows)
    connection.executemany(
        f"INSERT INTO {part}_index(rowid, terms) VALUES (?, ?)",
        ((row[0], row[terms_at]) for row in rows),
    )
    documents: Counter[str] = Counter()
    spans: dict[str, tuple[int, int]] = {}
    for row in rows:
        documents.update(set(row[terms_at].split()))
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
