"""The service that keeps the memory up to date: resident, or a timer for the nights.

Units of systemd for the person, agents of launchd for the person; nothing needs an administrator.
"""

from __future__ import annotations

import os
import plistlib
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from everest_pipelines.text.atomic import write_atomic
from everest_pipelines.text.home import HOME_VARIABLE, Home

# Of `everest up` on an empty home, webserver, daemon and code server together: PSS of its six
# processes, and their CPU time over five minutes in which nothing happened.
RESIDENT_MB = 560
RESIDENT_CPU = 4  # percent of one core
HOUR, MINUTE = 4, 10  # of the night, in the machine's zone: the day has closed in the lake's too
_SYSTEMD = ("everest.service", "everest-night.service", "everest-night.timer")
_LAUNCHD = ("dev.everest.up.plist", "dev.everest.night.plist")


class Service(StrEnum):
    """What runs by itself."""

    NONE = "none"
    RESIDENT = "resident"
    NIGHTLY = "nightly"


@dataclass(frozen=True)
class Plan:
    """Files to write, files of ours to remove, and the commands that make the system notice."""

    write: dict[Path, bytes]
    remove: tuple[Path, ...]
    before: tuple[tuple[str, ...], ...]  # run before files are removed
    after: tuple[tuple[str, ...], ...]


def folder(environ: Mapping[str, str], platform: str) -> Path:
    """Where the person's units lie."""
    person = Path(environ.get("HOME") or Path("~").expanduser())
    if platform == "darwin":
        return person / "Library" / "LaunchAgents"
    return Path(environ.get("XDG_CONFIG_HOME") or person / ".config") / "systemd" / "user"


def command() -> list[str]:
    """How a unit starts us: by full path."""
    script = Path(sys.executable).with_name("everest")
    if script.exists():
        return [str(script)]
    return [sys.executable, "-m", "everest_pipelines.cli.main"]


def plan(
    service: Service, home: Home, environ: Mapping[str, str], platform: str = sys.platform
) -> Plan:
    """Everything to do so that just this service runs."""
    where = folder(environ, platform)
    files = _launchd(service, home) if platform == "darwin" else _systemd(service, home)
    write = {where / name: content for name, content in files.items()}
    names = _LAUNCHD if platform == "darwin" else _SYSTEMD
    remove = tuple(
        where / name for name in names if where / name not in write and (where / name).exists()
    )
    if platform == "darwin":
        user = f"gui/{os.getuid()}"
        present = tuple(where / name for name in names if (where / name).exists())
        return Plan(
            write,
            remove,
            tuple(("launchctl", "bootout", user, str(path)) for path in present),
            tuple(("launchctl", "bootstrap", user, str(path)) for path in write),
        )
    gone = tuple(path.name for path in remove if path.name != "everest-night.service")
    start = tuple(path.name for path in write if path.name != "everest-night.service")
    reload = (("systemctl", "--user", "daemon-reload"),) if write or remove else ()
    return Plan(
        write,
        remove,
        ((("systemctl", "--user", "disable", "--now", *gone),) if gone else ()),
        (*reload, *((("systemctl", "--user", "enable", "--now", *start),) if start else ())),
    )


def apply(plan: Plan) -> list[str]:
    """Do it; returns the commands that could not be run here, for the person to run."""
    failed = [" ".join(command) for command in plan.before if not _run(command)]
    for path in plan.remove:
        path.unlink(missing_ok=True)
    for path, content in plan.write.items():
        if not path.exists() or path.read_bytes() != content:
            write_atomic(path, content)
    failed = [] if not plan.write else [one for one in failed if "bootout" not in one]
    return failed + [" ".join(command) for command in plan.after if not _run(command)]


def _run(command: tuple[str, ...]) -> bool:
    if shutil.which(command[0]) is None:
        return False
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    return done.returncode == 0


def installed(environ: Mapping[str, str], platform: str = sys.platform) -> dict[Path, str]:
    """Unit files of ours that are there, each with the program that it starts."""
    where = folder(environ, platform)
    found: dict[Path, str] = {}
    for name in (*_SYSTEMD, *_LAUNCHD):
        path = where / name
        if not path.exists():
            continue
        if path.suffix == ".plist":
            found[path] = str(plistlib.loads(path.read_bytes())["ProgramArguments"][0])
        elif path.suffix == ".service":
            found[path] = _program(path.read_text(encoding="utf-8"))
    return found


def _program(unit: str) -> str:
    line = next((one for one in unit.splitlines() if one.startswith("ExecStart=")), "")
    word = line.removeprefix("ExecStart=")
    if word.startswith('"'):
        return word[1:].partition('"')[0].replace("%%", "%")
    return word.partition(" ")[0].replace("%%", "%")


def _systemd(service: Service, home: Home) -> dict[str, bytes]:
    up = _unit("Everest: the memory of coding agents", home, ["up"], "simple", "default.target")
    night = _unit("Everest: one night", home, ["night", "--yes"], "oneshot", "")
    timer = (
        "[Unit]\nDescription=Everest: every night\n\n"
        f"[Timer]\nOnCalendar=*-*-* {HOUR:02d}:{MINUTE:02d}:00\nPersistent=true\n"
        "RandomizedDelaySec=600\n\n[Install]\nWantedBy=timers.target\n"
    )
    if service is Service.RESIDENT:
        return {"everest.service": up.encode()}
    if service is Service.NIGHTLY:
        return {"everest-night.service": night.encode(), "everest-night.timer": timer.encode()}
    return {}


def _unit(words: str, home: Home, arguments: list[str], kind: str, wanted: str) -> str:
    started = " ".join(_quoted(one) for one in [*command(), *arguments])
    restart = "Restart=on-failure\nRestartSec=60\n" if kind == "simple" else ""
    install = f"\n[Install]\nWantedBy={wanted}\n" if wanted else ""
    return (
        f"[Unit]\nDescription={words}\n\n[Service]\nType={kind}\nExecStart={started}\n"
        f"Environment={_quoted(f'{HOME_VARIABLE}={home.root}')}\n{restart}"
        f"UMask=0077\nNice=10\n{install}"
    )


def _quoted(text: str) -> str:
    """A word of a unit file: % begins a specifier, a backslash an escape (systemd.syntax)."""
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{text}"' if not text or set(text) & set(" \t'\"\\;") else text


def _launchd(service: Service, home: Home) -> dict[str, bytes]:
    if service is Service.NONE:
        return {}
    name = "up" if service is Service.RESIDENT else "night"
    arguments = ["up"] if service is Service.RESIDENT else ["night", "--yes"]
    logs = str(home.logs / f"{name}.log")
    body: dict[str, Any] = {
        "Label": f"dev.everest.{name}",
        "ProgramArguments": [*command(), *arguments],
        "EnvironmentVariables": {HOME_VARIABLE: str(home.root)},
        "ProcessType": "Background",
        "StandardOutPath": logs,
        "StandardErrorPath": logs,
        "Umask": 0o077,
    }
    if service is Service.RESIDENT:
        body |= {"RunAtLoad": True, "KeepAlive": {"SuccessfulExit": False}}
    else:
        body |= {"StartCalendarInterval": {"Hour": HOUR, "Minute": MINUTE}}
    return {f"dev.everest.{name}.plist": plistlib.dumps(body)}
