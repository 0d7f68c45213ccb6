"""Where rows live: one Parquet file a (day, project) cell, one a table for the operational ones.

Nobody else knows these paths. A write is one rename; readers see the old file or the new one.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa

from everest_pipelines.core.records import Day, ProjectKey
from everest_pipelines.lake import parquet
from everest_pipelines.lake.columns import (
    DAY,
    TEXT,
    ArrowTable,
    Kind,
    Row,
    TableSpec,
    sorted_rows,
    to_arrow,
)
from everest_pipelines.lake.columns import from_arrow as rows_of
from everest_pipelines.lake.schemas import spec_of
from everest_pipelines.text.atomic import write_atomic
from everest_pipelines.text.errors import CallerError
from everest_pipelines.text.home import Home

PART = "part.parquet"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_PROJECT = re.compile(r"[^/\\|\x00-\x1f=.][^/\\|\x00-\x1f=]*")
_DIGESTS = "_digests.msgpack"
# Names under which files wait that only the holder of the lock writes, below the home.
_LEFTOVERS = (
    ("lake", f"**/.{PART}.*.tmp"),
    ("lake", f".{_DIGESTS}.*.tmp"),
    ("quarantine", f"**/.{PART}.*.tmp"),
    ("raw", ".*.tmp"),
    ("published", ".current.*.tmp"),
    (".", ".everest.duckdb.*.tmp"),
)


class Cell(msgspec.Struct, frozen=True, order=True):
    """One partition."""

    day: Day
    project: ProjectKey


class CellResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a write left. `sha256` is of the file's bytes, empty where there is no file."""

    table: str
    day: Day
    project: ProjectKey
    rows: int
    sha256: str
    bytes: int
    changed: bool


class _Known(msgspec.Struct, frozen=True, array_like=True):
    """A file's digest, good as long as the file is the same one."""

    inode: int
    size: int
    mtime_ns: int
    sha256: str


class Lake:
    """The tables of one home. Holds no state but a cache of file digests."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self._digests: dict[str, _Known] | None = None
        self._digests_new = False

    # Cells

    def path(self, table: str, day: Day, project: ProjectKey) -> Path:
        """Where a cell's file is or would be. Raises CallerError for an impossible name."""
        spec = spec_of(table)
        if spec.kind is not Kind.PARTITIONED:
            raise CallerError(f"The table {table} has no cells.")
        if not _DAY.fullmatch(day) or not _PROJECT.fullmatch(project):
            raise CallerError(f"There can be no cell {day!r}, {project!r}.")
        return self.home.lake / table / f"day={day}" / f"project={project}" / PART

    def cells(self, table: str, *, days: Collection[Day] | None = None) -> list[Cell]:
        """The cells that have a file (also one without rows), by day and project."""
        if spec_of(table).kind is not Kind.PARTITIONED:
            raise CallerError(f"The table {table} has no cells.")
        root = self.home.lake / table
        found = _values(root, "day") if days is None else sorted(set(days))
        cells: list[Cell] = []
        for day in found:
            folder = root / f"day={day}"
            for project in _values(folder, "project"):
                if (folder / f"project={project}" / PART).exists():
                    cells.append(Cell(day, project))
        return cells

    def read_cell(self, table: str, day: Day, project: ProjectKey) -> list[Row]:
        """The rows of one cell in the order of the table's key; none when there is no file.

        Raises DamagedError when the file is not of this table and version.
        """
        found = self.arrow_cell(table, day, project)
        return [] if found is None else rows_of(spec_of(table), found)

    def arrow_cell(self, table: str, day: Day, project: ProjectKey) -> ArrowTable | None:
        """One cell's columns as they are stored, or None when there is no file."""
        try:
            return parquet.read(spec_of(table), self.path(table, day, project))
        except FileNotFoundError:
            return None

    def read(
        self,
        table: str,
        *,
        days: Collection[Day] | None = None,
        projects: Collection[ProjectKey] | None = None,
    ) -> list[tuple[Day, ProjectKey, Row]]:
        """All rows of the chosen cells, by day, project and the table's key."""
        return [
            (cell.day, cell.project, row)
            for cell in self._chosen(table, days, projects)
            for row in self.read_cell(table, cell.day, cell.project)
        ]

    def arrow(
        self,
        table: str,
        *,
        days: Collection[Day] | None = None,
        projects: Collection[ProjectKey] | None = None,
    ) -> ArrowTable:
        """As `read`, as one Arrow table with the columns day and project in front."""
        spec = spec_of(table)
        tables: list[ArrowTable] = []
        for cell in self._chosen(table, days, projects):
            found = self.arrow_cell(table, cell.day, cell.project)
            if found is not None:
                tables.append(with_place(spec, found, cell.day, cell.project))
        if not tables:
            return spec.published_schema.empty_table()
        return pa.concat_tables(tables)

    def write_cell(
        self, table: str, day: Day, project: ProjectKey, rows: Sequence[Row]
    ) -> CellResult:
        """Make `rows` the whole content of one cell, in one step.

        The same rows in any order give the same bytes; an equal file is not touched. No rows and
        no file: nothing is written. No rows and a file: a file without rows.
        """
        spec, path = spec_of(table), self.path(table, day, project)
        if not rows and not path.exists():
            return CellResult(
                table=table, day=day, project=project, rows=0, sha256="", bytes=0, changed=False
            )
        data = parquet.to_bytes(spec, to_arrow(spec, sorted_rows(spec, rows)))
        sha256 = hashlib.sha256(data).hexdigest()
        changed = self._digest(path, size=len(data)) != sha256
        if changed:
            write_atomic(path, data)
            self._remember(path, sha256)
        return CellResult(
            table=table,
            day=day,
            project=project,
            rows=len(rows),
            sha256=sha256,
            bytes=len(data),
            changed=changed,
        )

    # Digests

    def cell_digest(self, table: str, day: Day, project: ProjectKey) -> str:
        """Hex SHA-256 of a cell's file, empty when there is none. Read only when it is new."""
        return self._digest(self.path(table, day, project)) or ""

    def cell_size(self, table: str, day: Day, project: ProjectKey) -> int | None:
        """Bytes of a cell's file, None when there is none."""
        try:
            return self.path(table, day, project).stat().st_size
        except FileNotFoundError:
            return None

    def save_digests(self) -> None:
        """Keep the digests for the next process: a cache, deletable at any time."""
        if self._digests_new and self._digests is not None:
            alive = {name: known for name, known in self._digests.items() if Path(name).exists()}
            write_atomic(self.home.lake / _DIGESTS, msgspec.msgpack.encode(alive))
            self._digests_new = False

    # Operational tables

    def table_path(self, name: str) -> Path:
        """Where an operational table's file is or would be."""
        if spec_of(name).kind is not Kind.OPERATIONAL:
            raise CallerError(f"The table {name} is not an operational one.")
        folder = self.home.quarantine if name == "quarantine" else self.home.lake / name
        return folder / PART

    def read_table(self, name: str) -> list[Row]:
        """The rows of an operational table in the order of its key; none when there is no file."""
        path = self.table_path(name)
        try:
            return rows_of(spec_of(name), parquet.read(spec_of(name), path))
        except FileNotFoundError:
            return []

    def write_table(self, name: str, rows: Sequence[Row]) -> bool:
        """Make `rows` the whole of an operational table. Returns whether the file changed."""
        spec, path = spec_of(name), self.table_path(name)
        if not rows and not path.exists():
            return False
        data = parquet.to_bytes(spec, to_arrow(spec, sorted_rows(spec, rows)))
        sha256 = hashlib.sha256(data).hexdigest()
        if self._digest(path, size=len(data)) == sha256:
            return False
        write_atomic(path, data)
        self._remember(path, sha256)
        return True

    def table_digest(self, name: str) -> str:
        """Hex SHA-256 of an operational table's file, empty when there is none."""
        return self._digest(self.table_path(name)) or ""

    def sweep(self) -> int:
        """Remove what killed writers left; only for whoever holds the lock. Returns how many."""
        swept = 0
        for root, pattern in _LEFTOVERS:
            for waiting in sorted((self.home.root / root).glob(pattern)):
                waiting.unlink(missing_ok=True)
                swept += 1
        return swept

    # Inside

    def _chosen(
        self,
        table: str,
        days: Collection[Day] | None,
        projects: Collection[ProjectKey] | None,
    ) -> Iterator[Cell]:
        wanted = None if projects is None else frozenset(projects)
        for cell in self.cells(table, days=days):
            if wanted is None or cell.project in wanted:
                yield cell

    def _digest(self, path: Path, size: int | None = None) -> str | None:
        """The file's digest; None when there is no file, or when it is not `size` bytes long."""
        try:
            found = path.stat()
        except FileNotFoundError:
            return None
        if size is not None and found.st_size != size:
            return None
        known = self._load_digests().get(str(path))
        if known is not None and _same(known, found):
            return known.sha256
        return self._remember(path, parquet.file_sha256(path))

    def _remember(self, path: Path, sha256: str) -> str:
        found = path.stat()
        known = _Known(found.st_ino, found.st_size, found.st_mtime_ns, sha256)
        self._load_digests()[str(path)] = known
        self._digests_new = True
        return sha256

    def _load_digests(self) -> dict[str, _Known]:
        if self._digests is None:
            try:
                data = (self.home.lake / _DIGESTS).read_bytes()
                self._digests = msgspec.msgpack.decode(data, type=dict[str, _Known])
            except (FileNotFoundError, msgspec.MsgspecError):  # a cache: made again
                self._digests = {}
        return self._digests


def with_place(spec: TableSpec, table: ArrowTable, day: Day, project: ProjectKey) -> ArrowTable:
    """A cell's columns with its day and project in front."""
    count = table.num_rows
    days = pa.repeat(pa.scalar(dt.date.fromisoformat(day), DAY), count)
    projects = pa.repeat(pa.scalar(project, TEXT), count)
    columns = [table.column(column.name) for column in spec.columns]
    return pa.Table.from_arrays([days, projects, *columns], schema=spec.published_schema)


def _same(known: _Known, found: os.stat_result) -> bool:
    return (known.inode, known.size, known.mtime_ns) == (
        found.st_ino,
        found.st_size,
        found.st_mtime_ns,
    )


def _values(folder: Path, name: str) -> list[str]:
    """The values of a Hive level, sorted."""
    prefix = f"{name}="
    try:
        names: Iterable[str] = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(n[len(prefix) :] for n in names if n.startswith(prefix))
