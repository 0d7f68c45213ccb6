"""``recall.sqlite``: everything that may be recalled, in one file that is never written again."""

from __future__ import annotations

from everest_pipelines.text import bare
from everest_pipelines.text.errors import CallerError, MissingError

# Hooks pay for every import: the module below sqlite3 brings all that a reader needs, without
# datetime and collections.
try:
    from _sqlite3 import Error, connect
except ImportError:  # an interpreter that is built otherwise
    from sqlite3 import Error, connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Any

    from everest_pipelines.text.home import Home

SCHEMA_VERSION = 2
FILE_NAME = "recall.sqlite"
EVERYWHERE = "everywhere"

# A term is one token: whatever `index_terms` lets into a word must not split it again.
_FTS = "tokenize=\"unicode61 remove_diacritics 0 categories 'L* N* Co M* Pc Po'\""

_SCHEMA = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE ranges (part TEXT, scope TEXT, first INTEGER, last INTEGER,
  PRIMARY KEY (part, scope)) WITHOUT ROWID;
CREATE TABLE projects (path TEXT PRIMARY KEY, project TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE lessons (row INTEGER PRIMARY KEY, id TEXT UNIQUE, short_id TEXT, scope TEXT,
  kind TEXT, state TEXT, text TEXT, fix TEXT, quote TEXT, strength REAL, seen INTEGER,
  last_seen_at INTEGER, value_key TEXT, sources TEXT, terms TEXT, weight REAL);
CREATE TABLE lessons_terms (term TEXT PRIMARY KEY, documents INTEGER) WITHOUT ROWID;
CREATE TABLE names (phrase TEXT, row INTEGER, PRIMARY KEY (phrase, row)) WITHOUT ROWID;
CREATE VIRTUAL TABLE lessons_index USING fts5(terms, content='', {_FTS});
CREATE TABLE episodes (row INTEGER PRIMARY KEY, id TEXT UNIQUE, project TEXT, kind TEXT,
  title TEXT, gist TEXT, quote TEXT, session TEXT, occurred_at INTEGER, terms TEXT,
  replaced_by INTEGER);
CREATE TABLE episodes_terms (term TEXT PRIMARY KEY, documents INTEGER) WITHOUT ROWID;
CREATE VIRTUAL TABLE episodes_index USING fts5(terms, content='', {_FTS});
"""


class Lesson:
    """A lesson as recall knows it. `last_seen_at` in microseconds UTC, `sources` episode ids."""

    __slots__ = (
        "fix",
        "id",
        "kind",
        "last_seen_at",
        "quote",
        "scope",
        "seen",
        "short_id",
        "sources",
        "state",
        "strength",
        "text",
        "value_key",
    )

    def __init__(
        self,
        id: str,
        short_id: str,
        scope: str,
        kind: str,
        state: str,
        text: str,
        fix: str,
        quote: str,
        strength: float,
        seen: int,
        last_seen_at: int,
        value_key: str,
        sources: str = "",
    ) -> None:
        self.id = id
        self.short_id = short_id
        self.scope = scope
        self.kind = kind
        self.state = state
        self.text = text
        self.fix = fix
        self.quote = quote
        self.strength = strength
        self.seen = seen
        self.last_seen_at = last_seen_at
        self.value_key = value_key
        self.sources = tuple(sources.split())

    def keys(self) -> set[str]:
        """What the overlay may call it by."""
        return {self.id, self.short_id, self.value_key}


class Episode:
    """What is told of an episode as evidence. `occurred_at` in microseconds UTC."""

    __slots__ = ("gist", "id", "kind", "occurred_at", "quote", "session", "title")

    def __init__(
        self,
        id: str,
        kind: str,
        title: str,
        gist: str,
        quote: str,
        session: str,
        occurred_at: int,
    ) -> None:
        self.id = id
        self.kind = kind
        self.title = title
        self.gist = gist
        self.quote = quote
        self.session = session
        self.occurred_at = occurred_at


LESSON_COLUMNS = (
    "id, short_id, scope, kind, state, text, fix, quote, strength, seen, last_seen_at, value_key,"
    " sources"
)


class Snapshot:
    """One generation's snapshot, open for reading; a later publish does not disturb it."""

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self.connection = connection
        self.path = path
        self.meta: dict[str, str] = dict(connection.execute("SELECT name, value FROM meta"))

    @property
    def generation(self) -> str:
        """The name of the generation that this belongs to."""
        return self.meta["generation"]

    def range(self, part: str, scope: str) -> tuple[int, int] | None:
        """First and last row of a scope in ``lessons`` or ``episodes``: a scope lies together."""
        found = self.connection.execute(
            "SELECT first, last FROM ranges WHERE part = ? AND scope = ?", (part, scope)
        ).fetchone()
        return None if found is None else (found[0], found[1])

    def lessons(self, project: str) -> list[Lesson]:
        """Every lesson of a project and of everywhere, strongest first. Hidden ones too."""
        rows = self.connection.execute(
            f"SELECT {LESSON_COLUMNS} FROM lessons WHERE scope IN (?, ?)"
            " ORDER BY strength DESC, id",
            (project, EVERYWHERE),
        )
        return [Lesson(*row) for row in rows]

    def lesson(self, identifier: str, *, scopes: Sequence[str] = ()) -> Lesson | None:
        """The lesson whose id starts with `identifier`, of these scopes or of any; None: none is.

        Raises CallerError when several do, or when `identifier` has fewer than 4 digits.
        """
        wanted = identifier.strip().lower()
        if len(wanted) < 4:
            raise CallerError(
                f"{identifier!r} is too short for a lesson id: give 4 digits or more."
            )
        marks = ", ".join("?" * len(scopes))
        where = f" AND scope IN ({marks})" if scopes else ""
        rows = self.connection.execute(
            f"SELECT {LESSON_COLUMNS} FROM lessons WHERE substr(id, 1, ?) = ?{where}"
            " ORDER BY id LIMIT 9",
            (len(wanted), wanted, *scopes),
        ).fetchall()
        if len(rows) > 1:
            names = ", ".join(row[0][: len(wanted) + 6] for row in rows)
            raise CallerError(f"{identifier!r} is the start of several lesson ids: {names}.")
        return Lesson(*rows[0]) if rows else None

    def sources_of(self, keys: Collection[str]) -> frozenset[str]:
        """Ids of the episodes behind the lessons that `keys` name by id, short id or value key."""
        found: set[str] = set()
        for key in keys:
            rows = self.connection.execute(
                "SELECT sources FROM lessons WHERE id = ? OR short_id = ? OR value_key = ?",
                (key, key, key),
            )
            found.update(one for row in rows for one in row[0].split())
        return frozenset(found)

    def episodes(self, identifiers: Sequence[str]) -> list[Episode]:
        """Those of these episodes that the snapshot holds."""
        marks = ", ".join("?" * len(identifiers))
        rows = self.connection.execute(
            f"SELECT id, kind, title, gist, quote, session, occurred_at FROM episodes"
            f" WHERE id IN ({marks}) ORDER BY id",
            list(identifiers),
        )
        return [Episode(*row) for row in rows]

    def close(self) -> None:
        """Close the file. Closing twice is allowed."""
        self.connection.close()

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_snapshot(home: Home) -> Snapshot:
    """The current generation's snapshot; ``published/current`` is resolved exactly once.

    Raises MissingError, with the next command, when nothing is published yet, when the generation
    holds no snapshot, or when it is damaged or of another version.
    """
    return open_current(str(home.current))


def open_current(link: str) -> Snapshot:
    """As `open_snapshot`, by the path of ``published/current``: for callers without a Home."""
    try:
        name = bare.link_target(link)
    except PermissionError as error:
        raise MissingError(
            f"{link} cannot be reached ({error.strerror}).", "everest doctor"
        ) from None
    except OSError:
        raise MissingError("Nothing has been published yet.", "everest night") from None
    generation = name if name.startswith("/") else f"{link.rpartition('/')[0]}/{name}"
    if not bare.exists(f"{generation}/"):
        raise MissingError("Nothing has been published yet.", "everest night")
    return open_file(f"{generation}/{FILE_NAME}")


def open_file(path: Path | str) -> Snapshot:
    """One snapshot file. Raises MissingError as `open_snapshot` does."""
    path = str(path)
    if not bare.exists(path):
        raise MissingError(f"There is no snapshot at {path}.", "everest publish")
    connection: sqlite3.Connection | None = None
    try:
        connection = connect(f"file:{_as_uri(path)}?mode=ro&immutable=1", uri=True)
        version = connection.execute("SELECT value FROM meta WHERE name = 'version'").fetchone()
        written = int(version[0]) if version else 0
        if written == SCHEMA_VERSION:
            return Snapshot(connection, path)
    except (Error, ValueError) as error:
        if connection is not None:
            connection.close()
        raise MissingError(
            f"The snapshot {path} cannot be read ({error}).", "everest publish"
        ) from None
    connection.close()
    if written > SCHEMA_VERSION:
        raise MissingError(
            f"The snapshot {path} was written by a newer everest (version {written}, this one reads"
            f" {SCHEMA_VERSION}).",
            "everest doctor",
        )
    raise MissingError(f"The snapshot {path} is of the old version {written}.", "everest publish")


def _as_uri(path: str) -> str:
    """The path as SQLite reads it in a URI: only these three signs mean something there."""
    if not path.startswith("/"):
        import os

        path = os.path.abspath(path).replace("\\", "/")
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def build(
    path: Path,
    *,
    lessons: Iterable[Mapping[str, Any]],
    episodes: Iterable[Mapping[str, Any]],
    generation: str,
    projects: Iterable[tuple[str, str]] = (),
) -> None:
    """Write a snapshot in one step; the same rows in any order give the same bytes.

    `lessons`: visible ones, as objects of the wire format (``docs/lessons-format.md``).
    A lesson may have ``aliases``: phrases that name its matter. `episodes`: ``id``, ``project``,
    ``kind``, ``title``, ``gist``, ``quote``, ``session`` and ``occurred_at`` (microseconds UTC).
    `projects`: (path, project key). A field that is missing raises KeyError.
    """
    from everest_pipelines.recall.build import content
    from everest_pipelines.text.atomic import write_atomic

    write_atomic(
        path,
        content(
            _SCHEMA,
            version=SCHEMA_VERSION,
            lessons=lessons,
            episodes=episodes,
            generation=generation,
            projects=projects,
        ),
    )
