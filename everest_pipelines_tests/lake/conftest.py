"""A home of its own for every test of the lake."""

from __future__ import annotations

from pathlib import Path

import pytest

from everest_pipelines.lake.lake import Lake
from everest_pipelines.text.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").ensure()


@pytest.fixture
def lake(home: Home) -> Lake:
    return Lake(home)
