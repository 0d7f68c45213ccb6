"""How the columns of a cell are stored."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from everest_pipelines.lake import parquet
from everest_pipelines.lake.columns import to_arrow
from everest_pipelines.lake.schemas import TABLES
from everest_pipelines_tests.lake.rows import turn


@pytest.mark.parametrize("name", sorted(TABLES))
def test_every_column_of_a_cell_is_stored_without_a_dictionary(name: str) -> None:
    spec = TABLES[name]
    data = parquet.to_bytes(spec, spec.schema.empty_table())
    file = pq.ParquetFile(pa.BufferReader(data))
    assert file.schema_arrow.names == spec.schema.names
    for group in range(file.metadata.num_row_groups):
        for column in range(file.metadata.num_columns):
            found = file.metadata.row_group(group).column(column)
            assert "DICTIONARY" not in str(found.encodings)


def test_a_cell_is_compressed_and_other_programs_read_it(tmp_path: Path) -> None:
    spec = TABLES["transcripts"]
    rows = [turn(n, text="the same long words " * 500) for n in range(9)]
    path = tmp_path / "part.parquet"
    path.write_bytes(parquet.to_bytes(spec, to_arrow(spec, rows)))
    assert path.stat().st_size < 9 * 10_000 / 4
    found = duckdb.sql(f"select turn_id, text from '{path}' order by 1").fetchall()
    assert found == [(row.turn_id, row.text) for row in rows]
