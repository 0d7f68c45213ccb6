from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everest_pipelines.core.transcripts.projects import (
    canonical,
    is_under,
    project_key,
    root_for,
    worktree_parent,
)


@pytest.mark.parametrize(
    ("spelling", "canonical_path"),
    [
        ("/src/app/", "/src/app"),
        ("/src//app/./x/..", "/src/app"),
        ("///src/app", "/src/app"),
        ("d:\\Code\\App\\", "D:/Code/App"),
        ("D:/Code/App", "D:/Code/App"),
        ("\\\\?\\D:\\Code\\App", "D:/Code/App"),
        ("\\\\server\\share\\app", "//server/share/app"),
        ("\\\\?\\UNC\\server\\share", "//server/share"),
        ("D:\\", "D:/"),
        ("/", "/"),
        ("", "(unknown)"),
        ("/src/Cafe\u0301", "/src/Café"),
    ],
)
def test_a_path_has_one_spelling(spelling: str, canonical_path: str) -> None:
    assert canonical(spelling) == canonical_path
    assert canonical(canonical_path) == canonical_path


def test_a_key_is_readable_and_tells_look_alikes_apart() -> None:
    keys = [project_key(path) for path in ("/a/b-c", "/a/b/c", "/a/b.c", "/a/b_c", "/A/b-c")]
    assert keys[0].startswith("a-b-c-")
    assert len(set(keys)) == 5


def test_one_directory_in_two_spellings_is_one_project() -> None:
    assert project_key("d:\\Code\\App") == project_key("D:/Code/App/")
    assert project_key("D:\\Code\\App").startswith("Code-App-")


@given(st.text(max_size=80))
def test_any_path_has_a_key_that_is_safe_as_a_partition_name(path: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,48}-[0-9a-f]{8}", project_key(path))
    assert canonical(canonical(path)) == canonical(path)


@pytest.mark.parametrize(
    ("path", "parent"),
    [
        ("/src/app/.worktrees/fix", "/src/app"),
        ("/src/app/worktrees/fix/lib", "/src/app"),
        ("/src/app/.claude/worktrees/fix", "/src/app"),
        ("D:\\app\\.worktrees\\fix", "D:/app"),
        ("/src/app", None),
        ("/experiments/worktrees", None),
        ("/src/my-worktrees/fix", None),
    ],
)
def test_a_worktree_names_its_repository(path: str, parent: str | None) -> None:
    assert worktree_parent(path) == parent


def test_the_root_is_git_s_else_the_first_directory_else_the_own() -> None:
    def nothing(path: str) -> None:
        return None

    assert root_for("/src/app/lib", "/src/app", nothing) == "/src/app"
    assert root_for("/tmp/x", "/src/app", nothing) == "/tmp/x"
    assert root_for("/src/application", "/src/app", nothing) == "/src/application"
    assert root_for("", "/src/app", nothing) == "/src/app"
    known = {"/src/app/lib": "/src/"}
    assert root_for("/src/app/lib/", "/src/app", known.get) == "/src"


def test_a_directory_lies_under_itself_and_under_its_parents_only() -> None:
    assert is_under("/a/b", "/a") and is_under("/a", "/a/") and is_under("/a", "/")
    assert not is_under("/ab", "/a")
