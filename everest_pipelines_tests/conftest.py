"""What every test shares: where the real transcripts are, if they are here at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real transcripts and benchmarks; the test is skipped where it is absent."""
    root = Path(os.environ.get("EVEREST_SHARED") or CHECKOUT.parent / "shared")
    if not (root / "transcripts").is_dir():
        pytest.skip("the shared transcripts are not here")
    return root
