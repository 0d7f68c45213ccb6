"""How long the MCP server takes to start and to answer, and whether it grows.

    python benchmarks/serve.py [--lessons N] [--calls N] --json

``start`` is from the start of the process to its answer to ``initialize``; ``ratio`` is over a bare
interpreter that starts and ends, in turns with it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from everest_pipelines.recall.snapshot import build
from everest_pipelines.text.home import Home
from everest_pipelines.text.ids import digest

WORDS = [
    *("deploy", "cache", "branch", "token", "schema", "retry"),
    *("socket", "layout", "parser", "index", "mock", "lint"),
]
SERVE = [sys.executable, "-m", "everest_pipelines.cli.main", "serve"]


def publish(home: Home, count: int) -> None:
    lessons = []
    for number in range(count):
        identifier = digest("lesson", str(number))
        said = f"{WORDS[number % 12]} {WORDS[number * 5 % 12]} number{number} before the release"
        lessons.append(
            {
                "id": identifier,
                "short_id": identifier[:8],
                "kind": "rule",
                "scope": "everywhere",
                "state": "stated",
                "text": said,
                "fix": "",
                "quote": said,
                "strength": 1.0,
                "seen": 1,
                "last_seen": "2026-03-01T12:00:00.000000Z",
                "value_key": identifier,
            }
        )
    build(home.published / "g1" / "recall.sqlite", lessons=lessons, episodes=[], generation="g1")
    home.current.symlink_to("g1")


def request(method: str, **params: object) -> bytes:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return json.dumps(body).encode() + b"\n"


def started(environ: dict[str, str]) -> tuple[subprocess.Popen[bytes], float]:
    begun = time.perf_counter()
    process = subprocess.Popen(
        SERVE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **environ}
    )
    answered(process, request("initialize", protocolVersion="2025-06-18", capabilities={}))
    return process, time.perf_counter() - begun


def answered(process: subprocess.Popen[bytes], line: bytes) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line)
    process.stdin.flush()
    return process.stdout.readline()


def resident(process: subprocess.Popen[bytes]) -> int:
    status = Path(f"/proc/{process.pid}/status")
    if not status.exists():
        return 0
    return next(int(line.split()[1]) for line in status.open() if line.startswith("VmRSS"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--lessons", type=int, default=5000)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        home = Home(Path(scratch) / "home").ensure()
        publish(home, arguments.lessons)
        environ = {"EVEREST_HOME": str(home.root)}
        starts: list[float] = []
        bare: list[float] = []
        for _ in range(10):
            begun = time.perf_counter()
            subprocess.run([sys.executable, "-c", "pass"], check=True)
            bare.append(time.perf_counter() - begun)
            process, seconds = started(environ)
            starts.append(seconds)
            process.communicate()
        process, _ = started(environ)
        calls: list[float] = []
        before = 0
        for number in range(arguments.calls + 100):
            query = f"{WORDS[number % 12]} {WORDS[number % 7]} number{number}"
            begun = time.perf_counter()
            answered(process, request("tools/call", name="recall", arguments={"query": query}))
            calls.append(time.perf_counter() - begun)
            if number == 99:
                before = resident(process)
        grown = resident(process) - before
        process.communicate()
    calls.sort()
    body = {
        "lessons": arguments.lessons,
        "calls": arguments.calls,
        "start_p50": round(statistics.median(starts), 3),
        "start_best": round(min(starts), 3),
        "ratio": round(statistics.median(starts) / statistics.median(bare), 2),
        "call_p50_ms": round(1000 * calls[len(calls) // 2], 2),
        "call_p95_ms": round(1000 * calls[int(len(calls) * 0.95)], 2),
        "grown_kb": grown,
    }
    print(json.dumps(body) if arguments.json else json.dumps(body, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
