"""Dagster's webserver on the loopback address, on some home."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from everest_pipelines.defs import launch
from everest_pipelines.text.home import Home

HOST = "127.0.0.1"


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@contextmanager
def webserver(home: Home, environ: Mapping[str, str]) -> Iterator[str]:
    """The UI's address, once it answers. No daemon runs beside it."""
    variables, workspace = launch.environment(home)
    port = free_port()
    child = subprocess.Popen(
        [
            *(sys.executable, "-m", "dagster_webserver", "--host", HOST, "--port", str(port)),
            *("--workspace", str(workspace), "--log-level", "warning"),
        ],
        cwd=home.root,
        env={**os.environ, **environ, **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://{HOST}:{port}"
    try:
        _wait(f"{address}/server_info", child)
        yield address
    finally:
        child.terminate()
        try:
            child.wait(timeout=15)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _wait(address: str, child: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 90
    while time.monotonic() < until and child.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError("the webserver did not start")
