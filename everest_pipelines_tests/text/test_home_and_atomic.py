"""One root, private, and files that are whole or not there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from everest_pipelines.text import atomic
from everest_pipelines.text.errors import BusyError, CallerError, EverestError
from everest_pipelines.text.home import Home, find_checkout


def checkout_at(path: Path, name: str) -> Path:
    path.mkdir()
    (path / "pyproject.toml").write_text(f'[project]\nname = "{name}"\n')
    return path


def test_the_variable_wins_then_the_checkout_then_the_persons_folder(tmp_path: Path) -> None:
    ours = checkout_at(tmp_path / "ours", "everest-pipelines")
    environ = {"HOME": "/home/dev"}
    assert Home.resolve({**environ, "EVEREST_HOME": "~/e"}, ours).root == Path("/home/dev/e")
    assert Home.resolve({**environ, "EVEREST_HOME": "here"}).root == Path.cwd() / "here"
    assert Home.resolve({**environ, "EVEREST_HOME": ""}, ours).root == ours / "data"
    assert find_checkout(ours) == ours
    assert find_checkout(checkout_at(tmp_path / "theirs", "something-else")) is None
    assert find_checkout(tmp_path) is None


def test_every_location_lies_below_the_root(tmp_path: Path) -> None:
    home = Home(tmp_path)
    names = [name for name, value in vars(Home).items() if isinstance(value, property)]
    places = [getattr(home, name) for name in names]
    assert len(set(places)) == len(places) >= 19
    assert all(tmp_path in place.parents for place in places)


def test_the_root_is_made_private_also_when_it_existed(tmp_path: Path) -> None:
    root = tmp_path / "a" / "home"
    root.mkdir(parents=True, mode=0o755)
    Home(root).ensure()
    assert root.stat().st_mode & 0o777 == 0o700
    assert Home(tmp_path / "b" / "c").ensure().root.stat().st_mode & 0o777 == 0o700


def test_a_folder_of_somebody_elses_things_keeps_its_mode(tmp_path: Path) -> None:
    root = tmp_path / "documents"
    root.mkdir(mode=0o755)
    (root / "letter.txt").write_text("not ours")
    Home(root).ensure()
    assert root.stat().st_mode & 0o777 == 0o755
    Home(root).lake.mkdir()
    Home(root).ensure()
    assert root.stat().st_mode & 0o777 == 0o700, "the control: a home is closed again"


def test_a_write_replaces_the_whole_file_and_leaves_no_other(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file.json"
    old_mask = os.umask(0o077)
    try:
        atomic.write_atomic(path, b"one")
        atomic.write_atomic(path, b"two", mode=0o644)
    finally:
        os.umask(old_mask)
    assert path.read_bytes() == b"two"
    assert path.stat().st_mode & 0o777 == 0o644
    assert [p.name for p in path.parent.iterdir()] == ["file.json"]
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_write_that_fails_leaves_the_old_file_and_no_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    atomic.write_atomic(path, b"old")

    def full(descriptor: int, data: bytes) -> None:
        os.write(descriptor, data[:1])
        raise OSError("disk full")

    monkeypatch.setattr(atomic, "write_all", full)
    with pytest.raises(OSError, match="disk full"):
        atomic.write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_an_error_ends_with_the_next_command_and_has_its_exit_code() -> None:
    assert str(BusyError("A night is running.", "everest status")) == (
        "A night is running. Next: everest status"
    )
    codes = [error.exit_code for error in (EverestError, *EverestError.__subclasses__())]
    assert len(set(codes)) == len(codes) == 7 and 0 not in codes
    assert str(CallerError("No.")) == "No."


def test_text_imports_nothing_but_the_standard_library_and_itself() -> None:
    code = (
        "import sys; before = set(sys.modules)\n"
        "from everest_pipelines.text import atomic, errors, hashed, home, ids, ledger, redact\n"
        "from everest_pipelines.text import settings, tokens, value_key\n"
        "new = {m.split('.')[0] for m in set(sys.modules) - before} - {'everest_pipelines'}\n"
        "foreign = sorted(m for m in new if m not in sys.stdlib_module_names)\n"
        "assert 'fcntl' not in set(sys.modules) - before, 'native Windows has no fcntl'\n"
        "print(foreign)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
