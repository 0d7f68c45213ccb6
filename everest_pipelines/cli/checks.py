"""What ``everest doctor`` looks at: one function a matter, each giving sentences."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from everest_pipelines.text.errors import EverestError
from everest_pipelines.text.home import Home, find_checkout
from everest_pipelines.text.settings import Settings


@dataclass(frozen=True)
class Case:
    """What is examined."""

    home: Home
    settings: Settings
    problems: tuple[str, ...]
    environ: Mapping[str, str]
    platform: str


@dataclass(frozen=True)
class Finding:
    """One sentence, and the command that mends what it says.

    A note is neither good nor wrong: something to know, with nothing to mend.
    """

    good: bool
    sentence: str
    command: str = ""
    note: bool = False

    def body(self) -> dict[str, Any]:
        """As it goes out."""
        return asdict(self)


def platform(case: Case) -> Iterator[Finding]:
    if case.platform == "win32":
        yield Finding(False, "Native Windows is not supported.", "run it inside WSL")


def settings(case: Case) -> Iterator[Finding]:
    for problem in case.problems:
        yield Finding(False, problem, "everest config")
    if not case.problems:
        yield Finding(True, "Every setting is known and fits.")


def modes(case: Case) -> Iterator[Finding]:
    if not case.home.root.exists():
        yield Finding(
            True, f"The home {case.home.root} is not there yet; the first night makes it."
        )
        return
    mode = stat.S_IMODE(case.home.root.stat().st_mode)
    if mode & 0o077 and os.name != "nt":
        yield Finding(
            False,
            f"Others may look into {case.home.root} ({mode:o}).",
            f"chmod 700 {case.home.root}",
        )
    else:
        yield Finding(True, f"The home {case.home.root} is yours alone.")


def transcripts(case: Case) -> Iterator[Finding]:
    folder = case.settings.claude_dir / "projects"
    if next(folder.glob("**/*.jsonl"), None) is None:
        yield Finding(
            False,
            f"There are no transcripts in {folder}.",
            "set EVEREST_CLAUDE_DIR, or use an agent",
        )
    else:
        yield Finding(True, f"Transcripts are read from {folder}.")


def zone(case: Case) -> Iterator[Finding]:
    if not case.home.zone_file.exists():
        return
    made: dict[str, str] = json.loads(case.home.zone_file.read_text(encoding="utf-8"))
    for name in ("tz", "start"):
        wanted = getattr(case.settings, name)
        if case.settings.given(name) and wanted != made[name]:
            yield Finding(
                False,
                f"{name} is set to {wanted}, but the lake was made with {made[name]}.",
                "everest rezone",
            )
            return
    yield Finding(True, f"Days are counted in {made['tz']} from {made['start']}.")


def instance(case: Case) -> Iterator[Finding]:
    checkout = find_checkout()
    ours = checkout or case.home.root
    set_ = case.environ.get("DAGSTER_HOME")
    if set_ and Path(set_).absolute() != ours:
        yield Finding(
            False, f"DAGSTER_HOME is {set_}; our instance is that of {ours}.", "unset DAGSTER_HOME"
        )
    if checkout is not None and not (checkout / ".env").exists():
        yield Finding(False, "Plain `dagster dev` would not find this home.", "make setup")


def hooks(case: Case) -> Iterator[Finding]:
    from everest_pipelines.recall.switch import is_off

    if is_off(case.home, case.environ):
        yield Finding(True, "Hooks are silent (everest off).")
    state = "on" if case.settings.render else "off: agents read nothing by themselves"
    yield Finding(True, f"Rendering into the agents' folders is {state}.")


def agents(case: Case) -> Iterator[Finding]:
    """What set-up wrote, in each agent's settings: whole, once, and of today."""
    from everest_pipelines.cli import installing
    from everest_pipelines.cli.agents import agents as all_agents

    for agent in all_agents(case.home, case.settings, case.environ).values():
        mend = f"everest setup --agent {agent.name}"
        try:
            held = installing.held(agent.places)
            behind = installing.plan(agent.places) if held or agent.folder.is_dir() else []
        except EverestError as error:
            yield Finding(False, error.message, error.next_command)
            continue
        if not held:
            if agent.folder.is_dir():
                yield Finding(False, f"{agent.words} is not set up.", mend, note=True)
            continue
        places = [place for place, _ in held]
        if len(places) > len({place.key for place in places}):
            yield Finding(False, f"{agent.words} has an entry of ours twice.", mend)
        elif behind:
            yield Finding(False, f"{agent.words} is set up in part, or by another version.", mend)
        else:
            yield Finding(True, f"{agent.words} is set up.")
        yield from _programs(agent.words, [value for _, value in held], mend)


def _programs(words: str, values: list[Any], mend: str) -> Iterator[Finding]:
    """Whether what an agent would start is there."""
    import shlex

    for value in values:
        commands = [value["command"]] if "args" in value else []
        for hook in value.get("hooks", ()):
            commands += [
                word for word in shlex.split(hook["command"].replace(";", " ; ")) if "/" in word
            ]
        for command in dict.fromkeys(commands):
            if not Path(command).exists():
                yield Finding(False, f"{words} starts {command}, which is not there.", mend)
                return


def hook(case: Case) -> Iterator[Finding]:
    """Whether the compiled hook in the home is made of this package."""
    from everest_pipelines.recall import bundle

    if (case.home.root / "hooks" / bundle.ENTRY).exists():
        if bundle.is_current(case.home.root):
            yield Finding(True, "The hook is of this version.")
        else:
            yield Finding(
                False,
                "The hook is of another version or interpreter.",
                "everest setup --agent claude",
            )


def service(case: Case) -> Iterator[Finding]:
    from everest_pipelines.cli.services import installed

    for path, program in installed(case.environ, case.platform).items():
        if Path(program).exists():
            yield Finding(True, f"The service {path.name} is installed.")
        else:
            yield Finding(
                False,
                f"{path} starts {program}, which is not there.",
                "everest setup --service nightly",
            )


def overlay(case: Case) -> Iterator[Finding]:
    from everest_pipelines.recall.overlay import read

    try:
        read(case.home)
    except EverestError as error:
        yield Finding(False, error.message, f"mv {case.home.overlay} {case.home.overlay}.bad")


def chain(case: Case) -> Iterator[Finding]:
    from everest_pipelines.text.ledger import verify

    if not case.home.ledger.exists():
        return
    problems = verify(case.home)
    for problem in problems:
        yield Finding(False, f"The ledger: {problem}", "restore the ledger from a backup")
    if not problems:
        yield Finding(True, "The ledger's chain holds.")


def folders(case: Case) -> Iterator[Finding]:
    """Agent folders that several projects map to get no rendering."""
    if not case.home.zone_file.exists():
        return
    from everest_pipelines.lake.lake import Lake

    owners: dict[str, set[str]] = {}
    for row in Lake(case.home).read_table("projects"):
        for folder in row.folders:
            if not row.ignored:
                owners.setdefault(folder, set()).add(row.project)
    for folder, keys in sorted(owners.items()):
        if len(keys) > 1:
            names = ", ".join(sorted(keys))
            yield Finding(
                False,
                f"{folder} belongs to {len(keys)} projects ({names}): nothing is rendered there.",
                note=True,
            )


CHECKS: tuple[Callable[[Case], Iterator[Finding]], ...] = (
    platform, settings, modes, transcripts, zone, instance, hooks, agents, hook, service, overlay,
    chain, folders,
)  # fmt: skip
