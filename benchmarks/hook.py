"""What a hook costs: the whole process, against the bare interpreter, call by call in turn.

    python benchmarks/hook.py --lessons 5000 --json
    python benchmarks/hook.py --lessons 50000 --json

Keys: ratio_p50 and ratio_p95 are the hook's milliseconds over those of the interpreter that runs
this benchmark and does nothing (``python -c pass``); ratio_isolated_* over one that also looks for
no installed packages (``-I -S``), as the hook does. The hook runs as it is installed, without a
shell; every call is another session, so each one searches, shows and appends to the ledger.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from everest_pipelines.recall import bundle
from everest_pipelines.recall.snapshot import FILE_NAME, build
from everest_pipelines.text import ledger
from everest_pipelines.text.home import Home
from everest_pipelines.text.ids import digest

PROJECTS = 10
RARE = 20_000  # words of the made-up language; rank r is met in proportion to 1/(r+5)
FOLDER = "/srv/benchmark"


class Language:
    """Made-up words, as unevenly used as real ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        signs = "abcdefghijklmnoprstuvwy"
        self.words = sorted(
            {"".join(self.random.choices(signs, k=self.random.randint(4, 9))) for _ in range(RARE)}
        )
        self.weights = [1 / (rank + 5) for rank in range(len(self.words))]

    def say(self, count: int) -> str:
        """So many words."""
        return " ".join(self.random.choices(self.words, self.weights, k=count))


def memory(root: Path, lessons: int) -> tuple[Language, list[str]]:
    """A published home of so many lessons, with the hook installed; and their texts."""
    language = Language(1)
    home = Home(root)
    rows: list[dict[str, Any]] = []
    for number in range(lessons):
        text = language.say(12)
        identifier = digest("lesson", str(number))
        rows.append(
            {
                "id": identifier,
                "short_id": identifier[:8],
                "kind": ("rule", "error", "note")[number % 3],
                "scope": f"project-{number % PROJECTS}" if number % 20 else "everywhere",
                "state": "stated",
                "text": text,
                "fix": language.say(6) if number % 3 == 1 else "",
                "quote": text,
                "strength": 1.0,
                "seen": 1,
                "last_seen": "2026-03-01T12:00:00.000000Z",
                "value_key": identifier,
                "sources": [],
            }
        )
    build(
        home.published / "g" / FILE_NAME,
        lessons=rows,
        episodes=[],
        generation="g",
        projects=[(f"{FOLDER}/{number}", f"project-{number}") for number in range(PROJECTS)],
    )
    home.current.symlink_to("g")
    ledger.append(home, "note", {"text": "first"}, now=1)
    bundle.write(root)
    return language, [row["text"] for row in rows]


def spend(command: list[str], given: bytes, environ: dict[str, str]) -> tuple[float, bytes]:
    """Milliseconds of a whole process, and what it said."""
    reads, writes = os.pipe(), os.pipe()
    actions = [
        (os.POSIX_SPAWN_DUP2, reads[0], 0),
        (os.POSIX_SPAWN_DUP2, writes[1], 1),
        *((os.POSIX_SPAWN_CLOSE, descriptor) for descriptor in (*reads, *writes)),
    ]
    start = time.perf_counter()
    child = os.posix_spawn(command[0], command, environ, file_actions=actions)
    os.close(reads[0])
    os.close(writes[1])
    os.write(reads[1], given)
    os.close(reads[1])
    said = b""
    while part := os.read(writes[0], 65536):
        said += part
    os.waitpid(child, 0)
    spent = (time.perf_counter() - start) * 1000
    os.close(writes[0])
    return spent, said


def measure(root: Path, lessons: int, calls: int) -> dict[str, Any]:
    """Runs the three in turn, so that all meet the same machine."""
    language, texts = memory(root, lessons)
    python = bundle.interpreter()
    environ = {"PATH": os.environ["PATH"], "HOME": str(root), "EVEREST_HOLDOUT": "0"}
    hook = [python, "-I", "-S", str(root / "hooks" / bundle.ENTRY)]
    assert shlex.join(hook) in bundle.command(root), "the hook is installed as it is measured"
    commands = {
        "bare": [sys.executable, "-c", "pass"],
        "isolated": [python, "-I", "-S", "-c", "pass"],
        "hook": hook,
    }
    spent: dict[str, list[float]] = {name: [] for name in commands}
    shown = 0
    for number in range(calls + 5):
        matter = texts[number * PROJECTS % lessons + number % PROJECTS]
        event = {
            "session_id": f"00000000-0000-4000-8000-{number:012d}",
            "transcript_path": str(root / "none.jsonl"),
            "cwd": f"{FOLDER}/{number % PROJECTS}/src",
            "hook_event_name": "UserPromptSubmit",
            # Half of it is what a lesson of the project says, so that there is one to show.
            "prompt": " ".join((language.say(13), matter)),
        }
        for name, command in commands.items():
            given = json.dumps(event).encode() if name == "hook" else b""
            took, said = spend(command, given, environ)
            if number >= 5:  # the first ones fill the caches of the disk
                spent[name].append(took)
                shown += bool(said)
    report: dict[str, Any] = {"lessons": lessons, "calls": calls, "shown": shown}
    for part in (50, 95):
        of = {name: sorted(times)[calls * part // 100] for name, times in spent.items()}
        report |= {f"{name}_ms_p{part}": round(value, 2) for name, value in of.items()}
        report[f"ratio_p{part}"] = round(of["hook"] / of["bare"], 3)
        report[f"ratio_isolated_p{part}"] = round(of["hook"] / of["isolated"], 3)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lessons", type=int, default=5_000)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = measure(Path(folder) / "home", arguments.lessons, arguments.calls)
    if arguments.json:
        print(json.dumps(report))
    else:
        for name, value in report.items():
            print(f"{name:22} {value}")


if __name__ == "__main__":
    main()
