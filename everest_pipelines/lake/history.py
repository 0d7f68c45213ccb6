"""Whole tables read fast: a month that did not change since it was published is one file.

3,000 small cells cost 36 times the CPU of the same rows in month files; a night over years of
history reads them again and again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from everest_pipelines.core.records import Day, ProjectKey
from everest_pipelines.lake import generations, months, parquet
from everest_pipelines.lake.columns import ArrowTable, Row, TableSpec, from_arrow
from everest_pipelines.lake.lake import Cell, Lake, with_place
from everest_pipelines.lake.months import PublishedFile
from everest_pipelines.lake.schemas import spec_of
from everest_pipelines.text.errors import DamagedError

Placed = tuple[Day, ProjectKey, Row]


class History:
    """The lake's partitioned tables, as they are now; what was read stays for the next reader."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._rows: dict[tuple[str, str], tuple[str, list[Placed]]] = {}

    def rows(self, table: str, through: Day | None = None) -> list[Placed]:
        """All rows up to and with the day ``through``, by day, project and the table's key.

        The same as ``Lake.read``. Raises DamagedError when a cell cannot be read.
        """
        spec = spec_of(table)
        found: list[Placed] = []
        for month, cells in self._months(table, through):
            given = months.month_input(self._lake, spec, cells)
            known = self._rows.get((table, month))
            if known is None or known[0] != given:
                known = (given, self._placed(spec, month, cells, given))
                self._rows[table, month] = known
            found += known[1]
        if through is None:
            return found
        return [row for row in found if row[0] <= through]

    def tables(self, table: str, through: Day | None = None) -> Iterator[ArrowTable]:
        """The same as Arrow tables with day and project, a month each; days after are left in."""
        spec = spec_of(table)
        for month, cells in self._months(table, through):
            given = months.month_input(self._lake, spec, cells)
            yield from self._pieces(spec, month, cells, given)

    def _months(self, table: str, through: Day | None) -> Iterator[tuple[str, list[Cell]]]:
        for month, cells in itertools.groupby(self._lake.cells(table), lambda one: one.day[:7]):
            if through is None or month <= through[:7]:
                yield month, list(cells)

    def _placed(self, spec: TableSpec, month: str, cells: list[Cell], given: str) -> list[Placed]:
        placed: list[Placed] = []
        for piece in self._pieces(spec, month, cells, given):
            days = [day.isoformat() for day in piece.column("day").to_pylist()]
            projects: list[str] = piece.column("project").to_pylist()
            bare = piece.select(spec.schema.names).cast(spec.schema)
            placed += zip(days, projects, from_arrow(spec, bare), strict=True)
        return placed

    def _pieces(
        self, spec: TableSpec, month: str, cells: list[Cell], given: str
    ) -> Iterator[ArrowTable]:
        file = self._published(spec.name, month)
        if file is not None and file.input == given:
            path = self._lake.home.published_files / file.name
            if path.exists():
                yield parquet.read(spec, path)
                return
        for cell in cells:
            found = self._lake.arrow_cell(spec.name, cell.day, cell.project)
            if found is not None and found.num_rows:
                yield with_place(spec, found, cell.day, cell.project)

    def _published(self, table: str, month: str) -> PublishedFile | None:
        try:
            generation = generations.current(self._lake.home)
        except DamagedError:
            return None  # the cells are the truth; publishing mends the rest
        if generation is None:
            return None
        return next((one for one in generation.files.get(table, ()) if one.month == month), None)
