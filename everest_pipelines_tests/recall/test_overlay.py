from __future__ import annotations

import threading
from pathlib import Path

import pytest

from everest_pipelines.recall.overlay import hidden, hide, read, unhide
from everest_pipelines.recall.search import search
from everest_pipelines.text.errors import DamagedError
from everest_pipelines.text.home import Home
from everest_pipelines_tests.recall.rows import HERE, snapshot


def test_what_is_hidden_is_gone_from_the_very_next_search(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    with snapshot(tmp_path) as opened:
        hit = search(opened, "pnpm", project=HERE, hidden=hidden(home))[0]
        assert hide(home, hit.lesson_id, why="wrong", at=7)
        assert search(opened, "pnpm", project=HERE, hidden=hidden(home)) == []
        assert unhide(home, hit.lesson_id)
        assert search(opened, "pnpm", project=HERE, hidden=hidden(home)) == [hit]


def test_hiding_twice_writes_once(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert hide(home, "a", value_key="v")
    assert not hide(home, "a", value_key="v")
    assert [entry.id for entry in read(home)] == ["a"]
    assert hidden(home) == {"a", "v"}
    assert not unhide(home, "b")
    assert home.overlay.stat().st_mode & 0o777 == 0o600


def test_without_an_overlay_nothing_is_hidden(tmp_path: Path) -> None:
    assert hidden(Home(tmp_path / "absent")) == frozenset()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 9, "hidden": []}', '{"version": 1}'])
def test_a_damaged_overlay_is_an_error_and_is_not_overwritten(tmp_path: Path, text: str) -> None:
    home = Home(tmp_path)
    home.overlay.write_text(text)
    with pytest.raises(DamagedError, match=r"overlay\.json"):
        hidden(home)
    with pytest.raises(DamagedError):
        hide(home, "a")
    assert home.overlay.read_text() == text


def test_many_that_hide_at_once_lose_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path)
    threads = [threading.Thread(target=hide, args=(home, f"lesson{n}")) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert hidden(home) == {f"lesson{n}" for n in range(16)}
