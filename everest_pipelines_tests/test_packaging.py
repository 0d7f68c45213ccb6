"""What goes into git, the wheel and the source archive, and what the lock says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from everest_pipelines.text.home import find_checkout

CHECKOUT = find_checkout() or Path()
PRIVATE = re.compile(r"(^|/)(data|\.env|\.venv|\.git)(/|$)|\.duckdb$|\.parquet$|\.sqlite$")
pytestmark = pytest.mark.skipif(not (CHECKOUT / "Makefile").exists(), reason="not a checkout")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source archive, made while private things lie about."""
    out = tmp_path_factory.mktemp("dist")
    planted = CHECKOUT / "data" / f"planted-{os.getpid()}.jsonl"
    planted.parent.mkdir(exist_ok=True)
    planted.write_text("private")
    try:
        subprocess.run(
            [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(CHECKOUT)],
            check=True,
            capture_output=True,
        )
    finally:
        planted.unlink()
    return out


def wheel_names(built: Path) -> list[str]:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        return wheel.namelist()


def sdist_names(built: Path) -> list[str]:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        return ["/".join(name.split("/")[1:]) for name in archive.getnames()]


def test_the_wheel_holds_code_sample_and_rules_and_nothing_private(built: Path) -> None:
    names = wheel_names(built)
    assert sum(name.startswith("everest_pipelines/sample/projects/") for name in names) == 12
    assert "everest_pipelines/text/redact_rules.json" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert [name for name in names if PRIVATE.search(name)] == []
    assert {name.split("/")[0].split("-")[0] for name in names} == {"everest_pipelines"}


def test_every_data_file_of_the_package_is_in_the_wheel(built: Path) -> None:
    names = set(wheel_names(built))
    package = CHECKOUT / "everest_pipelines"
    wanted = {
        str(path.relative_to(CHECKOUT))
        for path in package.rglob("*")
        if path.is_file() and path.suffix not in (".pyc",) and "__pycache__" not in path.parts
    }
    assert wanted - names == set()


def test_the_source_archive_can_be_tested_and_holds_nothing_private(built: Path) -> None:
    names = sdist_names(built)
    for name in ("Makefile", "README.md", "requirements.lock", "LICENSE", ".ci/run"):
        assert name in names
    assert any(name.startswith("everest_pipelines_tests/") for name in names)
    assert [name for name in names if PRIVATE.search(name)] == []


def test_git_sees_of_data_its_gitignore_alone() -> None:
    if not (CHECKOUT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert [name for name in listed if PRIVATE.search(name)] == ["data/.gitignore"]


def lock() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for line in (CHECKOUT / "requirements.lock").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, _, rest = line.partition("==")
            assert rest, f"not pinned: {line}"
            found.setdefault(name.split("[")[0], set()).add(rest.split(";")[0].strip())
    return found


def test_the_lock_pins_every_dependency_without_naming_a_registry() -> None:
    text = (CHECKOUT / "requirements.lock").read_text(encoding="utf-8")
    assert not re.search(r"https?://|file:|--index|--find-links|--extra-index| @ ", text)
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["dev"]
    names = {re.split(r"[\[<>=!~ ]", one)[0].lower() for one in wanted}
    assert names - lock().keys() == set()


def test_the_dagster_family_is_locked_at_one_version() -> None:
    family = {
        version for name, seen in lock().items() if name.startswith("dagster") for version in seen
    }
    assert family == {"1.13.27"}


def test_generated_pages_are_up_to_date() -> None:
    script = CHECKOUT / "docs" / "make_reference.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode()


def test_links_of_the_pages_lead_somewhere() -> None:
    for page in [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").glob("*.md"))]:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"(?<!!)\]\(([^)#]+)", text):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_no_file_names_a_place_of_its_makers_machine() -> None:
    suspicious = re.compile(r"(?<!\w)/(work/(main|shared)|tmp/w|root/)")
    for folder in ("everest_pipelines", "everest_pipelines_tests", "docs", "benchmarks", ".ci"):
        for path in (CHECKOUT / folder).rglob("*"):
            if path.suffix in (".py", ".md", ".json", ".yaml", ".jsonl", "") and path.is_file():
                text = path.read_text(encoding="utf-8", errors="replace")
                if path.name != Path(__file__).name:
                    assert not suspicious.search(text), path


def test_scripts_are_valid_bash_and_executable() -> None:
    for name in ("run", "find-python"):
        path = CHECKOUT / ".ci" / name
        assert path.stat().st_mode & 0o111
        subprocess.run(["bash", "-n", path], check=True)
