"""The tool that breaks one thing at a time finds what no test needs, and only that."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.mutate import ROOT, Bench, mutants, survivors

MODULE = '''"""A module."""

LIMIT = 3


def sign(number: int) -> bool:
    """Not code."""
    unneeded = number * 2
    return number < 0
'''
TESTS = """from everest_pipelines.small import sign


def test_signs() -> None:
    assert sign(-5)
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name, content in (("everest_pipelines", MODULE), ("everest_pipelines_tests", TESTS)):
        folder = tmp_path / "made" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
        (folder / ("small.py" if content is MODULE else "test_small.py")).write_text(content)
    return tmp_path / "made"


def test_what_no_test_needs_survives_and_nothing_else(checkout: Path) -> None:
    tried, found = survivors(
        checkout,
        ["everest_pipelines/small.py"],
        ["everest_pipelines_tests/test_small.py"],
        sample=0,
        seed=0,
        jobs=2,
    )
    assert tried == 3
    assert [(one.line, one.what) for one in found] == [(8, "dropped"), (9, "now <=")]
    assert (checkout / "everest_pipelines/small.py").read_text() == MODULE


def test_tests_that_fail_anyway_say_nothing(checkout: Path) -> None:
    (checkout / "everest_pipelines/small.py").write_text("def sign(number): return 0\n")
    with pytest.raises(SystemExit, match="unbroken"):
        survivors(
            checkout,
            ["everest_pipelines/small.py"],
            ["everest_pipelines_tests/test_small.py"],
            sample=1,
            seed=0,
            jobs=1,
        )


def test_every_mutant_of_our_own_modules_compiles_and_differs() -> None:
    seen = 0
    for path in sorted((ROOT / "everest_pipelines" / "lake").glob("*.py"))[::3]:
        content = path.read_bytes()
        for one in mutants(str(path.relative_to(ROOT)), content):
            assert one.applied(content) != content
            seen += 1
    assert seen > 200


def test_a_broken_line_of_the_reader_is_noticed(tmp_path: Path) -> None:
    """The short version of `make mutate`: chosen mutants of one module, all killed."""
    module = "everest_pipelines/core/transcripts/lines.py"
    bench = Bench(
        ROOT, tmp_path / "main", ["everest_pipelines_tests/core/transcripts/test_lines.py"]
    )
    chosen = [
        one
        for one in mutants(module, (ROOT / module).read_bytes())
        if one.source in ("offset += length + 1", "pieces.pop()  # behind the last newline")
    ]
    assert len(chosen) == 2
    assert [one for one in chosen if bench.survives(one)] == []
