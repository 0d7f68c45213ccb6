"""What is done: one row per (stage, day). Staleness, status and sensors ask here, nowhere else.

A stage opens its days before it touches their first cell and closes them last, so a killed run
leaves open days, and open days are done again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from everest_pipelines.core.records import Day
from everest_pipelines.lake.lake import CellResult, Lake
from everest_pipelines.lake.operational import CellState, DayRow
from everest_pipelines.lake.parquet import file_sha256
from everest_pipelines.text.ids import digest

OPEN = "open"
CLOSED = "closed"

STAGES: dict[str, tuple[str, ...]] = {  # stage -> the tables whose cells it writes
    "transcripts": ("transcripts",),
    "sessions": ("sessions", "offers"),
    "episodes": ("episodes",),
    "vectors": ("vectors",),
    "sleep": ("lessons", "merges", "predictions", "verifications"),
}


def output_hash(cells: Iterable[CellState]) -> str:
    """Digest of what a stage left on a day; a cell without rows counts as absent."""
    kept = sorted((c.table, c.project, c.sha256) for c in cells if c.rows)
    return digest(*(part for cell in kept for part in cell))


def closed(
    stage: str,
    day: Day,
    *,
    input_hash: str,
    cells: Iterable[CellResult | CellState],
    prev_hash: str = "",
) -> DayRow:
    """The row of a day that is done, from the results of its writes (every cell of the day)."""
    states = [
        c if isinstance(c, CellState) else CellState(c.table, c.project, c.sha256, c.bytes, c.rows)
        for c in cells
    ]
    kept = tuple(sorted((c for c in states if c.sha256), key=lambda c: (c.table, c.project)))
    return DayRow(
        stage=stage,
        day=day,
        state=CLOSED,
        input_hash=input_hash,
        prev_hash=prev_hash,
        output_hash=output_hash(kept),
        rows=sum(cell.rows for cell in kept),
        cells=kept,
    )


class Days:
    """The table `days`, held in memory and written whole at every change."""

    def __init__(self, lake: Lake, rows: Iterable[DayRow]) -> None:
        self._lake = lake
        self._rows = {(row.stage, row.day): row for row in rows}

    @staticmethod
    def load(lake: Lake) -> Days:
        """As the lake has it now."""
        return Days(lake, lake.read_table("days"))

    def row(self, stage: str, day: Day) -> DayRow | None:
        """The row of a stage's day, or None when the stage never opened it."""
        return self._rows.get((stage, day))

    def rows(self, stage: str | None = None) -> list[DayRow]:
        """All rows, or those of one stage, by stage and day."""
        return [r for _, r in sorted(self._rows.items()) if stage is None or r.stage == stage]

    def open(self, stage: str, days: Iterable[Day]) -> None:
        """Say that these days are being worked on; durable on return. What was known stays."""
        for day in sorted(set(days)):
            known = self._rows.get((stage, day))
            cells = known.cells if known else ()
            self._rows[stage, day] = DayRow(stage=stage, day=day, state=OPEN, cells=cells)
        self._save()

    def close(self, rows: Iterable[DayRow]) -> None:
        """Say that these days are done (see `closed`); durable on return."""
        for row in rows:
            self._rows[row.stage, row.day] = row
        self._save()

    def forget(self, stage: str, days: Iterable[Day]) -> None:
        """Take days out of the table, as if the stage had never opened them."""
        for day in set(days):
            self._rows.pop((stage, day), None)
        self._save()

    def good(
        self,
        stage: str,
        day: Day,
        input_hash: str,
        *,
        prev_hash: str | None = None,
        full: bool = False,
    ) -> bool:
        """Whether the day is closed, of this input, and its files are what the stage left.

        Files are compared by size, with `full` by digest. An absent file of a closed day stands
        for no rows; a file that the stage did not write makes the day not good.
        """
        row = self._rows.get((stage, day))
        if row is None or row.state != CLOSED or row.input_hash != input_hash:
            return False
        if prev_hash is not None and row.prev_hash != prev_hash:
            return False
        return self.intact(row, full=full)

    def intact(self, row: DayRow, *, full: bool = False) -> bool:
        """Whether the files of a closed day are what its stage left."""
        expected = {(cell.table, cell.project): cell for cell in row.cells}
        tables = STAGES.get(row.stage) or tuple({cell.table for cell in row.cells})
        for table in tables:
            for found in self._lake.cells(table, days=[row.day]):
                cell = expected.pop((table, found.project), None)
                if cell is None:
                    return False
                if self._lake.cell_size(table, row.day, found.project) != cell.bytes:
                    return False
                if full and self._fresh_digest(table, row.day, found.project) != cell.sha256:
                    return False
        return all(cell.rows == 0 for cell in expected.values())

    def stale(
        self,
        stage: str,
        inputs: Mapping[Day, str],
        *,
        full: bool = False,
    ) -> list[Day]:
        """Which days of `inputs` (day -> input hash) are not good, in order.

        Also days that the stage has closed with rows but that `inputs` no longer names: their
        input is gone, they are to be done again (without input).
        """
        gone = [
            r.day for r in self.rows(stage) if r.day not in inputs and (r.rows or r.state == OPEN)
        ]
        wrong = [d for d, given in inputs.items() if not self.good(stage, d, given, full=full)]
        return sorted(set(gone) | set(wrong))

    def _fresh_digest(self, table: str, day: Day, project: str) -> str:
        return file_sha256(self._lake.path(table, day, project))

    def _save(self) -> None:
        self._lake.write_table("days", self.rows())
