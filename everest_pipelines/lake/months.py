"""Published files: immutable, named by their content, written only when their input changed."""

from __future__ import annotations

import datetime as dt
import hashlib
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct

from everest_pipelines.core.records import Day, ProjectKey
from everest_pipelines.lake import parquet
from everest_pipelines.lake.columns import ArrowTable, Row, TableSpec, sorted_rows, to_arrow
from everest_pipelines.lake.lake import Cell, Lake, with_place
from everest_pipelines.lake.operational import unpack
from everest_pipelines.text.atomic import write_atomic
from everest_pipelines.text.errors import DamagedError
from everest_pipelines.text.ids import digest

FORMAT = "1"  # goes up when the same cells shall make other bytes
_NAME_DIGITS = 16
_WHOLE = "all"  # in place of a month


class PublishedFile(Struct, frozen=True, kw_only=True):
    """One file of a table. `name` is relative to published/files; `input` tells what it is from."""

    name: str
    month: str  # YYYY-MM; empty where a table is not split
    rows: int
    bytes: int
    input: str


Known = Mapping[tuple[str, str], PublishedFile]  # (table, month) -> what the last generation had


def month_files(
    lake: Lake, spec: TableSpec, known: Known, held: Collection[ProjectKey] = ()
) -> list[PublishedFile]:
    """The month files of a partitioned table, oldest first; months without rows have none.

    A month is its cells in (day, project) order. The rows of `held` projects are taken from the
    known files instead of the lake. Memory is bounded by one cell and one row group. Raises
    DamagedError when a cell cannot be read.
    """
    cells = [c for c in lake.cells(spec.name) if c.project not in held]
    months = {month: list(of) for month, of in itertools.groupby(cells, lambda c: c.day[:7])}
    if held:
        for table, month in known:
            if table == spec.name and month:
                months.setdefault(month, [])
    made: list[PublishedFile] = []
    for month in sorted(months):
        before = known.get((spec.name, month))
        source = before if held and before is not None else None
        given = month_input(lake, spec, months[month])
        if source is not None:
            given = digest(given, "held", source.name, *sorted(held))
        if before is not None and before.input == given and _there(lake, before):
            made.append(before)
            continue
        pieces = _pieces(lake, spec, months[month], source, held)
        file = _write(lake, spec, month, pieces, given)
        if file is not None:
            made.append(file)
    return made


def month_input(lake: Lake, spec: TableSpec, cells: Iterable[Cell]) -> str:
    """Names what a month file is made of: every cell with its digest."""
    parts = [FORMAT, spec.name, str(spec.version)]
    for cell in cells:
        parts += [cell.day, cell.project, lake.cell_digest(spec.name, cell.day, cell.project)]
    return digest(*parts)


def table_file(lake: Lake, spec: TableSpec) -> list[PublishedFile]:
    """An operational table as it is now, in one file; none when it was never written."""
    path = lake.table_path(spec.name)
    if not path.exists():
        return []
    rows = pq.read_metadata(path).num_rows
    data = path.read_bytes() if spec.schema == spec.published_schema else _readable(spec, path)
    return [_keep_bytes(lake, spec, "", data, rows, lake.table_digest(spec.name))]


def _readable(spec: TableSpec, path: Path) -> bytes:
    """A table's file with the texts of its packed columns; bytes that are no UTF-8 are marked."""
    table = parquet.read(spec, path)
    for place, column in enumerate(spec.columns):
        if column.packed:
            texts = [_text_of(frame, path) for frame in table.column(place).to_pylist()]
            field = spec.published_schema.field(place)
            table = table.set_column(place, field, pa.array(texts, field.type))
    sink = pa.BufferOutputStream()
    with parquet.writer(sink, spec, spec.published_schema, parquet.MONTH_LEVEL) as out:
        out.write_table(table.cast(spec.published_schema), row_group_size=spec.row_group)
    return sink.getvalue().to_pybytes()


def _text_of(frame: bytes, path: Path) -> str:
    try:
        return unpack(frame).decode("utf-8", "replace")
    except OSError as error:
        raise DamagedError(f"{path}: a frame cannot be unpacked.", "everest doctor") from error


def rows_file(
    lake: Lake, spec: TableSpec, rows: Sequence[Row], known: Known, month: str = ""
) -> list[PublishedFile]:
    """Given rows in one file; none when there are no rows."""
    if not rows:
        return []
    table = to_arrow(spec, sorted_rows(spec, rows))
    data = parquet.to_bytes(spec, table)
    given = hashlib.sha256(data).hexdigest()
    before = known.get((spec.name, month))
    if before is not None and before.input == given and _there(lake, before):
        return [before]
    return [_keep_bytes(lake, spec, month, data, table.num_rows, given)]


def empty_file(lake: Lake, spec: TableSpec) -> PublishedFile:
    """A file with the columns of a published table and no rows, so that its view has them too."""
    sink = pa.BufferOutputStream()
    with parquet.writer(sink, spec, spec.published_schema, parquet.MONTH_LEVEL) as out:
        out.write_table(spec.published_schema.empty_table())
    data: bytes = sink.getvalue().to_pybytes()
    return _keep_bytes(lake, spec, "", data, 0, "empty")


def _pieces(
    lake: Lake,
    spec: TableSpec,
    cells: Iterable[Cell],
    source: PublishedFile | None,
    held: Collection[ProjectKey],
) -> Iterator[ArrowTable]:
    """The tables that make up a month, in (day, project) order."""
    kept = _held_pieces(lake, spec, source, held) if source is not None else {}
    wanted = {(cell.day, cell.project) for cell in cells}
    for day, project in sorted(wanted | kept.keys()):
        if (day, project) in kept:
            yield kept[day, project]
            continue
        found = lake.arrow_cell(spec.name, day, project)
        if found is not None and found.num_rows:
            yield with_place(spec, found, day, project)


def _held_pieces(
    lake: Lake, spec: TableSpec, source: PublishedFile, held: Collection[ProjectKey]
) -> dict[tuple[Day, ProjectKey], ArrowTable]:
    """The rows of held projects in a published file, by cell."""
    whole = parquet.read(spec, lake.home.published_files / source.name)
    is_in: Any = pc.is_in  # pyright: ignore[reportAttributeAccessIssue]
    mine = whole.filter(is_in(whole.column("project"), pa.array(sorted(held), pa.string())))
    pairs: list[tuple[dt.date, str]] = list(
        zip(mine.column("day").to_pylist(), mine.column("project").to_pylist(), strict=True)
    )
    pieces: dict[tuple[Day, ProjectKey], ArrowTable] = {}
    start = 0
    for (day, project), run in itertools.groupby(pairs):
        count = len(list(run))
        pieces[day.isoformat(), project] = mine.slice(start, count).cast(spec.published_schema)
        start += count
    return pieces


def _write(
    lake: Lake, spec: TableSpec, month: str, pieces: Iterable[ArrowTable], given: str
) -> PublishedFile | None:
    """Stream `pieces` into a file of equal row groups; None when there is no row."""
    folder = lake.home.published_files / spec.name
    with parquet.growing(folder, month) as made:
        rows = 0
        with parquet.writer(made.file, spec, spec.published_schema, parquet.MONTH_LEVEL) as out:
            for group in _groups(pieces, spec.row_group):
                out.write_table(group, row_group_size=spec.row_group)
                rows += group.num_rows
        if not rows:
            return None
        made.file.flush()
        name = f"{month}.{parquet.file_sha256(made.waiting)[:_NAME_DIGITS]}.parquet"
        size = made.waiting.stat().st_size
        made.keep(folder / name)
    return PublishedFile(
        name=f"{spec.name}/{name}", month=month, rows=rows, bytes=size, input=given
    )


def _groups(pieces: Iterable[ArrowTable], size: int) -> Iterator[ArrowTable]:
    """Regroup tables into tables of exactly `size` rows (the last may be smaller)."""
    waiting: list[ArrowTable] = []
    count = 0
    for piece in pieces:
        waiting.append(piece)
        count += piece.num_rows
        if count < size:
            continue
        whole = pa.concat_tables(waiting)
        start = 0
        while count - start >= size:
            yield whole.slice(start, size).combine_chunks()
            start += size
        waiting, count = [whole.slice(start)], count - start
    if count:
        yield pa.concat_tables(waiting).combine_chunks()


def _keep_bytes(
    lake: Lake, spec: TableSpec, month: str, data: bytes, rows: int, given: str
) -> PublishedFile:
    sha256 = hashlib.sha256(data).hexdigest()
    name = f"{spec.name}/{month or _WHOLE}.{sha256[:_NAME_DIGITS]}.parquet"
    path = lake.home.published_files / name
    if not _is(path, len(data)):
        write_atomic(path, data)
    return PublishedFile(name=name, month=month, rows=rows, bytes=len(data), input=given)


def _there(lake: Lake, file: PublishedFile) -> bool:
    return _is(lake.home.published_files / file.name, file.bytes)


def _is(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except FileNotFoundError:
        return False
