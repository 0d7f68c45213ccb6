"""How fast transcripts become turns, beside a plain ``orjson.loads`` pass over the same bytes.

    python benchmarks/parse.py --root DIR [--repeat N]

Prints one JSON object: CPU seconds and rates of both passes and their ratio.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import orjson

from everest_pipelines.core.transcripts import HEAD_BYTES, format_of

BLOCK = 1024 * 1024
START = 1_667_260_800_000_000  # 2022-11-01


def blocks(path: Path) -> Iterator[bytes]:
    """The file in blocks."""
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            yield block


def plain_pass(paths: list[Path]) -> float:
    """CPU seconds of decoding every line with orjson and nothing else."""
    begun = time.process_time()
    for path in paths:
        for line in path.read_bytes().split(b"\n"):
            if line:
                try:
                    orjson.loads(line)
                except orjson.JSONDecodeError:
                    continue
    return time.process_time() - begun


def parse_pass(paths: list[Path]) -> tuple[float, int]:
    """CPU seconds of reading every file into turns, and the number of turns."""
    turns = 0
    begun = time.process_time()
    for path in paths:
        with path.open("rb") as file:
            form = format_of(file.read(HEAD_BYTES), str(path))
        if form is not None:
            turns += len(form.read(blocks(path), path=str(path), start=START).turns)
    return time.process_time() - begun, turns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    paths = sorted(arguments.root.rglob("*.jsonl"))
    size = sum(path.stat().st_size for path in paths)
    plain: list[float] = []
    parse: list[float] = []
    turns = 0
    for _ in range(arguments.repeat):  # side by side, so that both meet the same machine
        plain.append(plain_pass(paths))
        seconds, turns = parse_pass(paths)
        parse.append(seconds)
    result = {
        "files": len(paths),
        "mb": round(size / 1e6, 1),
        "turns": turns,
        "mb_per_cpu_s": round(size / 1e6 / min(parse), 1),
        "orjson_mb_per_cpu_s": round(size / 1e6 / min(plain), 1),
        "ratio": round(min(plain) / min(parse), 3),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
