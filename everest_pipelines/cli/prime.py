"""``everest prime``: what an installed hook does, by hand."""

from __future__ import annotations

import os
import sys
from argparse import Namespace

from everest_pipelines.cli.context import home, now


def run(arguments: Namespace) -> int:
    """Answer the agent's event on stdin; always 0, whatever happens."""
    from everest_pipelines.recall.prime import answer

    said = answer(sys.stdin.buffer.read(), os.environ, str(home().root), now=now())
    sys.stdout.buffer.write(said)
    sys.stdout.buffer.flush()
    return 0
