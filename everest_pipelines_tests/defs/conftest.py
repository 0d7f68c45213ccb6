"""A home of its own after one night on the bundled sample, for all tests of the graph."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pytest

import everest_pipelines
from everest_pipelines.defs import launch
from everest_pipelines.text.home import Home
from everest_pipelines.text.settings import Settings, load

SAMPLE = Path(everest_pipelines.__file__).parent / "sample" / "projects"
LAST_DAY = "2026-05-11"


@dataclass
class Memory:
    """A home with the sample's transcripts beside it."""

    home: Home
    settings: Settings
    environ: dict[str, str]
    first: launch.Night | None = None

    def night(self, **more) -> launch.Night:
        return launch.run_night(self.home, self.settings, through=LAST_DAY, **more)


def make_memory(root: Path) -> Memory:
    shutil.copytree(SAMPLE, root / "claude" / "projects")
    environ = {
        "HOME": str(root),
        "PATH": os.environ["PATH"],
        "EVEREST_HOME": str(root / "home"),
        "EVEREST_TZ": "UTC",
        **{
            f"EVEREST_{agent.upper()}_DIR": str(root / agent)
            for agent in ("claude", "codex", "copilot", "gemini")
        },
    }
    home = Home.resolve(environ)
    return Memory(home, load(environ, home.config), environ)


@pytest.fixture(scope="session", autouse=True)
def nobodys_home(tmp_path_factory) -> Iterator[None]:
    """Loading the definitions opens the home in force: not the checkout's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVEREST_HOME", str(tmp_path_factory.mktemp("nobody")))
        yield


@pytest.fixture(scope="session")
def memory(tmp_path_factory) -> Memory:
    """One night was run; tests read it and may run further nights."""
    made = make_memory(tmp_path_factory.mktemp("memory"))
    made.first = made.night()
    return made


@pytest.fixture
def fresh(tmp_path) -> Memory:
    """No night was run yet."""
    return make_memory(tmp_path)


@pytest.fixture
def instance(memory) -> Iterator[dg.DagsterInstance]:
    with launch.instance_of(memory.home) as opened:
        yield opened
