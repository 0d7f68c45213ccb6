from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest

from everest_pipelines.core.render import wire
from everest_pipelines.recall.snapshot import FILE_NAME, build, open_file, open_snapshot
from everest_pipelines.text import bare
from everest_pipelines.text.errors import CallerError, MissingError
from everest_pipelines.text.home import Home
from everest_pipelines_tests.core.render.lessons import make_lesson
from everest_pipelines_tests.recall.rows import HERE, LESSONS, episode, lesson, publish, snapshot


def test_the_same_rows_in_any_order_give_the_same_bytes(tmp_path: Path) -> None:
    lessons, episodes = list(LESSONS), [episode(f"error number {n}") for n in range(30)]
    projects = [("/home/mara/api", HERE), ("/home/mara/api2", HERE)]
    build(tmp_path / "a", lessons=lessons, episodes=episodes, generation="g", projects=projects)
    random.Random(3).shuffle(lessons)
    build(
        tmp_path / "b",
        lessons=iter(lessons),
        episodes=iter(episodes[::-1]),
        generation="g",
        projects=projects[::-1],
    )
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    build(tmp_path / "b", lessons=lessons[1:], episodes=episodes, generation="g")
    assert (tmp_path / "a").read_bytes() != (tmp_path / "b").read_bytes()


def test_the_file_is_private_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    snapshot(tmp_path).close()
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600


def test_it_is_built_from_what_rendering_writes(tmp_path: Path) -> None:
    row = make_lesson("Use tabs.")
    with snapshot(tmp_path, [wire(row)]) as opened:
        found = opened.lesson(row.lesson_id)
    assert found is not None
    assert (found.text, found.last_seen_at) == ("Use tabs.", row.last_seen_at)


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    with snapshot(tmp_path) as opened, pytest.raises(sqlite3.OperationalError, match="readonly"):
        opened.connection.execute("DELETE FROM lessons")


def test_a_folder_out_of_reach_is_not_taken_for_an_empty_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path)
    publish(home, "g1", LESSONS)

    def refused(path: str) -> str:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(bare, "link_target", refused)
    with pytest.raises(MissingError, match="cannot be reached") as told:
        open_snapshot(home)
    assert "published yet" not in told.value.message
    assert told.value.next_command == "everest doctor"


def test_before_the_first_publish_the_error_names_the_next_command(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with pytest.raises(MissingError, match="everest night"):
        open_snapshot(home)
    publish(home, "g1", LESSONS)
    with open_snapshot(home) as opened:
        assert opened.generation == "g1"


def test_a_reader_keeps_its_generation_while_another_is_published(tmp_path: Path) -> None:
    home = Home(tmp_path)
    publish(home, "g1", [lesson("Old rule.")])
    with open_snapshot(home) as old:
        publish(home, "g2", [lesson("New rule.")])
        assert [found.text for found in old.lessons(HERE)] == ["Old rule."]
        with open_snapshot(home) as new:
            assert [found.text for found in new.lessons(HERE)] == ["New rule."]


@pytest.mark.parametrize("content", [None, b"", b"no database", b"SQLite format 3\0" + b"x" * 5000])
def test_a_half_swapped_or_damaged_generation_is_a_clear_error(
    tmp_path: Path, content: bytes | None
) -> None:
    home = Home(tmp_path)
    publish(home, "g1", LESSONS)
    path = home.current / FILE_NAME
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(MissingError, match="everest publish"):
        open_snapshot(home)


def test_a_link_to_nowhere_or_to_itself_is_a_clear_error(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.published.mkdir()
    home.current.symlink_to("gone")
    with pytest.raises(MissingError):
        open_snapshot(home)
    home.current.unlink()
    home.current.symlink_to("current")
    with pytest.raises(MissingError):
        open_snapshot(home)


@pytest.mark.parametrize(("version", "said"), [("99", "newer everest"), ("0", "old version")])
def test_another_version_is_a_clear_error(tmp_path: Path, version: str, said: str) -> None:
    snapshot(tmp_path).close()
    path = tmp_path / FILE_NAME
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE name = 'version'", (version,))
    connection.close()
    with pytest.raises(MissingError, match=said):
        open_file(path)


def test_a_lesson_is_found_by_the_start_of_its_id(tmp_path: Path) -> None:
    lessons = [lesson("one", id="abcd1111"), lesson("two", id="abcd2222")]
    with snapshot(tmp_path, lessons) as opened:
        found = opened.lesson("ABCD1 ")
        assert found is not None
        assert found.text == "one"
        assert opened.lesson("ffff") is None
        assert opened.lesson("%%%%") is None
        with pytest.raises(CallerError, match="several"):
            opened.lesson("abcd")
        with pytest.raises(CallerError, match="too short"):
            opened.lesson("ab")


def test_a_folder_with_odd_signs_in_its_name_is_opened(tmp_path: Path) -> None:
    folder = tmp_path / "a?b=c#d%20 é"
    folder.mkdir()
    with snapshot(folder) as opened:
        assert opened.generation == "g1"
