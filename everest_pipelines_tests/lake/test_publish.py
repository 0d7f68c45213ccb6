"""A generation is whole, of one content, and costs only what changed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from everest_pipelines.core.records import BadLine
from everest_pipelines.lake import generations, months
from everest_pipelines.lake.generations import Generation
from everest_pipelines.lake.lake import Lake
from everest_pipelines.lake.operational import FileRow, QuarantineRow, unpack
from everest_pipelines.lake.publish import build, commit, discard, publish
from everest_pipelines.lake.schemas import TABLES
from everest_pipelines.text.errors import CallerError, DamagedError, MissingError
from everest_pipelines_tests.lake.rows import NOON, lesson, turn

HOUR = 3_600_000_000
PLACES = [
    ("2026-04-30", "b"),
    ("2026-05-01", "a"),
    ("2026-05-01", "b"),
    ("2026-05-31", "a"),
    ("2026-06-01", "a"),
]


@pytest.fixture
def full(lake: Lake) -> Lake:
    for number, (day, project) in enumerate(PLACES):
        lake.write_cell("transcripts", day, project, [turn(number * 10 + n) for n in range(3)])
    return lake


def entry(identifier: str, kind: str = "review", **fields: Any) -> dict[str, Any]:
    return {"id": identifier, "kind": kind, "recorded_at": NOON, "chain": "c", **fields}


def names(generation: Generation, table: str) -> list[str]:
    return [file.name for file in generation.files[table]]


def rows_of(generation: Generation, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(generation.path / "everest.duckdb"), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def test_a_month_is_its_cells_in_order(full: Lake) -> None:
    made = publish(full, horizon="2026-06-01")
    assert [(f.month, f.rows) for f in made.files["transcripts"]] == [
        ("2026-04", 3),
        ("2026-05", 9),
        ("2026-06", 3),
    ]
    found = rows_of(made, "SELECT CAST(day AS VARCHAR), project, turn_id FROM transcripts")
    assert found == [
        (day, project, f"t{number * 10 + n:04}")
        for number, (day, project) in enumerate(PLACES)
        for n in range(3)
    ]


def test_the_same_content_is_the_same_generation(full: Lake) -> None:
    first = publish(full, horizon="2026-06-01", extra_files={"morning.md": b"good"})
    inode = os.lstat(full.home.current).st_ino
    again = publish(Lake(full.home), horizon="2026-06-01", extra_files={"morning.md": b"good"})
    assert (first.changed, again.changed, again.name) == (True, False, first.name)
    assert os.lstat(full.home.current).st_ino == inode
    assert first.name.startswith("g-2026-06-01-")
    later = publish(full, horizon="2026-06-02", extra_files={"morning.md": b"good"})
    other = publish(full, horizon="2026-06-01", extra_files={"morning.md": b"bad"})
    assert len({first.name, later.name, other.name}) == 3
    back = publish(full, horizon="2026-06-01", extra_files={"morning.md": b"good"})
    assert (back.name, back.changed) == (first.name, True)
    assert generations.current_name(full.home) == first.name


def test_only_the_month_that_changed_is_read_and_written(
    full: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = publish(full, horizon="2026-06-01")
    read: list[str] = []
    real = Lake.arrow_cell

    def watched(self: Lake, table: str, day: str, project: str) -> Any:
        read.append(day)
        return real(self, table, day, project)

    monkeypatch.setattr(Lake, "arrow_cell", watched)
    publish(Lake(full.home), horizon="2026-06-02")
    assert read == []
    full.write_cell("transcripts", "2026-05-31", "a", [turn(99)])
    second = publish(Lake(full.home), horizon="2026-06-02")
    assert {day[:7] for day in read} == {"2026-05"}
    before, after = names(first, "transcripts"), names(second, "transcripts")
    assert (before[0], before[2]) == (after[0], after[2])
    assert before[1] != after[1]
    full.write_cell("transcripts", "2026-05-31", "a", [turn(n) for n in (30, 31, 32)])
    third = publish(full, horizon="2026-06-02")
    assert names(third, "transcripts") == before


def test_a_month_file_has_equal_bytes_however_it_came_about(full: Lake, tmp_path: Path) -> None:
    once = publish(full, horizon="2026-06-01")
    other = Lake(type(full.home)(tmp_path / "other").ensure())
    for number, (day, project) in reversed(list(enumerate(PLACES))):
        other.write_cell("transcripts", day, project, [turn(5)])
        publish(other, horizon=day)
        rows = [turn(number * 10 + n) for n in (2, 0, 1)]
        other.write_cell("transcripts", day, project, rows)
    again = publish(other, horizon="2026-06-01")
    assert again.manifest.derived == once.manifest.derived
    for table in TABLES:
        assert names(again, table) == names(once, table)
        for name in names(once, table):
            ours = (full.home.published_files / name).read_bytes()
            assert (other.home.published_files / name).read_bytes() == ours


def test_row_groups_do_not_follow_cells() -> None:
    pieces = [_table(n) for n in (7, 0, 25, 3)]
    sizes = [group.num_rows for group in months._groups(iter(pieces), 10)]
    assert sizes == [10, 10, 10, 5]
    joined = [v for g in months._groups(iter(pieces), 10) for v in g.column("n").to_pylist()]
    assert joined == [v for piece in pieces for v in piece.column("n").to_pylist()]


def _table(count: int) -> Any:
    return pa.table({"n": pa.array(range(count), pa.int64())})


def test_a_table_without_rows_still_has_its_columns(lake: Lake) -> None:
    lake.write_cell("merges", "2026-06-01", "a", [])
    made = publish(lake, horizon="2026-06-01")
    for table, spec in TABLES.items():
        described = rows_of(made, f"DESCRIBE {table}")
        assert [row[0] for row in described] == spec.published_schema.names
        assert rows_of(made, f"SELECT count(*) FROM {table}") == [(0,)]
    assert rows_of(made, "SELECT count(*) FROM mutations") == [(0,)]


def test_operational_tables_are_published_as_they_are(lake: Lake) -> None:
    first = publish(lake, horizon="2026-06-01")
    lake.write_table("files", [FileRow(path="/a.jsonl", cells=(("2026-06-01", "p-1"),))])
    second = publish(lake, horizon="2026-06-01")
    assert rows_of(second, "SELECT path, cells[1].project FROM files") == [("/a.jsonl", "p-1")]
    assert first.manifest.derived == second.manifest.derived
    assert second.changed
    assert first.name != second.name


def test_a_line_in_quarantine_is_published_as_text(lake: Lake) -> None:
    content = b'{"torn": "\xc3\xa9\xff'
    bad = BadLine(
        source_path="/a.jsonl", line=3, byte_offset=9, reason="torn", content=content, size=99
    )
    lake.write_table("quarantine", [QuarantineRow.of(bad)])
    made = publish(lake, horizon="2026-06-01")
    assert rows_of(made, "SELECT line, content FROM quarantine") == [(3, '{"torn": "é\ufffd')]
    assert unpack(lake.read_table("quarantine")[0].content) == content, "the lake keeps the bytes"
    assert not publish(lake, horizon="2026-06-01").changed


def test_lessons_and_ledger_stand_in_one_audit_trail(lake: Lake) -> None:
    lake.write_cell("lessons", "2026-06-01", "p-1", [lesson(1, "use pnpm")])
    made = publish(
        lake,
        horizon="2026-06-01",
        lessons_now=[lesson(1, "use pnpm")],
        entries=[entry("01", actor="owner", lesson_id="l1", verdict="approve")],
    )
    assert rows_of(made, "SELECT lesson_id, text, state FROM lessons_now") == [
        ("l1", "use pnpm", "stated")
    ]
    trail = rows_of(
        made, "SELECT entry_id, lesson_id, kind, what, actor FROM mutations ORDER BY entry_id"
    )
    assert trail == [
        ("01", "l1", "review", '{"verdict": "approve"}', "owner"),
        ("l1@1", "l1", "lesson", "stated: use pnpm", "night"),
    ]
    assert made.manifest.last_entry == "01"


def test_entries_that_publishing_makes_ask_for_no_new_generation(lake: Lake) -> None:
    first = publish(lake, horizon="2026-06-01", entries=[entry("01")])
    quiet = [entry("01"), entry("02", "publication"), entry("03", "recall"), entry("04", "render")]
    assert publish(lake, horizon="2026-06-01", entries=quiet).name == first.name
    loud = publish(lake, horizon="2026-06-01", entries=[*quiet, entry("05", "veto")])
    assert loud.name != first.name
    assert rows_of(loud, "SELECT count(*) FROM ledger") == [(5,)]
    assert loud.manifest.derived == first.manifest.derived


def test_a_held_project_keeps_its_last_rows(full: Lake) -> None:
    publish(full, horizon="2026-06-01")
    for day, project in PLACES:
        full.write_cell("transcripts", day, project, [turn(900)])
    full.write_cell("transcripts", "2026-05-09", "b", [turn(901)])
    full.write_cell("transcripts", "2026-04-01", "a", [turn(902)])
    held = publish(full, horizon="2026-06-02", held={"b"})
    found = rows_of(held, "SELECT CAST(day AS VARCHAR), project, turn_id FROM transcripts")
    assert found == [
        ("2026-04-01", "a", "t0902"),
        *[("2026-04-30", "b", f"t{n:04}") for n in (0, 1, 2)],
        ("2026-05-01", "a", "t0900"),
        *[("2026-05-01", "b", f"t{n:04}") for n in (20, 21, 22)],
        ("2026-05-31", "a", "t0900"),
        ("2026-06-01", "a", "t0900"),
    ]
    again = publish(full, horizon="2026-06-02", held={"b"})
    assert (again.name, again.changed) == (held.name, False)
    free = publish(full, horizon="2026-06-02")
    assert rows_of(free, "SELECT count(*) FROM transcripts WHERE project = 'b'") == [(3,)]
    plain = publish(full, horizon="2026-06-02", held={"nobody"})
    assert plain.name == free.name


def test_a_candidate_is_out_of_sight_until_it_is_committed(full: Lake) -> None:
    first = publish(full, horizon="2026-06-01")
    full.write_cell("transcripts", "2026-06-01", "a", [turn(99)])
    candidate = build(full, horizon="2026-06-02", extra_files={"render/a/b.md": b"x"})
    assert (candidate.folder / "render" / "a" / "b.md").read_bytes() == b"x"
    assert generations.current_name(full.home) == first.name
    assert generations.names(full.home) == [first.name]
    discard(candidate)
    assert not candidate.folder.exists()
    other = commit(full, build(full, horizon="2026-06-02"))
    assert generations.current_name(full.home) == other.name
    there = {path.name for path in full.home.published.iterdir()}
    assert there == {"files", "current", first.name, other.name}


def test_extra_files_stay_inside_and_are_the_owners_alone(lake: Lake) -> None:
    def write(folder: Path) -> None:
        (folder / "recall.sqlite").write_bytes(b"db")
        (folder / "recall.sqlite").chmod(0o644)
        (folder / "render").mkdir()
        (folder / "render" / "x.md").write_text("x")

    made = publish(lake, horizon="2026-06-01", write_extra=write)
    assert sorted(made.manifest.extra) == ["recall.sqlite", "render/x.md"]
    for path in [made.path, *made.path.rglob("*"), *lake.home.published_files.rglob("*")]:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
    for name in ("../x", "manifest.json", "/etc/x"):
        with pytest.raises(CallerError):
            publish(lake, horizon="2026-06-01", extra_files={name: b""})
    assert not list(lake.home.published.glob(".building*"))


def test_a_failing_writer_of_extra_files_leaves_the_last_generation(full: Lake) -> None:
    first = publish(full, horizon="2026-06-01")

    def fail(folder: Path) -> None:
        (folder / "half").write_bytes(b"x")
        raise RuntimeError("no space")

    with pytest.raises(RuntimeError, match="no space"):
        publish(full, horizon="2026-06-02", write_extra=fail)
    assert generations.current_name(full.home) == first.name
    assert not list(full.home.published.glob(".building*"))


def test_generations_go_when_nobody_can_be_reading_them(lake: Lake) -> None:
    made: list[str] = []
    for hour in range(0, 24 * 20, 8):  # three a day for twenty days
        lake.write_cell("transcripts", "2026-06-01", "a", [turn(hour)])
        now = NOON + hour * HOUR
        made.append(publish(lake, horizon="2026-06-01", now=now).name)
        there = generations.names(lake.home)
        assert made[-1] in there
        assert set(made[-4:]) <= set(there)  # was current less than a day ago
        for name in there:
            for files in generations.manifest_of(lake.home.published / name).tables.values():
                for file in files:
                    assert (lake.home.published_files / file.name).is_file()
    assert 14 <= len(generations.names(lake.home)) <= 14 + 4
    kept = len(list((lake.home.published_files / "transcripts").iterdir()))
    assert kept == len(generations.names(lake.home))


def test_a_generation_that_was_current_until_now_stays_for_a_day(lake: Lake) -> None:
    old = publish(lake, horizon="2026-06-01", now=NOON)
    weeks = NOON + 24 * 60 * HOUR
    for hour in range(30):
        lake.write_cell("transcripts", "2026-06-01", "a", [turn(hour)])
        publish(lake, horizon="2026-06-01", now=weeks + hour * HOUR)
        assert (old.name in generations.names(lake.home)) or hour >= 24


def test_before_the_first_generation_the_command_is_named(lake: Lake) -> None:
    with pytest.raises(MissingError, match="everest night"):
        generations.resolve(lake.home)
    assert generations.current(lake.home) is None
    publish(lake, horizon="2026-06-01")
    with pytest.raises(MissingError, match="everest status"):
        generations.resolve(lake.home, "g-2020-01-01-000000000000")
    assert generations.resolve(lake.home).is_dir()


def test_a_damaged_manifest_does_not_stop_the_next_generation(full: Lake) -> None:
    first = publish(full, horizon="2026-06-01")
    (first.path / "manifest.json").write_bytes(b"{")
    with pytest.raises(DamagedError):
        publish(full, horizon="2026-06-02", held={"b"})
    second = publish(full, horizon="2026-06-02")
    assert names(second, "transcripts") == names(first, "transcripts")


def test_a_cell_that_cannot_be_read_stops_the_publication_and_names_it(full: Lake) -> None:
    first = publish(full, horizon="2026-06-01")
    full.path("transcripts", "2026-05-31", "a").write_bytes(b"PAR1 and no more")
    with pytest.raises(DamagedError, match=r"day=2026-05-31.*everest doctor"):
        publish(full, horizon="2026-06-01")
    assert generations.current_name(full.home) == first.name
    assert rows_of(first, "SELECT count(*) FROM transcripts") == [(15,)]
