"""Which columns of a cell are compressed."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from everest_pipelines.lake import parquet
from everest_pipelines.lake.schemas import TABLES


@pytest.mark.parametrize("name", sorted(TABLES))
def test_every_column_of_a_file_is_decided_on(name: str) -> None:
    spec = TABLES[name]
    data = parquet.to_bytes(spec, spec.schema.empty_table())
    file = pq.ParquetFile(pa.BufferReader(data))
    paths = [file.schema.column(n).path for n in range(len(file.schema.names))]
    assert set(paths) == set(spec.leaves)


@pytest.mark.parametrize(
    ("table", "column", "packed"),
    [
        ("transcripts", "text", True),
        ("transcripts", "tool_calls.list.element.output", True),
        ("transcripts", "line_from", False),
        ("transcripts", "role", False),
        ("vectors", "vector.list.element", True),
    ],
)
def test_long_texts_are_compressed_and_numbers_are_not(
    table: str, column: str, packed: bool
) -> None:
    assert TABLES[table].leaves[column] is packed
