"""``everest setup``: whether lessons are written into the agents' own folders."""

from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path

from everest_pipelines.cli.context import agreed, answer, opened, tell
from everest_pipelines.text.atomic import write_atomic
from everest_pipelines.text.home import Home

_RENDER = re.compile(r"^[ \t]*render[ \t]*=.*$", re.MULTILINE)


def run(arguments: Namespace) -> int:
    """Say what will be written and where, ask, then switch it on; ``--undo`` takes it out again."""
    from everest_pipelines.lake.lock import held
    from everest_pipelines.night import render
    from everest_pipelines.night.workspace import open_workspace

    place, settings = opened()
    memory = settings.claude_dir / "projects" / "<project>" / "memory"
    if arguments.undo:
        question = f"Take our section and everest-*.md files out of {memory}?"
    else:
        tell(
            f"A section of at most 30 lines in {memory / 'MEMORY.md'}, between our markers,",
            "and one everest-<id>.md a lesson beside it. Your own lines are never touched;",
            "what is changed is copied to the home's backups first.",
        )
        question = "Write lessons there from now on?"
    if not agreed(question, yes=arguments.yes):
        return 0
    place.ensure()
    switch(place, on=not arguments.undo)
    _, settings = opened()
    with held(place, "everest setup", on_wait=lambda who: tell(f"Waiting for {who}.")):
        ws = open_workspace(place, settings)
        report = render.take_back(ws) if arguments.undo else render.render(ws)
    if arguments.json:
        from msgspec import to_builtins

        answer({"render": not arguments.undo, "report": to_builtins(report)})
    else:
        state = "off" if arguments.undo else "on"
        print(
            f"Rendering is {state}: {len(report.written)} written, {len(report.removed)} removed."
        )
    for failure in report.failures:
        tell(f"left behind: {failure.where}: {failure.what}")
    return int(bool(report.failures))


def switch(place: Home, *, on: bool) -> Path:
    """Set ``render`` in config.toml and leave every other line as it is; returns the file."""
    line = f"render = {str(on).lower()}"
    text = place.config.read_text(encoding="utf-8") if place.config.exists() else ""
    changed, count = _RENDER.subn(line, text, count=1)
    if not count:  # before the first table header, where it would belong to that table
        changed = f"{line}\n{text}"
    write_atomic(place.config, changed.encode())
    return place.config
