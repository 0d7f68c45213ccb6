"""``everest serve``: the memory as an MCP server, started by an agent."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from pathlib import Path

from everest_pipelines.cli.context import home, now, opened


def run(arguments: Namespace) -> int:
    """Answer on stdin and stdout until the agent closes its end."""
    from importlib.metadata import version

    from everest_pipelines.recall.answers import Answers
    from everest_pipelines.recall.mcp import Server, serve

    place, _ = opened()  # a wrong setting is said at the start, not ignored
    writes = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing else may write between messages
    folder = str(Path(arguments.folder or ".").expanduser().absolute())
    answers = Answers(place, os.environ, folder, project_of_folder=_project, now=now)
    serve(
        Server(answers, version=version("everest-pipelines")),
        reads=sys.stdin.fileno(),
        writes=writes,
    )
    return 0


def _project(folder: str) -> str:
    from everest_pipelines.cli.memory import project_at

    return project_at(home(), Path(folder or "."))
