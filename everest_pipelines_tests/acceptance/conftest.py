"""What the acceptance tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from everest_pipelines_tests.acceptance.memory import Memory


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    """An empty memory over an empty folder of transcripts."""
    return Memory(tmp_path)
