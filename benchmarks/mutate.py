"""Break one thing at a time and see whether the tests notice; print what they did not.

A mutant is a module with one statement dropped, one condition turned round, one comparison moved
by one, or one `and` made an `or`. It is made in a copy of the checkout, and the named tests run on
it until the first fails. What passes is a survivor: a line that no test needs (or that does
nothing else, which only a reader can tell).

    python benchmarks/mutate.py --modules everest_pipelines/lake/days.py \\
        --tests everest_pipelines_tests/lake/test_days.py
    python benchmarks/mutate.py --modules … --tests … --sample 20 --seed 7 --json
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("everest_pipelines", "everest_pipelines_tests", "benchmarks", "docs", "pyproject.toml")
SLOWEST = 10  # times as long as the unbroken module: it hangs, which is noticed too
_MOVED: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
_DROPPED = (ast.Assign, ast.AugAssign, ast.Expr, ast.Raise, ast.Return, ast.Delete, ast.Continue)


@dataclass(frozen=True)
class Mutant:
    """One change: bytes [start, end) of a module replaced."""

    module: str
    line: int
    what: str
    start: int
    end: int
    text: str
    source: str  # the line as it was

    def applied(self, content: bytes) -> bytes:
        return content[: self.start] + self.text.encode() + content[self.end :]


def mutants(module: str, content: bytes) -> list[Mutant]:
    """Every mutant of a module, in the order of its lines. Only what stands in functions."""
    tree = ast.parse(content)
    starts = [0]
    for line in content.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def made(node: ast.expr | ast.stmt, what: str, text: str) -> Mutant:
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        shown = content.splitlines()[node.lineno - 1].decode().strip()
        return Mutant(module, node.lineno, what, start, end, text, shown)

    found: list[Mutant] = []
    for node in _inside_functions(tree):
        if isinstance(node, _DROPPED) and not _is_text(node):
            if not (isinstance(node, ast.Return) and node.value is None):
                found.append(made(node, "dropped", "pass"))
        elif isinstance(node, ast.If | ast.While | ast.IfExp):
            test = ast.get_source_segment(content.decode(), node.test) or ""
            found.append(made(node.test, "turned round", f"(not ({test}))"))
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            left = ast.get_source_segment(content.decode(), node.left) or ""
            right = ast.get_source_segment(content.decode(), node.comparators[0]) or ""
            sign = _MOVED[type(node.ops[0])]
            found.append(made(node, f"now {sign}", f"({left}) {sign} ({right})"))
        elif isinstance(node, ast.BoolOp):
            word = " or " if isinstance(node.op, ast.And) else " and "
            parts = [ast.get_source_segment(content.decode(), one) or "" for one in node.values]
            joined = word.join(f"({part})" for part in parts)
            found.append(made(node, f"now{word.rstrip()}", f"({joined})"))
    return sorted((one for one in found if _compiles(one, content)), key=lambda one: one.start)


def _inside_functions(tree: ast.AST, inside: bool = False) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.arguments | ast.JoinedStr) or _is_for_types(node):
            continue
        enters = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if inside:
            yield node
        if isinstance(node, ast.AnnAssign):
            yield from _inside_functions(ast.Expression(node.value or node.target), inside)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for one in node.body:  # neither its decorators nor what it returns
                yield from ([one] if not isinstance(one, ast.FunctionDef) else [])
                yield from _inside_functions(one, True)
        else:
            yield from _inside_functions(node, inside or enters)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _compiles(one: Mutant, content: bytes) -> bool:
    try:
        compile(one.applied(content), one.module, "exec")
    except SyntaxError:
        return False
    return True


class Bench:
    """A copy of the checkout in which mutants are tried, one at a time."""

    def __init__(self, root: Path, folder: Path, tests: Sequence[str]) -> None:
        self.folder = folder
        self.tests = tests
        self.seconds = 600.0
        for name in COPIED:
            source = root / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            elif source.exists():
                shutil.copy(source, folder / name)
        shared = root.parent / "shared"
        if shared.is_dir() and not (folder.parent / "shared").exists():
            (folder.parent / "shared").symlink_to(shared)

    def passes(self) -> bool:
        """Whether the tests pass on the copy as it is. A run that hangs does not."""
        environ = os.environ | {
            "PYTHONPATH": str(self.folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HYPOTHESIS_STORAGE_DIRECTORY": str(self.folder / ".hypothesis"),
        }
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        try:
            done = subprocess.run(
                [*command, *self.tests],
                cwd=self.folder,
                env=environ,
                capture_output=True,
                timeout=self.seconds,
            )
        except subprocess.TimeoutExpired:
            return False
        if done.returncode not in (0, 1, 2):  # 2: a module that cannot be imported
            raise SystemExit(done.stdout.decode()[-2000:] + done.stderr.decode()[-2000:])
        return done.returncode == 0

    def survives(self, one: Mutant) -> bool:
        path = self.folder / one.module
        content = path.read_bytes()
        path.write_bytes(one.applied(content))
        try:
            return self.passes()
        finally:
            path.write_bytes(content)


def survivors(
    root: Path, modules: Sequence[str], tests: Sequence[str], *, sample: int, seed: int, jobs: int
) -> tuple[int, list[Mutant]]:
    """How many mutants were tried, and those that no test noticed.

    ``sample``: so many of all, chosen by ``seed``; 0 for all. Raises SystemExit when the tests
    fail without any change.
    """
    import time

    every = [one for name in modules for one in mutants(name, (root / name).read_bytes())]
    if sample and sample < len(every):
        every = random.Random(seed).sample(every, sample)
    with tempfile.TemporaryDirectory() as scratch:
        benches = [Bench(root, Path(scratch) / str(n) / "main", tests) for n in range(jobs)]
        start = time.monotonic()
        if not benches[0].passes():
            raise SystemExit("The tests fail on the unbroken modules.")
        for bench in benches:
            bench.seconds = max(SLOWEST * (time.monotonic() - start), 20.0)
        lots = [every[n::jobs] for n in range(jobs)]

        def tried(bench: Bench, lot: list[Mutant]) -> list[Mutant]:
            return [one for one in lot if bench.survives(one)]

        with ThreadPoolExecutor(jobs) as pool:
            found = [one for some in pool.map(tried, benches, lots) for one in some]
    return len(every), sorted(found, key=lambda one: (one.module, one.start))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", nargs="+", required=True, help="paths in the checkout")
    parser.add_argument("--tests", nargs="+", required=True, help="what pytest is given")
    parser.add_argument("--sample", type=int, default=0, help="so many mutants, not all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    tried, found = survivors(
        ROOT, asked.modules, asked.tests, sample=asked.sample, seed=asked.seed, jobs=asked.jobs
    )
    for one in found:
        print(f"{one.module}:{one.line}: {one.what}: {one.source}", file=sys.stderr)
    result = {"mutants": tried, "survivors": len(found), "ratio": round(len(found) / tried, 3)}
    if asked.json:
        result["survived"] = [
            {k: v for k, v in asdict(one).items() if k in ("module", "line", "what", "source")}
            for one in found
        ]
    print(json.dumps(result))


if __name__ == "__main__":
    main()
