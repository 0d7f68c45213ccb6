"""Readers see one generation, whole, and disturb nobody; a killed night leaves the last one."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import duckdb
import pytest

from everest_pipelines.lake import generations
from everest_pipelines.lake.lake import Lake
from everest_pipelines.lake.publish import publish
from everest_pipelines.lake.views import connect
from everest_pipelines.text.errors import MissingError
from everest_pipelines.text.home import Home
from everest_pipelines_tests.lake.processes import kill, start
from everest_pipelines_tests.lake.rows import lesson, turn

DAY = "2026-06-01"
NIGHTS = """
import itertools, sys
from pathlib import Path
from everest_pipelines.lake.lake import Lake
from everest_pipelines.lake.lock import held
from everest_pipelines.lake.publish import publish
from everest_pipelines.text.home import Home
from everest_pipelines_tests.lake.rows import lesson, turn
home = Home(Path(sys.argv[1]))
first = int(sys.argv[2])
print("ready", flush=True)
for n in itertools.count(first):
    with held(home, "night"):
        lake = Lake(home)
        for project in ("a", "b"):
            for day in ("2026-05-01", "2026-06-01"):
                lake.write_cell("transcripts", day, project, [turn(1, f"night {n}")])
        lake.write_cell("lessons", "2026-06-01", "a", [lesson(1, f"night {n}")])
        publish(lake, horizon="2026-06-01", lessons_now=[lesson(1, f"night {n}")],
                extra_files={"lessons.jsonl": f"night {n}".encode()})
"""
SEEN = """
SELECT list(DISTINCT text), count(*) FROM (
  SELECT text FROM transcripts UNION ALL SELECT text FROM lessons
  UNION ALL SELECT text FROM lessons_now)
"""


def test_a_connection_keeps_its_generation(lake: Lake) -> None:
    lake.write_cell("transcripts", DAY, "a", [turn(1, "first")])
    one = publish(lake, horizon=DAY)
    with connect(lake.home) as early:
        lake.write_cell("transcripts", DAY, "a", [turn(1, "second")])
        publish(lake, horizon=DAY)
        sql = "SELECT text FROM transcripts"
        assert early.execute(sql).fetchall() == [("first",)]
        with connect(lake.home) as late, connect(lake.home, one.name) as chosen:
            assert late.execute(sql).fetchall() == [("second",)]
            assert chosen.execute(sql).fetchall() == [("first",)]


def test_a_connection_reaches_no_other_file(lake: Lake, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\n1,2\n")
    lake.write_cell("transcripts", DAY, "a", [turn(1)])
    publish(lake, horizon=DAY)
    with connect(lake.home) as mine:
        assert mine.execute("SELECT count(*) FROM transcripts").fetchall() == [(1,)]
        for statement in (
            f"SELECT * FROM read_csv('{secret}')",
            f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'",
            f"ATTACH '{tmp_path / 'x.duckdb'}'",
            "SET enable_external_access = true",
        ):
            with pytest.raises(duckdb.Error):
                mine.execute(statement)
        mine.execute("CREATE TABLE own AS SELECT text FROM transcripts")
        assert mine.execute("SELECT count(*) FROM own").fetchall() == [(1,)]
    assert not (tmp_path / "out.csv").exists()


def test_times_show_in_the_lakes_zone(lake: Lake) -> None:
    lake.home.lake.mkdir(exist_ok=True)
    lake.home.zone_file.write_text('{"tz": "Asia/Tokyo", "start": "2022-11-01"}')
    lake.write_cell("transcripts", DAY, "a", [turn(0)])
    publish(lake, horizon=DAY)
    with connect(lake.home) as mine:
        shown = mine.execute("SELECT CAST(occurred_at AS VARCHAR) FROM transcripts").fetchall()
    assert shown == [("2026-06-01 21:00:00+09",)]


def test_signs_that_mean_something_to_duckdb_may_stand_in_the_path(tmp_path: Path) -> None:
    lake = Lake(Home(tmp_path / "it's a [home] *x=1").ensure())
    lake.write_cell("transcripts", DAY, "a", [turn(1)])
    publish(lake, horizon=DAY)
    sql = "SELECT project, turn_id FROM transcripts"
    with connect(lake.home) as mine:
        assert mine.execute(sql).fetchall() == [("a", "t0001")]
    with duckdb.connect(str(lake.home.duckdb), read_only=True) as file:
        assert file.execute(sql).fetchall() == [("a", "t0001")]


def test_a_session_that_writes_into_the_file_disturbs_nobody(lake: Lake) -> None:
    lake.write_cell("transcripts", DAY, "a", [turn(1)])
    publish(lake, horizon=DAY)
    owner = start(
        "import duckdb, sys, time\n"
        "c = duckdb.connect(sys.argv[1])\n"
        "c.execute('CREATE TABLE mine AS SELECT * FROM transcripts')\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n",
        str(lake.home.duckdb),
    )
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "ready\n"
        with connect(lake.home) as mine:
            assert mine.execute("SELECT count(*) FROM transcripts").fetchall() == [(1,)]
        lake.write_cell("transcripts", DAY, "a", [turn(1), turn(2)])
        assert publish(lake, horizon=DAY).changed
        with duckdb.connect(str(lake.home.duckdb), read_only=True) as file:
            assert file.execute("SELECT count(*) FROM transcripts").fetchall() == [(2,)]
    finally:
        kill(owner)


def test_nothing_published_names_the_command(home: Home) -> None:
    with pytest.raises(MissingError, match="everest night"):
        connect(home)


def test_readers_never_err_and_never_see_two_nights_mixed(lake: Lake) -> None:
    writer = start(NIGHTS, str(lake.home.root), "0")
    seen: set[str] = set()
    try:
        _until_published(lake.home)
        end = time.monotonic() + 3
        rounds = 0
        while time.monotonic() < end or rounds <= 10 or len(seen) <= 3:
            rounds += 1
            with duckdb.connect(str(lake.home.duckdb), read_only=True) as file:
                (texts, count) = file.execute(SEEN).fetchall()[0]
                assert (len(texts), count) == (1, 6)
                seen.add(texts[0])
            with connect(lake.home) as mine:
                (texts, count) = mine.execute(SEEN).fetchall()[0]
                assert (len(texts), count) == (1, 6)
            folder = generations.resolve(lake.home)
            assert (folder / "lessons.jsonl").read_text().startswith("night ")
        assert writer.poll() is None
    finally:
        kill(writer)


def test_a_reader_that_holds_one_file_open_sees_it_to_the_end(lake: Lake) -> None:
    lake.write_cell("transcripts", DAY, "a", [turn(1, "old")])
    lake.write_cell("lessons", DAY, "a", [lesson(1, "old")])
    publish(lake, horizon=DAY, lessons_now=[lesson(1, "old")])
    with duckdb.connect(str(lake.home.duckdb), read_only=True) as file:
        writer = start(NIGHTS, str(lake.home.root), "0")
        try:
            before = generations.current_name(lake.home)
            end = time.monotonic() + 60
            while generations.current_name(lake.home) == before and time.monotonic() < end:
                time.sleep(0.02)
            for _ in range(20):
                assert file.execute(SEEN).fetchall() == [(["old"], 3)]
        finally:
            kill(writer)
        assert generations.current_name(lake.home) != before


def test_a_night_killed_at_any_instant_leaves_the_last_generation(lake: Lake) -> None:
    chance = random.Random(11)
    for number in range(6):
        writer = start(NIGHTS, str(lake.home.root), str(number * 1000))
        assert writer.stdout is not None
        writer.stdout.readline()
        if number == 0:
            _until_published(lake.home)
        time.sleep(chance.random() * 0.6)
        kill(writer)
        found = generations.current(lake.home)
        assert found is not None
        with connect(lake.home) as mine:
            (texts, count) = mine.execute(SEEN).fetchall()[0]
            assert (len(texts), count) == (1, 6)
        assert (found.path / "lessons.jsonl").read_text() == texts[0]
    lake.write_cell("transcripts", DAY, "a", [turn(1, "after")])
    made = publish(Lake(lake.home), horizon=DAY)
    assert os.readlink(lake.home.current) == made.name
    leftovers = [p for p in lake.home.published.rglob("*") if p.name.startswith(".")]
    assert leftovers == []


def _until_published(home: Home) -> None:
    end = time.monotonic() + 60
    while not home.duckdb.exists() and time.monotonic() < end:
        time.sleep(0.02)
    assert home.duckdb.exists()
