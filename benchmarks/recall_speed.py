"""How fast past episodes are found among many, beside a plain OR of the prompt's words.

    python benchmarks/recall_speed.py --episodes N [--prompts N] --json

Words are drawn as in real text (the n-th most common one n times rarer, 50,000 of them), 40 an
episode, 20 episodes a session, 25 words a prompt. Both ask the same snapshot in one process, in
turns; the file is in the page cache. ``cpu`` is what to look at on a busy machine.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from everest_pipelines.recall.episodes import search_episodes
from everest_pipelines.recall.snapshot import Snapshot, build, open_file
from everest_pipelines.recall.terms import query_terms

VOCABULARY = 50_000
EPISODE_WORDS = 40
PROMPT_WORDS = 25
SESSION = 20


class Words:
    """Made-up words by Zipf's law; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.words = [f"w{number:x}q" for number in range(VOCABULARY)]
        self.reach = list(itertools.accumulate(1 / (1 + rank) for rank in range(VOCABULARY)))

    def some(self, count: int) -> str:
        return " ".join(self.draw.choices(self.words, cum_weights=self.reach, k=count))


def episodes(count: int, words: Words) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield {
            "id": f"{number:032x}",
            "project": "here",
            "kind": "error",
            "title": "",
            "gist": words.some(EPISODE_WORDS),
            "quote": "",
            "session": f"s{number // SESSION:07}",
            "occurred_at": number * 1_000_000,
        }


def plain_or(snapshot: Snapshot, prompt: str) -> int:
    asked = " OR ".join(f'"{term}"' for term in query_terms(prompt))
    rows = snapshot.connection.execute(
        "SELECT rowid FROM episodes_index WHERE episodes_index MATCH ? ORDER BY rank LIMIT 5",
        (asked,),
    )
    return len(rows.fetchall())


def spread(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(1000 * one for one in seconds)
    return {
        "p50_ms": round(ordered[len(ordered) // 2], 2),
        "p95_ms": round(ordered[min(int(len(ordered) * 0.95), len(ordered) - 1)], 2),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--episodes", type=int, default=100_000)
    parser.add_argument("--prompts", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    words = Words(7)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "recall.sqlite"
        begun = time.perf_counter()
        made = episodes(arguments.episodes, words)
        build(path, lessons=[], episodes=made, generation="benchmark")
        built = time.perf_counter() - begun
        size = path.stat().st_size
        ours: list[float] = []
        plain: list[float] = []
        cpu: list[float] = []
        found = 0
        with open_file(path) as snapshot:
            for prompt in [words.some(PROMPT_WORDS) for _ in range(arguments.prompts)]:
                begun, worked = time.perf_counter(), time.process_time()
                hits = search_episodes(snapshot, prompt, project="here", k=5)
                ours.append(time.perf_counter() - begun)
                cpu.append(time.process_time() - worked)
                found += bool(hits)
                if len(plain) < 50:
                    begun = time.perf_counter()
                    plain_or(snapshot, prompt)
                    plain.append(time.perf_counter() - begun)
    body = {
        "episodes": arguments.episodes,
        "prompts": arguments.prompts,
        "answered": found,
        **spread(ours),
        "cpu": spread(cpu),
        "plain_or": spread(plain),
        "ratio_p95": round(spread(plain)["p95_ms"] / spread(ours)["p95_ms"], 1),
        "build_seconds": round(built, 1),
        "file_mb": round(size / 1e6, 1),
        "sqlite": sqlite3.sqlite_version,
    }
    print(json.dumps(body) if arguments.json else json.dumps(body, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
