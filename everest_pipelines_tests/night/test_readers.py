"""Readers never wait for a writer and never see parts of two nights."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import shutil
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import duckdb

from everest_pipelines.lake import generations, lock, views
from everest_pipelines.night.growth import size_of
from everest_pipelines.night.status import status
from everest_pipelines.text.home import Home
from everest_pipelines_tests.night.homes import HORIZON, copy_some, grow, night, rows, workspace
from everest_pipelines_tests.night.one_night import Night
from everest_pipelines_tests.night.whole import assert_whole, counted, counts_of, lines

FOLDERS = ("D--oh-my-posh",)
SHARES = (0.15, 0.3, 0.45, 0.6, 0.8, 1.0)  # of each transcript, one night after the other
Seen = dict[str, set[str]]  # door -> what was seen through it


def _in_memory(home: Home) -> tuple[str, str]:
    """One generation, resolved once, through the views and its lessons.jsonl."""
    folder = generations.resolve(home)
    expected = counts_of(generations.manifest_of(folder))
    with views.connect(home, folder.name) as connection:
        found = counted(connection, list(expected))
    assert found == expected
    assert len(lines(folder)) == found["lessons_now"]
    return "in memory", json.dumps(found, sort_keys=True)


def _by_name(home: Home) -> tuple[str, str]:
    """The database of the generation in force, as ``duckdb -readonly`` opens it."""
    with duckdb.connect(str(home.duckdb), read_only=True) as connection:
        tables = sorted(name for (name,) in connection.execute("SHOW TABLES").fetchall())
        found = counted(connection, [name for name in tables if name != "mutations"])
        rows = connection.execute("SELECT count(*) FROM mutations").fetchone()
        assert rows == (found["ledger"] + found["lessons"],)
    return "by name", json.dumps(found, sort_keys=True)


def _jsonl(home: Home) -> tuple[str, str]:
    """The file that other tools read, by its lasting name."""
    content = (home.current / "lessons.jsonl").read_bytes()
    assert all(json.loads(line)["id"] for line in content.splitlines())
    return "jsonl", hashlib.sha256(content).hexdigest()


def _told(home: Home, claude: Path) -> tuple[str, str]:
    """``everest status`` while a night is at work."""
    return "status", status(workspace(home.root, claude)).generation


def _hammer(told: Connection, root: Path, claude: Path) -> None:
    home = Home(root)
    seen: Seen = {}
    errors: list[str] = []
    looks = 0
    doors: tuple[Callable[[], tuple[str, str]], ...] = (
        lambda: _in_memory(home),
        lambda: _by_name(home),
        lambda: _jsonl(home),
        lambda: _told(home, claude),
    )
    told.send("ready")
    while not told.poll():
        for door in doors:
            looks += 1
            try:
                name, found = door()
            except Exception as error:  # whatever a reader meets is the finding
                errors.append(repr(error))
            else:
                seen.setdefault(name, set()).add(found)
    told.send((looks, seen, errors))


def test_readers_see_whole_generations_while_nights_are_at_work(
    shared: Path, tmp_path: Path
) -> None:
    whole = copy_some(shared / "transcripts" / "claude", tmp_path / "whole", FOLDERS)
    claude, home = tmp_path / "claude", Home(tmp_path / "home")
    grow(whole, claude, SHARES[0])
    night(home.root, claude)
    here, there = multiprocessing.get_context("forkserver").Pipe()
    reader = multiprocessing.get_context("forkserver").Process(
        target=_hammer, args=(there, home.root, claude)
    )
    reader.start()
    assert here.recv() == "ready"
    for share in SHARES[1:]:
        grow(whole, claude, share)
        Night(home.root, claude).changed()
    here.send("stop")
    looks, seen, errors = here.recv()
    reader.join()
    assert not errors
    assert looks >= 4 * len(SHARES)
    _assert_each_was_published(home, seen)


def _assert_each_was_published(home: Home, seen: Seen) -> None:
    names = generations.names(home)
    manifests = [generations.manifest_of(home.published / name) for name in names]
    counts = {json.dumps(counts_of(manifest), sort_keys=True) for manifest in manifests}
    assert len(counts) == len(SHARES), "the control: every night published something else"
    assert seen["in memory"] <= counts
    assert seen["by name"] <= counts
    assert seen["jsonl"] <= {manifest.extra["lessons.jsonl"] for manifest in manifests}
    assert seen["status"] <= set(names)
    assert len(seen["by name"]) > 1, "the control: the reader saw the nights go by"


def test_of_two_nights_at_once_one_works_and_the_other_waits(shared: Path, tmp_path: Path) -> None:
    claude = copy_some(shared / "transcripts" / "claude", tmp_path / "claude", FOLDERS)
    home = tmp_path / "home"
    nights = [Night(home, claude), Night(home, claude)]
    holders: set[Any] = set()
    while all(one.is_alive() for one in nights):
        if (holder := lock.holder(Home(home))) is not None and holder.pid:
            holders.add((holder.pid, holder.who))
        time.sleep(0.005)
    changed = sorted(one.changed() for one in nights)
    assert changed[0] == 0
    assert changed[1] > 0
    assert len(holders) <= 2
    assert {who for _, who in holders} == {"night"}
    assert lock.holder(Home(home)) is None
    assert rows(workspace(home, claude)) == rows(night(tmp_path / "control", claude, HORIZON))
    assert_whole(Home(home))


def test_the_size_of_a_home_is_told_while_folders_come_and_go(tmp_path: Path) -> None:
    (tmp_path / "lasting").write_bytes(b"four")
    stop = threading.Event()

    def writer() -> None:
        while not stop.is_set():
            folder = tmp_path / ".building.1" / "render" / "project"
            folder.mkdir(parents=True)
            (folder / "MEMORY.md").write_bytes(b"x")
            shutil.rmtree(tmp_path / ".building.1")

    thread = threading.Thread(target=writer)
    thread.start()
    try:
        sizes = {size_of(tmp_path) for _ in range(2000)}
    finally:
        stop.set()
        thread.join()
    assert sizes <= {4, 5}
    assert 4 in sizes, "the control: what lasts is counted"
