"""Other processes that work on a home, to be watched and killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def start(code: str, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    """Run `code` in a Python of its own; it says when it is ready by printing a line."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), **variables},
        stdout=subprocess.PIPE,
        text=True,
    )


def kill(process: subprocess.Popen[str]) -> None:
    """kill -9, and wait until it is gone."""
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
