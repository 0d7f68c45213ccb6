"""A cell is written in one step, to the same bytes, or not at all."""

from __future__ import annotations

import hashlib
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from everest_pipelines.core.records import ToolCall
from everest_pipelines.lake import parquet
from everest_pipelines.lake.lake import Cell, Lake
from everest_pipelines.lake.operational import FileRow, ProjectRow
from everest_pipelines.lake.schemas import TABLES
from everest_pipelines.text.errors import CallerError, DamagedError
from everest_pipelines.text.home import Home
from everest_pipelines_tests.lake.processes import CHECKOUT, kill, start
from everest_pipelines_tests.lake.rows import turn

DAY = "2026-06-01"
ROWS = [
    turn(n, tool_calls=(ToolCall("c", "Bash", "{}", None), ToolCall("d", "Read", "{}", "x" * n)))
    for n in range(50)
]


def test_rows_come_back_sorted_and_the_same_rows_touch_nothing(lake: Lake) -> None:
    shuffled = random.Random(1).sample(ROWS, len(ROWS))
    first = lake.write_cell("transcripts", DAY, "p-1", shuffled)
    path = lake.path("transcripts", DAY, "p-1")
    before = path.stat()
    assert lake.read_cell("transcripts", DAY, "p-1") == ROWS
    assert (first.rows, first.changed, first.bytes) == (50, True, before.st_size)
    assert first.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    for other in (lake, Lake(lake.home)):
        again = other.write_cell("transcripts", DAY, "p-1", ROWS)
        assert (again.changed, again.sha256) == (False, first.sha256)
        assert path.stat().st_ino == before.st_ino
    assert lake.write_cell("transcripts", DAY, "p-1", ROWS[1:]).changed
    assert path.stat().st_ino != before.st_ino


def test_the_same_rows_give_the_same_bytes_in_another_process(lake: Lake) -> None:
    code = """
import hashlib
from everest_pipelines.lake import parquet
from everest_pipelines.lake.schemas import TABLES, to_arrow
from everest_pipelines_tests.lake.test_lake import ROWS
import pyarrow
pyarrow.set_cpu_count(4)
data = parquet.to_bytes(TABLES["transcripts"], to_arrow(TABLES["transcripts"], ROWS))
print(hashlib.sha256(data).hexdigest())
"""
    here = lake.write_cell("transcripts", DAY, "p-1", ROWS).sha256
    for seed, zone in (("1", "Asia/Tokyo"), ("2", "America/New_York")):
        there = subprocess.run(
            [sys.executable, "-c", code],
            cwd=CHECKOUT,
            env={"PYTHONPATH": str(CHECKOUT), "PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": "C"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert there.stdout.strip() == here


def test_no_rows_write_nothing_new_and_empty_what_was_there(lake: Lake) -> None:
    nothing = lake.write_cell("transcripts", DAY, "p-1", [])
    assert (nothing.changed, nothing.sha256, nothing.bytes) == (False, "", 0)
    assert not lake.path("transcripts", DAY, "p-1").parent.exists()
    assert lake.read_cell("transcripts", DAY, "p-1") == []
    assert lake.cell_digest("transcripts", DAY, "p-1") == ""
    lake.write_cell("transcripts", DAY, "p-1", ROWS)
    emptied = lake.write_cell("transcripts", DAY, "p-1", [])
    assert (emptied.changed, emptied.rows) == (True, 0)
    assert lake.path("transcripts", DAY, "p-1").exists()
    assert lake.read_cell("transcripts", DAY, "p-1") == []
    assert lake.cells("transcripts") == [Cell(DAY, "p-1")]


def test_cells_are_listed_and_read_by_day_and_project(lake: Lake) -> None:
    places = [("2026-06-02", "b"), ("2026-06-01", "b"), ("2026-06-01", "a"), ("2025-01-01", "a")]
    for number, (day, project) in enumerate(places):
        lake.write_cell("transcripts", day, project, [turn(number)])
    (lake.home.lake / "transcripts" / "day=2026-06-01" / "project=empty").mkdir()
    assert lake.cells("transcripts") == [Cell(d, p) for d, p in sorted(places)]
    assert lake.cells("transcripts", days=["2026-06-01", "1999-01-01"]) == [
        Cell("2026-06-01", "a"),
        Cell("2026-06-01", "b"),
    ]
    assert [(d, p) for d, p, _ in lake.read("transcripts")] == sorted(places)
    some = lake.read("transcripts", days=["2026-06-01", "2026-06-02"], projects=["b"])
    assert [(d, p, r.turn_id) for d, p, r in some] == [
        ("2026-06-01", "b", "t0001"),
        ("2026-06-02", "b", "t0000"),
    ]
    table = lake.arrow("transcripts", projects=["a"])
    assert table.column_names[:3] == ["day", "project", "turn_id"]
    assert [str(day) for day in table.column("day").to_pylist()] == ["2025-01-01", "2026-06-01"]
    assert lake.arrow("episodes").num_rows == 0
    assert lake.arrow("episodes").column_names[:3] == ["day", "project", "episode_id"]


@pytest.mark.parametrize(
    ("day", "project"),
    [
        ("2026-6-1", "p"),
        ("../../x", "p"),
        (DAY, "../p"),
        (DAY, ""),
        (DAY, "a/b"),
        (DAY, "a|b"),
        (DAY, ".hidden"),
    ],
)
def test_an_impossible_cell_is_refused(lake: Lake, day: str, project: str) -> None:
    with pytest.raises(CallerError):
        lake.write_cell("transcripts", day, project, ROWS)
    assert lake.write_cell("transcripts", DAY, "päivä-1.x_2", ROWS).changed


def test_a_table_is_read_in_its_own_way(lake: Lake) -> None:
    with pytest.raises(CallerError, match="no cells"):
        lake.cells("files")
    with pytest.raises(CallerError, match="no cells"):
        lake.write_cell("files", DAY, "p", [])
    with pytest.raises(CallerError, match="operational"):
        lake.write_table("transcripts", [])
    with pytest.raises(CallerError, match="no table"):
        lake.read_table("file")


def test_a_cell_of_another_version_names_table_and_command(lake: Lake) -> None:
    lake.write_cell("transcripts", DAY, "p-1", ROWS)
    path = lake.path("transcripts", DAY, "p-1")
    table = pq.read_table(path)
    _rewrite(path, table, {"everest.version": "2"})
    with pytest.raises(DamagedError, match=r"transcripts is of version 2.*everest doctor"):
        lake.read_cell("transcripts", DAY, "p-1")
    _rewrite(path, table, {"everest.version": "1"})
    assert lake.read_cell("transcripts", DAY, "p-1") == ROWS


def test_a_wrong_column_is_named(lake: Lake) -> None:
    lake.write_cell("transcripts", DAY, "p-1", ROWS)
    path = lake.path("transcripts", DAY, "p-1")
    table = pq.read_table(path)
    mine = {"everest.version": "1"}
    wrong = table.set_column(0, "turn_id", pa.array(range(50)))
    for broken, what in (
        (table.drop_columns(["channel"]), "column channel: it is missing"),
        (wrong, "column turn_id: it is int64"),
        (table.append_column("mood", pa.array(range(50))), "column mood: nobody declared it"),
    ):
        _rewrite(path, broken, mine)
        with pytest.raises(DamagedError, match=f"transcripts, {what}"):
            lake.read_cell("transcripts", DAY, "p-1")


def _rewrite(path: Path, table: pa.Table, metadata: dict[str, str]) -> None:
    with pq.ParquetWriter(path, table.schema, store_schema=False) as out:
        out.write_table(table)
        out.add_key_value_metadata(metadata)


@pytest.mark.parametrize("cut", [0, 3, 400])
def test_a_cut_file_is_damaged_and_named(lake: Lake, cut: int) -> None:
    lake.write_cell("transcripts", DAY, "p-1", ROWS)
    path = lake.path("transcripts", DAY, "p-1")
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(DamagedError, match=r"part\.parquet.*everest doctor"):
        lake.read_cell("transcripts", DAY, "p-1")
    assert Lake(lake.home).write_cell("transcripts", DAY, "p-1", ROWS).changed
    assert lake.read_cell("transcripts", DAY, "p-1") == ROWS


def test_files_and_folders_are_the_owners_alone(lake: Lake) -> None:
    lake.write_cell("transcripts", DAY, "p-1", ROWS)
    lake.write_table("files", [FileRow(path="a")])
    lake.save_digests()
    found = list(lake.home.lake.rglob("*"))
    assert len(found) > 5
    for path in found:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


def test_an_operational_table_is_rewritten_only_when_it_changed(lake: Lake) -> None:
    assert lake.read_table("projects") == []
    assert not lake.write_table("projects", [])
    rows = [ProjectRow(path=p, project="p-1", folders=("x",)) for p in ("/b", "/a")]
    assert lake.write_table("projects", rows)
    assert not lake.write_table("projects", rows[::-1])
    assert [row.path for row in lake.read_table("projects")] == ["/a", "/b"]
    assert lake.write_table("projects", [])
    assert lake.read_table("projects") == []


def test_quarantine_lies_apart_from_the_lake(lake: Lake, home: Home) -> None:
    assert lake.table_path("quarantine").is_relative_to(home.quarantine)
    assert lake.table_path("files").is_relative_to(home.lake)


def test_digests_are_remembered_and_never_wrong(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha256 = lake.write_cell("transcripts", DAY, "p-1", ROWS).sha256
    lake.save_digests()
    hashed: list[Path] = []
    real = parquet.file_sha256

    def watched(path: Path) -> str:
        hashed.append(path)
        return real(path)

    monkeypatch.setattr(parquet, "file_sha256", watched)
    assert Lake(lake.home).cell_digest("transcripts", DAY, "p-1") == sha256
    assert hashed == []
    other = Lake(lake.home)
    changed = other.write_cell("transcripts", DAY, "p-1", ROWS[:-1]).sha256
    assert lake.cell_digest("transcripts", DAY, "p-1") == changed != sha256
    (lake.home.lake / "_digests.msgpack").write_bytes(b"\xc1")
    assert Lake(lake.home).cell_digest("transcripts", DAY, "p-1") == changed
    assert hashed


def test_several_row_groups_hold_all_rows(lake: Lake) -> None:
    size = TABLES["transcripts"].row_group
    rows = [turn(n) for n in range(size + 5)]
    lake.write_cell("transcripts", DAY, "p-1", rows)
    path = lake.path("transcripts", DAY, "p-1")
    assert pq.read_metadata(path).num_row_groups == 2
    assert lake.read_cell("transcripts", DAY, "p-1") == rows


WRITE = """
import sys
from pathlib import Path
from everest_pipelines.lake.lake import Lake
from everest_pipelines.text.home import Home
from everest_pipelines_tests.lake.test_lake import ROWS
lake = Lake(Home(Path(sys.argv[1])))
print("ready", flush=True)
while True:
    for count in (10, 50):
        lake.write_cell("transcripts", "2026-06-01", "p-1", ROWS[:count])
"""


def test_a_killed_writer_leaves_a_whole_cell(lake: Lake) -> None:
    chance = random.Random(7)
    lake.write_cell("transcripts", DAY, "p-1", ROWS)
    for _ in range(5):
        writer = start(WRITE, str(lake.home.root))
        assert writer.stdout is not None
        writer.stdout.readline()
        for _ in range(int(chance.random() * 60)):
            assert lake.read_cell("transcripts", DAY, "p-1") in (ROWS[:10], ROWS)
        kill(writer)
        assert lake.read_cell("transcripts", DAY, "p-1") in (ROWS[:10], ROWS)
    lake.sweep()
    folder = lake.path("transcripts", DAY, "p-1").parent
    assert [path.name for path in folder.iterdir()] == ["part.parquet"]
    assert Lake(lake.home).write_cell("transcripts", DAY, "p-1", ROWS[:7]).changed
    assert lake.read_cell("transcripts", DAY, "p-1") == ROWS[:7]
