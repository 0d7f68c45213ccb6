"""``everest setup`` and ``everest uninstall``: hooks, MCP, rendering, the service; and back."""

from __future__ import annotations

import os
import re
import shutil
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from everest_pipelines.cli import installing, services
from everest_pipelines.cli.agents import Agent, Place, agents
from everest_pipelines.cli.context import agreed, answer, is_person, now, opened, tell
from everest_pipelines.cli.installing import Change
from everest_pipelines.cli.services import Service
from everest_pipelines.recall import bundle
from everest_pipelines.text.atomic import write_atomic
from everest_pipelines.text.errors import CallerError, SettingsError
from everest_pipelines.text.home import Home
from everest_pipelines.text.settings import Settings

RENDERED = ("claude",)  # agents into whose folders lessons are written


def run(arguments: Namespace) -> int:
    """Show every change, ask, then write; ``--undo`` takes everything out again."""
    place, settings = opened()
    chosen = _chosen(arguments.agent, agents(place, settings, os.environ), arguments.undo, place)
    if arguments.undo:
        return _undo(arguments, place, settings, chosen)
    wishes = _wishes(arguments, settings)
    changes = installing.plan(one for agent in chosen for one in agent.places)
    units = services.plan(wishes.service, place, os.environ) if wishes.service else None
    _show(changes, units, chosen)
    if wishes.render is not None and "claude" in [agent.name for agent in chosen]:
        _tell_of_rendering(settings, on=wishes.render)
    if wishes.holdout is not None:
        tell(f"holdout = {wishes.holdout:g} in {place.config}")
    if arguments.dry_run:
        return _answer(arguments, changes, written=False)
    if not agreed("Write this?", yes=arguments.yes):
        tell("Nothing was changed.")
        return 0
    place.ensure()
    if any(one.what == "hooks" for agent in chosen for one in agent.places):
        bundle.write(place.root)
    for change in changes:
        installing.write(place, change, day=_day())
    if wishes.holdout is not None:
        set_line(place, "holdout", f"{wishes.holdout:g}")
    left = services.apply(units) if units else []
    code = _answer(arguments, changes, written=True)
    if wishes.render is not None:
        code = max(code, _render(place, on=wishes.render))
    for command in left:
        tell(f"could not be run here: {command}")
    return max(code, int(bool(left)))


class _Wishes:
    """What the person wants; None leaves a thing as it is."""

    def __init__(self, holdout: float | None, render: bool | None, service: Service | None) -> None:
        self.holdout = holdout
        self.render = render
        self.service = service


def _wishes(arguments: Namespace, settings: Settings) -> _Wishes:
    holdout, render = arguments.holdout, arguments.render
    service = Service(arguments.service) if arguments.service else None
    if arguments.yes or arguments.dry_run or not is_person():
        return _Wishes(holdout, True if render is None and arguments.yes else render, service)
    if holdout is None:
        said = _asked(
            "Share of sessions without lessons, to measure what lessons do (0: none)",
            f"{settings.holdout:g}",
        )
        holdout = share(said)
    if render is None:
        render = _asked("Write lessons into Claude Code's memory folders? y/n", "y")[:1] in "yYjJ"
    if service is None:
        tell(
            f"resident: everest up; some {services.RESIDENT_MB} MB and"
            f" {services.RESIDENT_CPU:g} % of a core while nothing happens.",
            f"nightly: one run at {services.HOUR:02d}:{services.MINUTE:02d}, nothing in between.",
        )
        service = _service(_asked("Service: none, resident or nightly", "none"))
    return _Wishes(holdout, render, service)


def _asked(question: str, suggestion: str) -> str:
    print(f"{question} [{suggestion}] ", end="", file=sys.stderr, flush=True)
    return input().strip() or suggestion


def share(text: str) -> float:
    """A number from 0 to 1. Raises CallerError for anything else."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise CallerError(f"{text!r} is no number from 0 to 1.", "everest setup --holdout 0.5")
    return value


def _service(text: str) -> Service:
    try:
        return Service(text.lower())
    except ValueError:
        names = ", ".join(Service)
        raise CallerError(f"{text!r} is no service; there are: {names}.") from None


def _chosen(named: Sequence[str], known: dict[str, Agent], undo: bool, place: Home) -> list[Agent]:
    """The agents asked for; by default those that are installed, for undo those we changed."""
    unknown = [name for name in named if name not in known]
    if unknown:
        raise CallerError(f"{unknown[0]!r} is no agent; there are: {', '.join(known)}.")
    if named:
        return [known[name] for name in named]
    if undo:
        return list(known.values())
    found = [agent for agent in known.values() if agent.folder.is_dir()]
    if not found:
        raise SettingsError(
            "No agent that Everest knows is installed here.",
            f"everest setup --agent {'|'.join(known)}",
        )
    return found


def _show(changes: Sequence[Change], units: services.Plan | None, chosen: Sequence[Agent]) -> None:
    for change in changes:
        print(change.diff() if change.after is not None else f"delete {change.file}")
    held = [agent.words for agent in chosen if agent.name not in {one.agent for one in changes}]
    if held:
        tell(f"Set up already: {', '.join(held)}.")
    if units is not None:
        for path, content in units.write.items():
            print(f"+++ {path}\n{content.decode()}")
        for path in units.remove:
            print(f"delete {path}")
        for command in (*units.before, *units.after):
            print(f"$ {' '.join(command)}")


def _answer(arguments: Namespace, changes: Sequence[Change], *, written: bool) -> int:
    if arguments.json:
        files = [{"agent": one.agent, "file": str(one.file)} for one in changes]
        answer({"changed": files, "written": written})
    elif written:
        print(f"{len(changes)} files changed. Undo: everest setup --undo")
    return 0


def _tell_of_rendering(settings: Settings, *, on: bool) -> None:
    memory = settings.claude_dir / "projects" / "<project>" / "memory"
    if on:
        tell(
            f"A section of at most 30 lines in {memory / 'MEMORY.md'}, between our markers,",
            "and one everest-<id>.md a lesson beside it. Your own lines are never touched;",
            "what is changed is copied to the home's backups first.",
        )
    else:
        tell(f"Nothing is written into {memory}; what was is taken out.")


def _render(place: Home, *, on: bool) -> int:
    """Switch rendering and bring the folders to it."""
    from everest_pipelines.lake.lock import held
    from everest_pipelines.night import render
    from everest_pipelines.night.workspace import open_workspace

    switch(place, on=on)
    _, settings = opened()
    with held(place, "everest setup", on_wait=lambda who: tell(f"Waiting for {who}.")):
        ws = open_workspace(place, settings)
        report = render.render(ws) if on else render.take_back(ws)
    print(
        f"Rendering is {'on' if on else 'off'}: {len(report.written)} written,"
        f" {len(report.removed)} removed."
    )
    for failure in report.failures:
        tell(f"left behind: {failure.where}: {failure.what}")
    return int(bool(report.failures))


def _undo(arguments: Namespace, place: Home, settings: Settings, chosen: Sequence[Agent]) -> int:
    """Take out what set-up put in: of all agents, with the service and what was rendered."""
    changes = installing.plan_removal(place, _places(chosen))
    units = None if arguments.agent else services.plan(Service.NONE, place, os.environ)
    _show(changes, units, ())
    if arguments.dry_run:
        return _answer(arguments, changes, written=False)
    memory = settings.claude_dir / "projects" / "<project>" / "memory"
    question = f"Take this out, and our section and everest-*.md files out of {memory}?"
    if not agreed(question, yes=arguments.yes):
        return 0
    for change in changes:
        installing.write(place, change, day=_day())
    installing.forget(place, [one.file for agent in chosen for one in agent.places])
    left = services.apply(units) if units else []
    code = _answer(arguments, changes, written=True)
    if place.zone_file.exists() and (not arguments.agent or set(RENDERED) & set(arguments.agent)):
        code = max(code, _render(place, on=False))
    for name in ("hooks",) if not arguments.agent or "claude" in arguments.agent else ():
        shutil.rmtree(place.root / name, ignore_errors=True)
    for command in left:
        tell(f"could not be run here: {command}")
    return code


def _places(chosen: Sequence[Agent]) -> list[Place]:
    return [one for agent in chosen for one in agent.places]


def uninstall(arguments: Namespace) -> int:
    """``everest uninstall``: all of ``setup --undo``; with ``--purge`` the home as well."""
    place, settings = opened()
    arguments.agent, arguments.undo = [], True
    if arguments.purge and not arguments.dry_run:
        _refuse_strange_home(place)
        question = f"Delete {place.root}, with all that was learnt? It cannot be taken back."
        if not agreed(question, yes=arguments.yes):
            return 0
    arguments.yes = arguments.yes or arguments.purge
    code = _undo(arguments, place, settings, list(agents(place, settings, os.environ).values()))
    if arguments.dry_run:
        return code
    if code:
        tell("Something was left behind; the home stays until it is mended.")
    elif arguments.purge:
        shutil.rmtree(place.root)
        print(f"{place.root} is deleted.")
    else:
        tell(f"The home stays: {place.root}. Delete it too: everest uninstall --purge")
    tell("Then: pip uninstall everest-pipelines")
    return code


def _refuse_strange_home(place: Home) -> None:
    """A purge deletes a folder: only one that is a home and holds nothing of somebody else."""
    ours = {path.name for path in (place.lake, place.ledger, place.published)}
    if not place.root.is_dir() or not ours & {path.name for path in place.root.iterdir()}:
        raise CallerError(f"{place.root} is no home of Everest.", "everest paths")
    if (place.root / ".git").exists() or place.root in (Path.home(), Path("/")):
        raise CallerError(f"{place.root} holds more than a home.", f"ls -a {place.root}")


def _day() -> str:
    import datetime as dt

    return dt.datetime.fromtimestamp(now() / 1e6, dt.UTC).strftime("%Y-%m-%d")


def switch(place: Home, *, on: bool) -> Path:
    """Set ``render`` in config.toml and leave every other line as it is; returns the file."""
    return set_line(place, "render", str(on).lower())


def set_line(place: Home, name: str, value: str) -> Path:
    """Set one setting in config.toml and leave every other line as it is; returns the file."""
    line = f"{name} = {value}"
    pattern = re.compile(rf"^[ \t]*{name}[ \t]*=.*$", re.MULTILINE)
    text = place.config.read_text(encoding="utf-8") if place.config.exists() else ""
    changed, count = pattern.subn(line, text, count=1)
    if not count:  # before the first table header, where it would belong to that table
        changed = f"{line}\n{text}"
    write_atomic(place.config, changed.encode())
    return place.config
