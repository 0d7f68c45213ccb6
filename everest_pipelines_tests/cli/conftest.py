"""A published memory, made once from the bundled sample by the stages themselves."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from everest_pipelines.cli import sample
from everest_pipelines.cli.main import main
from everest_pipelines.text.home import Home
from everest_pipelines.text.settings import load


@dataclass(frozen=True)
class Made:
    """A home with a published generation, and the environment that it was made in."""

    home: Home
    environ: dict[str, str]


def environment(root: Path) -> dict[str, str]:
    """Every agent's folder below ``root``; nothing of the machine's owner is read."""
    agents = ("CLAUDE", "CODEX", "COPILOT", "GEMINI")
    return {f"EVEREST_{name}_DIR": str(root / name.lower()) for name in agents} | {
        "EVEREST_HOME": str(root / "home"),
        "EVEREST_TZ": "UTC",
        "HOME": str(root),
        "XDG_CONFIG_HOME": str(root / ".config"),
    }


@pytest.fixture(scope="session")
def _published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from everest_pipelines.cli.work import refold
    from everest_pipelines.lake.lock import held
    from everest_pipelines.night.ingest import ingest
    from everest_pipelines.night.workspace import open_workspace

    root = tmp_path_factory.mktemp("published")
    shutil.copytree(sample.FOLDER, root / "claude" / "projects")
    home = Home(root / "home")
    settings = load(environment(root), home.config)
    with held(home.ensure(), "the tests"):
        ws = open_workspace(home, settings)
        results = [ingest(ws), *refold(ws, sample.LAST_DAY)]
    assert [failure for result in results for failure in result.failures] == []
    return root


def _enter(root: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    for variable in list(os.environ):
        if variable.startswith("EVEREST_") or variable == "DAGSTER_HOME":
            monkeypatch.delenv(variable)
    environ = environment(root)
    for variable, value in environ.items():
        monkeypatch.setenv(variable, value)
    return Made(Home(root / "home"), environ)


@pytest.fixture
def published(_published: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """The published sample, for reading only."""
    return _enter(_published, monkeypatch)


@pytest.fixture
def copied(_published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """A copy of the published sample that a test may change."""
    root = tmp_path / "copy"
    shutil.copytree(_published, root, symlinks=True)
    return _enter(root, monkeypatch)


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """No home yet and no transcripts."""
    return _enter(tmp_path, monkeypatch)


Everest = Callable[..., tuple[int, str, str]]


@pytest.fixture
def everest(capsys: pytest.CaptureFixture[str]) -> Iterator[Everest]:
    """Runs a command in this process: (exit code, stdout, stderr)."""

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    yield run
