"""Views: the tables of one generation in DuckDB, over that generation's files and no others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

from everest_pipelines.lake.generations import Manifest, manifest_of, resolve
from everest_pipelines.lake.months import PublishedFile
from everest_pipelines.lake.schemas import TABLES
from everest_pipelines.text.home import Home

STORAGE_VERSION = "v1.4.0"  # what every DuckDB from 1.4 on can open
MUTATIONS_DOC = (
    "Ledger entries (chained: `everest doctor` verifies it) and lesson revisions (each with the"
    " digest of its row) in one audit trail."
)

_MUTATIONS = """\
SELECT id AS entry_id, lesson_id, recorded_at, kind, detail AS what, actor, chain
FROM {ledger}
UNION ALL
SELECT lesson_id || '@' || revision, lesson_id, valid_from, 'lesson', state || ': ' || text,
       decided_by, hash
FROM {lessons}"""


def statements(tables: Mapping[str, Sequence[PublishedFile]], files: Path) -> list[str]:
    """The SQL that makes the views over `files` (published/files), one statement each."""
    made: list[str] = []
    for name, spec in TABLES.items():
        columns = ", ".join(_quoted(column) for column in spec.published_schema.names)
        source = _source(tables[name], files)
        made.append(f"CREATE VIEW {_quoted(name)} AS\nSELECT {columns}\nFROM {source}")
        made.append(f"COMMENT ON VIEW {_quoted(name)} IS {_text(spec.doc)}")
    body = _MUTATIONS.format(
        ledger=_source(tables["ledger"], files), lessons=_source(tables["lessons"], files)
    )
    made.append(f"CREATE VIEW mutations AS\n{body}")
    made.append(f"COMMENT ON VIEW mutations IS {_text(MUTATIONS_DOC)}")
    return made


def write_database(path: Path, made: Sequence[str]) -> None:
    """A new DuckDB file that holds these views and nothing else."""
    with duckdb.connect(":memory:") as connection:
        connection.execute("SET autoinstall_known_extensions = false")
        connection.execute(
            f"ATTACH {_text(str(path))} AS made (STORAGE_VERSION {_text(STORAGE_VERSION)})"
        )
        connection.execute("USE made")
        for statement in ("BEGIN", *made, "COMMIT"):
            connection.execute(statement)
        connection.execute("USE memory")
        connection.execute("DETACH made")


def connect(home: Home, generation: str | None = None) -> duckdb.DuckDBPyConnection:
    """A connection of one's own, in memory, to the views of one generation (the current one).

    It sees that generation for as long as it lives, disturbs nobody, and reaches no file but the
    published ones. Times show in the lake's zone. Raises MissingError when there is none.
    """
    folder = resolve(home, generation)
    manifest: Manifest = manifest_of(folder)
    connection = duckdb.connect(":memory:")
    try:
        connection.execute("SET autoinstall_known_extensions = false")
        connection.execute("SET temp_directory = ''")
        connection.execute(f"SET TimeZone = {_text(_zone(home))}")
        for statement in statements(manifest.tables, home.published_files):
            connection.execute(statement)
        files = str(home.published_files)
        allowed = ", ".join(_text(name) for name in sorted({files, _literal(files)}))
        connection.execute(f"SET allowed_directories = [{allowed}]")
        connection.execute("SET enable_external_access = false")
    except BaseException:
        connection.close()
        raise
    return connection


def _zone(home: Home) -> str:
    try:
        return str(json.loads(home.zone_file.read_bytes())["tz"])
    except (OSError, ValueError, KeyError, TypeError):  # only how times are shown
        return "UTC"


def _source(listed: Sequence[PublishedFile], files: Path) -> str:
    paths = ", ".join(_text(_literal(str(files / file.name))) for file in listed)
    return f"read_parquet([{paths}], hive_partitioning = false)"


def _literal(path: str) -> str:
    """A path that DuckDB does not take for a pattern."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in path)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
