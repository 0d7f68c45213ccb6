"""Where things are and what is switched: paths, config, on, off, ignore."""

from __future__ import annotations

import os
import shlex
from argparse import Namespace
from contextlib import AbstractContextManager
from pathlib import Path

from everest_pipelines.cli.context import agreed, answer, home, opened, table, tell
from everest_pipelines.text.errors import CallerError, SettingsError
from everest_pipelines.text.home import HOME_VARIABLE, Home
from everest_pipelines.text.settings import SETTINGS, Kind, Settings, load_lenient

_PLACES = (
    "root", "lake", "models", "ledger", "published", "current", "duckdb", "raw", "quarantine",
    "overlay", "config", "installed", "dagster", "backups", "logs", "off_switch", "ignore", "lock",
)  # fmt: skip


def _locations(place: Home, settings: Settings) -> dict[str, tuple[str, str]]:
    """Name -> (path, the variable that moves it)."""
    found = {name: (str(getattr(place, name)), "") for name in _PLACES}
    found["home"] = (found.pop("root")[0], HOME_VARIABLE)
    for setting in SETTINGS:
        if setting.kind is Kind.PATH and setting.in_file:
            path: Path | None = getattr(settings, setting.name)
            found[setting.name] = (str(path) if path else "", setting.variable)
    return found


def paths(arguments: Namespace) -> int:
    """Every location, with the variable that moves it. Works with wrong settings too."""
    place = home()
    settings, _ = load_lenient(os.environ, place.config)
    found = _locations(place, settings)
    if arguments.json:
        answer({name: path for name, (path, _) in found.items()})
    else:
        order = sorted(found, key=lambda name: (name != "home", not found[name][1], name))
        table((name, found[name][0] or "(not set)", found[name][1]) for name in order)
    return 0


def config(arguments: Namespace) -> int:
    """Every setting, its value and where it comes from."""
    place, settings = opened()
    rows: dict[str, dict[str, str | None]] = {
        HOME_VARIABLE.removeprefix("EVEREST_").lower(): {
            "value": str(place.root),
            "from": HOME_VARIABLE if os.environ.get(HOME_VARIABLE) else "default",
        }
    }
    for setting in SETTINGS:
        if setting.in_file:
            value = getattr(settings, setting.name)
            rows[setting.name] = {
                "value": None if value is None else str(value),
                "from": settings.sources.get(setting.name, "default"),
            }
    if arguments.json:
        answer({"file": str(place.config), "settings": rows})
    else:
        table((name, row["value"] or "(not set)", row["from"] or "") for name, row in rows.items())
        print(f"\nThe file is {place.config}.")
    return 0


def off(arguments: Namespace) -> int:
    """Silence every hook and MCP answer, before any other setting is read."""
    from everest_pipelines.recall.switch import turn_off

    changed = turn_off(home().ensure())
    return _switched(arguments, changed, "off", "Hooks are silent. `everest on` ends it.")


def on(arguments: Namespace) -> int:
    """Let hooks speak again. EVEREST_OFF in the environment still rules."""
    from everest_pipelines.recall.switch import is_off, turn_on

    place = home()
    changed = turn_on(place)
    if is_off(place, os.environ):
        raise SettingsError("EVEREST_OFF in the environment still silences.", "unset EVEREST_OFF")
    return _switched(arguments, changed, "on", "Hooks may speak.")


def _switched(arguments: Namespace, changed: bool, state: str, words: str) -> int:
    if arguments.json:
        answer({"state": state, "changed": changed})
    else:
        print(words if changed else f"It was {state} already.")
    return 0


def ignore(arguments: Namespace) -> int:
    """Keep a project out, let one in again (``--undo``), or list those that are kept out."""
    from everest_pipelines.night.projects import ignored_paths

    if arguments.path is not None:
        path = str(Path(arguments.path).expanduser().absolute())
        if arguments.undo:
            return _let_in(arguments, path)
        return _keep_out(arguments, path)
    if arguments.undo:
        raise CallerError("Which project?", "everest ignore --undo PATH")
    kept_out = ignored_paths(opened()[0])
    if arguments.json:
        answer({"ignored": kept_out})
    else:
        for path in kept_out:
            print(path)
        if not kept_out:
            print("No project is kept out.")
    return 0


def _keep_out(arguments: Namespace, path: str) -> int:
    from everest_pipelines.core.transcripts.projects import canonical
    from everest_pipelines.night import ignoring
    from everest_pipelines.night.projects import ignored_paths
    from everest_pipelines.night.workspace import open_workspace

    place, settings = opened()
    with _lock(place):
        ws = open_workspace(place, settings)
        hit = ignoring.would_hit(ws, path)
        counted = f"{_count(len(hit.projects), 'project')}, {_count(hit.sessions, 'session')}"
        counted += f", {_count(hit.turns, 'turn')}"
        if hit.projects or hit.turns:
            tell(f"{path} holds {counted}.")
        elif canonical(path) not in ignored_paths(place):
            tell(f"No project that is known lies at or below {path}; it is kept out all the same.")
        if hit.turns and not agreed(f"Forget {_count(hit.turns, 'turn')}?", yes=arguments.yes):
            tell("Nothing was changed.")
            return 1
        ignoring.ignore(ws, path)
    kept_out = ignored_paths(place)
    if arguments.json:
        found = {"projects": hit.projects, "sessions": hit.sessions, "turns": hit.turns}
        answer({"ignored": kept_out, **found})
        return 0
    for one in kept_out:
        print(one)
    print("Nothing there is read from now on; the next night forgets what was.")
    print(f"Undo      everest ignore --undo {shlex.quote(path)}")
    return 0


def _let_in(arguments: Namespace, path: str) -> int:
    from everest_pipelines.night import ignoring
    from everest_pipelines.night.projects import IGNORE_FILE, ignored_paths
    from everest_pipelines.night.workspace import open_workspace

    place, settings = opened()
    with _lock(place):
        undone = ignoring.unignore(open_workspace(place, settings), path)
    for root in undone.marked:
        tell(f"{Path(root) / IGNORE_FILE} keeps {root} out still.")
    if arguments.json:
        answer({"ignored": ignored_paths(place), "projects": undone.projects})
        return 0
    for one in undone.paths:
        print(f"No longer kept out: {one}")
    if undone.projects:
        print(
            f"The next night reads {_count(len(undone.projects), 'project')} again, as far as the"
            " agents still have the transcripts."
        )
    return 0


def _lock(place: Home) -> AbstractContextManager[object]:
    from everest_pipelines.lake.lock import held

    return held(place.ensure(), "everest ignore", on_wait=lambda who: tell(f"Waiting for {who}."))


def _count(amount: int, word: str) -> str:
    return f"{amount:,} {word}" if amount == 1 else f"{amount:,} {word}s"
