"""What is said and asked before a large first import."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everest_pipelines.cli import first_import as first
from everest_pipelines.text.errors import CallerError


def transcript(root: Path, folder: str, name: str, cwd: str) -> tuple[str, int]:
    path = root / "projects" / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"type": "user", "cwd": cwd}) + "\n")
    return str(path), path.stat().st_size


@pytest.fixture
def found(tmp_path: Path) -> list[first.Found]:
    return first.grouped(
        [
            transcript(tmp_path, "-a-api", "1.jsonl", "/a/api"),
            transcript(tmp_path, "-a-api", "2.jsonl", "/a/api"),
            transcript(tmp_path, "-a-api", "1/subagents/agent-1.jsonl", "/a/api"),
            transcript(tmp_path, "-a-web", "3.jsonl", "/a/web"),
            transcript(tmp_path, "D--x", "4.jsonl", "D:\\x"),
        ]
    )


def test_files_are_grouped_by_the_directory_of_their_sessions(found: list[first.Found]) -> None:
    assert {one.name: len(one.files) for one in found} == {"/a/api": 3, "/a/web": 1, "D:\\x": 1}
    assert found[0].name == "/a/api"


def test_only_a_large_import_asks() -> None:
    assert not first.is_large(500, 200_000_000)
    assert first.is_large(501, 1)
    assert first.is_large(1, 200_000_001)


def test_projects_are_chosen_by_path_by_its_end_or_by_number(found: list[first.Found]) -> None:
    for words in (
        "/a/web",
        "web",
        str(found.index(next(f for f in found if f.name == "/a/web")) + 1),
    ):
        chosen, others = first.named(found, words)
        assert [one.name for one in chosen] == ["/a/web"]
        assert len(others) == 2


def test_a_project_that_is_not_there_is_an_error(found: list[first.Found]) -> None:
    with pytest.raises(CallerError, match="nowhere"):
        first.named(found, "web,nowhere")


@pytest.mark.parametrize(
    ("reply", "read"), [("y", 3), ("YES", 3), ("1,2", 2), ("", None), ("n", None)]
)
def test_the_answer_decides_what_is_read(
    found: list[first.Found], reply: str, read: int | None
) -> None:
    answer = first.chosen(found, ask=lambda _: reply)
    assert (None if answer is None else len(answer[0])) == read


@given(st.integers(0, 10**13))
def test_an_estimate_is_always_said(count: int) -> None:
    assert first.duration(count).split()[1] in ("seconds", "minutes")
