"""Who may import what: the contracts, and what a quick command really loads."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import everest_pipelines

PACKAGE = Path(everest_pipelines.__file__).parent


def imported(path: Path) -> set[str]:
    """Top-level names of everything that a file imports, at its top or inside a function."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
    return found


def files(room: str) -> list[Path]:
    return sorted((PACKAGE / room).rglob("*.py"))


def roots(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imported(path)} - {"__future__"}


@pytest.mark.parametrize(
    ("room", "allowed"),
    [
        ("text", ("everest_pipelines.text",)),
        ("recall", ("everest_pipelines.recall", "everest_pipelines.text")),
    ],
)
def test_thin_rooms_import_the_standard_library_and_their_own(
    room: str, allowed: tuple[str, ...]
) -> None:
    assert files(room)
    for path in files(room):
        for name in imported(path):
            if name.startswith("everest_pipelines"):
                assert name.startswith(allowed), f"{path.name} imports {name}"
            else:
                assert name.split(".")[0] in sys.stdlib_module_names, f"{path.name}: {name}"


def test_dagster_stands_only_in_defs_and_in_what_starts_it() -> None:
    users = {
        path.relative_to(PACKAGE).parts[0]
        for path in PACKAGE.rglob("*.py")
        if any(name.startswith("dagster") for name in roots(path))
    }
    assert "defs" in users
    assert users <= {"defs", "definitions.py"}


def loaded(code: str) -> set[str]:
    """Top-level modules that are loaded after ``code`` ran in a fresh interpreter."""
    script = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def run(*arguments: str) -> str:
    return f"from everest_pipelines.cli.main import main\nmain({list(arguments)!r})"


def test_recall_loads_nothing_but_the_standard_library_text_and_recall(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVEREST_HOME", str(tmp_path))
    before = loaded("pass")
    modules = loaded(run("recall", "anything")) - before
    ours = {name for name in modules if name.startswith("everest_pipelines.")}
    allowed = ("cli", "text", "recall")
    assert {name.split(".")[1] for name in ours} == set(allowed)
    others = {name.split(".")[0] for name in modules} - set(sys.stdlib_module_names)
    assert others == {"everest_pipelines"}


@pytest.mark.parametrize("command", ["paths", "config", "status", "doctor", "lessons"])
def test_a_command_that_looks_loads_no_dagster(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVEREST_HOME", str(tmp_path))
    monkeypatch.setenv("EVEREST_CLAUDE_DIR", str(tmp_path / "claude"))
    assert not {name for name in loaded(run(command)) if name.split(".")[0] == "dagster"}
    assert "dagster" in loaded("import dagster")


def test_no_file_is_longer_than_a_room_can_hold() -> None:
    long = {
        str(path.relative_to(PACKAGE)): count
        for path in PACKAGE.rglob("*.py")
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > 500
    }
    assert long == {}
