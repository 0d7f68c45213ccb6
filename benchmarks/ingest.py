"""Transcripts to ``transcripts`` and ``episodes`` cells, beside a plain ``orjson.loads`` pass.

Both read the same bytes in one run; CPU seconds, so that a busy machine changes little.

    python benchmarks/ingest.py --root ~/.claude --json
    python benchmarks/ingest.py --root ~/.claude --replay-mb 1000 --json
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # idle threads of BLAS spin and cost CPU seconds

from benchmarks.corpus import replay


def orjson_pass(files: list[Path]) -> float:
    """CPU seconds to decode every line of every file with orjson, and nothing else."""
    import orjson

    start = time.process_time()
    for path in files:
        with path.open("rb") as file:
            for line in file:
                try:
                    orjson.loads(line)
                except orjson.JSONDecodeError:
                    continue
    return time.process_time() - start


def everest_pass(root: Path, home: Path) -> tuple[float, dict[str, int]]:
    """CPU seconds of the stages transcripts and episodes into an empty home, and what they made."""
    from everest_pipelines.night.derive import episodes
    from everest_pipelines.night.ingest import ingest
    from everest_pipelines.night.workspace import open_workspace
    from everest_pipelines.text.home import Home
    from everest_pipelines.text.settings import load

    place = Home(home)
    environ = {"HOME": str(home), "EVEREST_TZ": "UTC", "EVEREST_CLAUDE_DIR": str(root)}
    ws = open_workspace(place, load(environ, place.config))
    start = time.process_time()
    read = ingest(ws)
    found = episodes(ws)
    seconds = time.process_time() - start
    return seconds, {
        "files": read.counts.get("files", 0),
        "turns": read.counts.get("turns", 0),
        "episodes": found.counts.get("episodes", 0),
        "failures": len(read.failures) + len(found.failures),
        "lake_bytes": sum(path.stat().st_size for path in place.lake.rglob("*.parquet")),
    }


def _replay(root: Path, target: Path, size: int) -> None:
    """In a process of its own: what it needs of memory is not ingest's."""
    made = multiprocessing.get_context("spawn").Process(
        target=replay, args=(root, target), kwargs={"bytes_wanted": size}
    )
    made.start()
    made.join()
    if made.exitcode:
        raise SystemExit(made.exitcode)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="a folder of transcripts")
    parser.add_argument("--replay-mb", type=int, default=0, help="replay it to so many MB first")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = asked.root
        if not (root / "projects").is_dir():
            root = Path(scratch) / "linked"
            root.mkdir()
            (root / "projects").symlink_to(asked.root.resolve())
        if asked.replay_mb:
            source, root = root, Path(scratch) / "claude"
            _replay(source, root, asked.replay_mb * 1_000_000)
        files = sorted((root / "projects").rglob("*.jsonl"))
        size = sum(path.stat().st_size for path in files)
        seconds, counts = everest_pass(root, Path(scratch) / "home")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        plain = orjson_pass(files)
    rate, plain_rate = size / seconds / 1e6, size / plain / 1e6
    result = {
        "mb": round(size / 1e6, 1),
        "mb_per_cpu_s": round(rate, 1),
        "orjson_mb_per_cpu_s": round(plain_rate, 1),
        "ratio": round(rate / plain_rate, 3),
        "peak_rss_mb": round(peak, 1),
        "lake_share": round(counts["lake_bytes"] / size, 3),
        **counts,
    }
    print(json.dumps(result) if asked.json else "\n".join(f"{k}: {v}" for k, v in result.items()))


if __name__ == "__main__":
    main()
