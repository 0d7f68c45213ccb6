"""``everest up``: the UI and the daemon, on the loopback address alone."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from argparse import Namespace
from contextlib import closing, suppress

from everest_pipelines.cli.context import opened, tell
from everest_pipelines.text.errors import MissingError

HOST = "127.0.0.1"
TRIES = 20  # ports after the one that was asked for
FIRST_PAGE_SECONDS = 60.0
# Dagster calls its own `dagster dev` superseded. By message: naming its class would import it.
UNHEARD = "ignore:Function `dev_command` is superseded:FutureWarning"


def run(arguments: Namespace) -> int:
    """Start Dagster's webserver and daemon on this home; ends with Ctrl-C."""
    from everest_pipelines.defs import launch

    place, settings = opened()
    place.ensure()
    wanted = arguments.port or settings.port
    port = free_port(wanted)
    if port != wanted:
        tell(f"Port {wanted} is taken.")
    environ, workspace = launch.environment(place)
    command = [
        sys.executable, "-m", "dagster", "dev",
        "--host", HOST, "--port", str(port), "--workspace", str(workspace),
        "--log-level", "warning",
    ]  # fmt: skip
    # Started in the home: a .env of whatever directory we are in must not move the instance.
    heard = os.environ.get("PYTHONWARNINGS")
    environ = {
        **os.environ,
        **environ,
        "PYTHONWARNINGS": f"{heard},{UNHEARD}" if heard else UNHEARD,
    }
    child = subprocess.Popen(command, cwd=place.root, env=environ, umask=0o077)
    # A service manager ends us with this signal, and only us: what we started must end, too.
    signal.signal(signal.SIGTERM, _as_ctrl_c)
    try:
        if wait_for(f"http://{HOST}:{port}/server_info", child):
            print(f"Everest is at http://{HOST}:{port}  (Ctrl-C ends it)", flush=True)
        return child.wait()
    except KeyboardInterrupt as stopping:
        stopped = isinstance(stopping, _Terminated)
        with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            if stopped:
                child.send_signal(signal.SIGINT)
            child.wait(timeout=20)  # a terminal sends it the same signal
        if child.poll() is None:
            child.terminate()
            child.wait()
        tell("Stopped.")
        return 0


class _Terminated(KeyboardInterrupt):
    """Ended as with Ctrl-C, but no terminal told our children."""


def _as_ctrl_c(number: int, frame: object) -> None:
    del number, frame
    raise _Terminated


def free_port(wanted: int) -> int:
    """The first free port from ``wanted`` on. Raises MissingError when there is none near."""
    for port in range(wanted, min(wanted + TRIES, 65536)):
        with closing(socket.socket()) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with suppress(OSError):
                probe.bind((HOST, port))
                return port
    raise MissingError(f"No port from {wanted} on is free.", "everest up --port PORT")


def wait_for(address: str, child: subprocess.Popen[bytes]) -> bool:
    """Whether the page answered before the time was up or the child ended."""
    until = time.monotonic() + FIRST_PAGE_SECONDS
    while time.monotonic() < until and child.poll() is None:
        with suppress(OSError), urllib.request.urlopen(address, timeout=2) as page:
            return bool(page.status == 200)
        time.sleep(0.2)
    return False
