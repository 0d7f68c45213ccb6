"""Rows become columns and rows again, and nothing else passes."""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everest_pipelines.core.records import BadLine, Merge
from everest_pipelines.lake import parquet
from everest_pipelines.lake.operational import QuarantineRow, pack, unpack
from everest_pipelines.lake.schemas import (
    OPERATIONAL,
    PARTITIONED,
    TABLES,
    from_arrow,
    sorted_rows,
    spec_of,
    to_arrow,
)
from everest_pipelines.text.errors import CallerError, DamagedError
from everest_pipelines_tests.lake.rows import any_row, turn


@pytest.mark.parametrize("name", TABLES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_row_of_every_table_comes_back_equal(name: str, data: st.DataObject) -> None:
    spec = TABLES[name]
    rows = data.draw(st.lists(any_row(spec), max_size=4))
    table = to_arrow(spec, rows)
    assert from_arrow(spec, table) == rows
    again = pa.concat_tables([table, table])
    assert from_arrow(spec, again) == rows + rows
    assert from_arrow(spec, again.slice(1)) == (rows + rows)[1:]


@pytest.mark.parametrize("name", TABLES)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_the_order_in_which_rows_come_leaves_no_trace_in_the_bytes(
    name: str, data: st.DataObject
) -> None:
    spec = TABLES[name]
    rows = data.draw(st.lists(any_row(spec), min_size=1, max_size=5))
    rows = rows + rows[:1]  # rows that share a key, too
    shuffled = data.draw(st.permutations(rows))
    first = parquet.to_bytes(spec, to_arrow(spec, sorted_rows(spec, rows)))
    second = parquet.to_bytes(spec, to_arrow(spec, sorted_rows(spec, shuffled)))
    assert first == second
    assert first != parquet.to_bytes(spec, to_arrow(spec, rows[:-1]))


def test_every_column_is_documented_and_none_is_named_at() -> None:
    for spec in TABLES.values():
        assert spec.doc
        for column in spec.columns:
            assert column.doc, f"{spec.name}.{column.name}"
            assert column.name not in ("at", "day", "project") or not spec.partitioned
            assert column.name != "at"


def test_the_tables_of_the_blueprint_are_declared() -> None:
    assert PARTITIONED == (
        "transcripts",
        "sessions",
        "offers",
        "episodes",
        "vectors",
        "lessons",
        "merges",
        "predictions",
        "verifications",
    )
    assert OPERATIONAL == ("files", "projects", "quarantine", "days")
    with pytest.raises(CallerError, match="transcripts"):
        spec_of("transcript")


def test_a_lone_surrogate_costs_one_sign_and_not_the_row() -> None:
    spec = TABLES["transcripts"]
    rows = [turn(1, "before \ud83d after"), turn(2, "whole \U0001f600")]
    back = from_arrow(spec, to_arrow(spec, rows))
    assert [row.text for row in back] == ["before \ufffd after", "whole \U0001f600"]


@pytest.mark.parametrize(
    ("changes", "column"),
    [
        ({"occurred_at": "noon"}, "occurred_at"),
        ({"occurred_at": None}, "occurred_at"),
        ({"text": None}, "text"),
        ({"line_from": 1 << 70}, "line_from"),
    ],
)
def test_a_value_that_does_not_fit_names_table_and_column(
    changes: dict[str, Any], column: str
) -> None:
    spec = TABLES["transcripts"]
    with pytest.raises(DamagedError, match=f"transcripts, column {column}"):
        to_arrow(spec, [msgspec.structs.replace(turn(1), **changes)])
    assert to_arrow(spec, [turn(1)]).num_rows == 1


def test_a_day_that_is_none_is_refused() -> None:
    spec = TABLES["merges"]
    good = Merge(old_id="a", new_id="b", old_created_at=1, merged_on="2026-02-28", why="")
    bad = Merge(old_id="a", new_id="b", old_created_at=1, merged_on="2026-02-30", why="")
    assert from_arrow(spec, to_arrow(spec, [good])) == [good]
    with pytest.raises(DamagedError, match="merged_on"):
        to_arrow(spec, [bad])


def test_quarantined_bytes_come_back() -> None:
    content = b"\x00\xff{torn" * 400
    assert unpack(pack(content)) == content
    assert unpack(pack(b"")) == b""
    assert len(pack(content)) < 200
    bad = BadLine(
        source_path="f", line=3, byte_offset=9, reason="torn", content=content, size=9_000
    )
    assert unpack(QuarantineRow.of(bad).content) == content
