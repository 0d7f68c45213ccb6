from __future__ import annotations

from pathlib import Path

import pytest

from everest_pipelines.recall.project import canonical, project_of
from everest_pipelines_tests.recall.rows import snapshot


def test_the_longest_known_path_wins(tmp_path: Path) -> None:
    projects = [
        ("/srv/api", "api-1"),
        ("/srv/api/plugins/", "plugins-2"),
        ("C:\\code\\web", "web-3"),
    ]
    with snapshot(tmp_path, projects=projects) as opened:
        assert project_of(opened, "/srv/api") == "api-1"
        assert project_of(opened, Path("/srv/api/src/deep")) == "api-1"
        assert project_of(opened, "/srv/api/plugins/x") == "plugins-2"
        assert project_of(opened, "/srv/api-two") is None
        assert project_of(opened, "/srv") is None
        assert project_of(opened, "c:/code/web/src") == "web-3"
        assert project_of(opened, "D:\\code\\web") is None


def test_a_repository_of_its_own_is_not_part_of_the_folder_around_it(tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    (outer / "inner" / ".git").mkdir(parents=True)
    (outer / "plain" / "src").mkdir(parents=True)
    with snapshot(tmp_path, projects=[(str(outer), "outer-1")]) as opened:
        assert project_of(opened, outer / "plain" / "src") == "outer-1"
        assert project_of(opened, outer / "inner") is None


def test_the_home_folder_is_a_project_only_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/mara")
    with snapshot(tmp_path, projects=[("/home/mara", "mara-1"), ("/", "root-2")]) as opened:
        assert project_of(opened, "/home/mara") == "mara-1"
        assert project_of(opened, "/home/mara/notes") is None
        assert project_of(opened, "/") == "root-2"


def test_a_symbolic_link_leads_to_the_project(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with snapshot(tmp_path, projects=[(str((tmp_path / "real").resolve()), "real-1")]) as opened:
        assert project_of(opened, tmp_path / "link") == "real-1"


def test_one_form_of_a_path() -> None:
    assert canonical("C:\\Users\\Mara\\") == "c:/Users/Mara"
    assert canonical("/a/b/") == "/a/b"
    assert canonical("/") == "/"
    assert canonical("/odd\\name") == "/odd\\name"
