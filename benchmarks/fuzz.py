"""Fuzz a reader of transcripts: coverage-guided with atheris, else with plain random mutations.

    python benchmarks/fuzz.py --reader claude-code|codex --seconds N [--seeds DIR] [--json]

Every input is read whole and in small blocks. A fault is an exception, a hang, a text that no
table could hold, an id that comes twice, a parent that is no turn, or two readings that differ.
The last line of the output is one JSON object; the exit code is 1 where a fault was found, and
the input that showed it is kept in the folder that the object names.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

SEED_BYTES = 8192  # of a file's beginning; coverage comes from shapes, not from length
INPUT_BYTES = 16 * 1024
HANG_SECONDS = 20
START = 1_667_260_800_000_000
_CHARACTERS = [b'"', b"{", b"}", b"[", b"]", b"\\", b"\n", b"\0", b"\xff", b",", b":", b"\\ud83d"]
_VALUES = [b"null", b"1e999", b"-1", b'""', b"[]", b"{}", b"true", b'"x"', b"[[]]", b"NaN"]

Check = Callable[[bytes], None]


def check_of(reader: str) -> Check:
    """The function that reads one input and raises where a promise is broken."""
    from everest_pipelines.core.transcripts.registry import FORMATS

    read = next(one for one in FORMATS if one.name == reader).read
    path = "x/019f0000-0000-7000-8000-00000000000a.jsonl"

    def check(data: bytes) -> None:
        reading = read([data], path=path, start=START)
        assert reading.size == len(data) >= reading.complete_offset
        assert len(reading.bad) <= reading.bad_lines
        ids = {turn.turn_id for turn in reading.turns}
        assert len(ids) == len(reading.turns), "an id comes twice"
        for turn in reading.turns:
            assert not turn.parent or turn.parent in ids, "a parent is no turn"
            assert turn.line_from <= turn.line_to
            texts = [turn.turn_id, turn.session_id, turn.text, turn.cwd, turn.git_branch]
            texts += [turn.agent_version, turn.model, turn.subagent, *turn.flags]
            for call in turn.tool_calls:
                texts += [call.id, call.name, call.input, call.output or ""]
            for text in texts:
                text.encode()
        blocks = [data[place : place + 61] for place in range(0, len(data), 61)]
        assert read(blocks, path=path, start=START).turns == reading.turns

    return check


def seeds(reader: str, folder: Path | None) -> list[bytes]:
    """Beginnings of valid files: the folder's, else those that the tests make."""
    found: list[bytes] = []
    if folder is not None:
        for path in sorted(folder.rglob("*.jsonl")):
            lines = path.read_bytes()[: 64 * SEED_BYTES].split(b"\n")
            short = [line for line in lines if len(line) < SEED_BYTES // 2]
            found += [b"\n".join(short[n : n + 6]) for n in range(0, min(len(short), 60), 6)]
        return [one for one in found if one]
    from everest_pipelines_tests.core.transcripts import test_mutilation as made

    case = next(one for one in made.CASES if one.name == reader)
    for number in range(60):
        records = case.make(random.Random(number))
        found.append(b"\n".join(json.dumps(one).encode() for one in records) + b"\n")
    return found


def mutate(data: bytes, chance: random.Random, others: list[bytes]) -> bytes:
    """One step of damage, by bytes, by JSON values, or by lines."""
    how = chance.randrange(8)
    place = chance.randrange(len(data) + 1)
    if how == 0:
        return data[:place] + chance.choice(_CHARACTERS) + data[place:]
    if how == 1:
        return data[:place] + data[place + chance.randrange(1, 40) :]
    if how == 2:
        return data[:place] + chance.randbytes(chance.randrange(1, 5)) + data[place + 1 :]
    if how == 3:
        values = list(re.finditer(rb'"[^"\\]*"|-?\d+|true|false|null', data))
        if values:
            one = chance.choice(values)
            return data[: one.start()] + chance.choice(_VALUES) + data[one.end() :]
        return data
    lines = data.split(b"\n")
    where = chance.randrange(len(lines))
    if how == 4:
        lines.insert(where, chance.choice(chance.choice(others).split(b"\n")))
    elif how == 5:
        lines[where] += lines[chance.randrange(len(lines))]
    elif how == 6:
        chance.shuffle(lines)
    else:
        del lines[where]
    return b"\n".join(lines)


def fuzz_plainly(reader: str, seconds: float, corpus: list[bytes], kept: Path) -> dict[str, object]:
    """Random mutations without a look at coverage; the same inputs on every run."""
    check, chance = check_of(reader), random.Random(11)
    runs, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        data = chance.choice(corpus)
        for _ in range(chance.randrange(1, 9)):
            data = mutate(data, chance, corpus)[:INPUT_BYTES]
        runs += 1
        try:
            check(data)
        except Exception as error:
            (kept / "fault").write_bytes(data)
            return {"engine": "random", "runs": runs, "faults": 1, "what": repr(error)[:300]}
    return {"engine": "random", "runs": runs, "faults": 0}


def fuzz_guided(reader: str, seconds: float, corpus: list[bytes], kept: Path) -> dict[str, object]:
    """Run atheris in a process of its own: it ends the process that it runs in."""
    work = kept / "corpus"
    work.mkdir()
    for number, data in enumerate(corpus):
        (work / f"{number:05}").write_bytes(data)
    command = [sys.executable, __file__, "--reader", reader, "--inside", str(work)]
    command += ["--seconds", str(int(seconds))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=kept)
    told = done.stderr + done.stdout
    runs = re.search(r"stat::number_of_executed_units:\s*(\d+)", told)
    covered = re.findall(r"cov: (\d+)", told)
    shutil.rmtree(work)
    result: dict[str, object] = {
        "engine": "atheris",
        "runs": int(runs.group(1)) if runs else 0,
        "covered": int(covered[-1]) if covered else 0,
        "faults": int(done.returncode != 0),
    }
    if done.returncode:
        (kept / "log").write_text(told, encoding="utf-8")
        found = re.search(r"^\w*(?:Error|Exception)\b.*$", told, re.MULTILINE)
        result["what"] = (found.group(0) if found else told[-300:])[:300]
    return result


def inside(reader: str, seconds: int, corpus: str) -> None:
    """The fuzzing process; it never returns."""
    import atheris

    with atheris.instrument_imports(include=["everest_pipelines.core.transcripts"]):
        check = check_of(reader)
    chance = random.Random(11)
    others = [path.read_bytes() for path in sorted(Path(corpus).iterdir())]

    def mutator(data: bytes, max_size: int, seed: int) -> bytes:
        chance.seed(seed)
        if chance.random() < 0.5:
            return atheris.Mutate(data, max_size)
        return mutate(bytes(data), chance, others)[:max_size]

    arguments = [
        sys.argv[0],
        corpus,
        f"-max_total_time={seconds}",
        f"-max_len={INPUT_BYTES}",
        f"-timeout={HANG_SECONDS}",
        "-print_final_stats=1",
        "-rss_limit_mb=4096",
    ]
    atheris.Setup(arguments, lambda data: check(bytes(data)), custom_mutator=mutator)
    atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reader", required=True, choices=["claude-code", "codex"])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seeds", type=Path, help="a folder of transcripts of that agent")
    parser.add_argument("--plain", action="store_true", help="random mutations, without atheris")
    parser.add_argument("--json", action="store_true", help="accepted for symmetry")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        inside(options.reader, int(options.seconds), options.inside)
    kept = Path(tempfile.mkdtemp(prefix="everest-fuzz-"))
    corpus = seeds(options.reader, options.seeds)
    began = time.monotonic()
    fuzz = fuzz_plainly if options.plain or not _has_atheris() else fuzz_guided
    result = fuzz(options.reader, options.seconds, corpus, kept)
    result = {"reader": options.reader, "seconds": round(time.monotonic() - began, 1)} | result
    if result["faults"]:
        result["kept"] = str(kept)
    else:
        shutil.rmtree(kept)
    print(json.dumps(result))
    return int(bool(result["faults"]))


def _has_atheris() -> bool:
    from importlib.util import find_spec

    return find_spec("atheris") is not None


if __name__ == "__main__":
    sys.exit(main())
