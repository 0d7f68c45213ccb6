"""``everest night`` and ``everest up`` as a person starts them: processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from everest_pipelines.cli import first_import, night, up
from everest_pipelines.cli import sample as bundled
from everest_pipelines_tests.cli.conftest import Everest, Made

EVEREST = (sys.executable, "-m", "everest_pipelines.cli.main")


def start(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("EVEREST_")}
    clean.pop("DAGSTER_HOME", None)
    return subprocess.run(
        [*EVEREST, *arguments], env=clean | environ, capture_output=True, text=True, check=False
    )


def test_a_night_on_the_sample_ends_with_all_that_is_promised(tmp_path: Path) -> None:
    empty = {"EVEREST_CLAUDE_DIR": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = start("night", "--or-sample", "--json", **empty)
    assert done.returncode == 0, done.stderr
    body = json.loads(done.stdout.splitlines()[-1])
    assert body["sample"] is True
    assert body["horizon"] == bundled.LAST_DAY
    assert body["sessions"] == 11
    assert body["turns"] > 100
    assert body["quarantined"] == 1
    assert {"correction", "error", "refusal", "interruption", "session"} <= body["episodes"].keys()
    assert {"stated", "corroborated"} <= body["lessons"].keys()
    assert {"transcripts", "episodes", "sleep", "published"} <= body["seconds"].keys()
    assert body["generation"]
    assert "transcripts:" in done.stderr, "progress goes to stderr"

    home = {"EVEREST_HOME": body["home"]}
    again = start("night", "--through", bundled.LAST_DAY, "--json", **home)
    assert again.returncode == 0, again.stderr
    second = json.loads(again.stdout.splitlines()[-1])
    assert second["generation"] == body["generation"]
    assert (second["files"], second["generation_changed"]) == (0, False)

    plain = start("night", "--through", bundled.LAST_DAY, **home)
    for words in ("sessions", "episodes", "lessons", "quarantined", "Files", "Next"):
        assert words in plain.stdout
    assert start("status", **home).returncode == 0
    listed = [line for line in Path(body["home"]).rglob("*") if line.stat().st_mode & 0o077]
    assert [path for path in listed if not path.is_symlink()] == []


def test_no_transcripts_and_no_sample_says_why_nothing_was_learnt(tmp_path: Path) -> None:
    environ = {"EVEREST_CLAUDE_DIR": str(tmp_path), "EVEREST_HOME": str(tmp_path / "home")}
    done = start("night", **environ)
    assert done.returncode == 0, done.stderr
    assert "No transcripts were found" in done.stdout


def test_a_day_that_is_none_is_refused(empty: Made, everest: Everest) -> None:
    code, _, err = everest("night", "--through", "yesterday")
    assert code == 2
    assert "YYYY-MM-DD" in err


def test_a_large_first_import_is_told_and_needs_an_answer(
    empty: Made, everest: Everest, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude = Path(empty.environ["EVEREST_CLAUDE_DIR"]) / "projects" / "-p"
    claude.mkdir(parents=True)
    for number in range(3):
        (claude / f"{number}.jsonl").write_text('{"type":"user","cwd":"/p"}\n')
    monkeypatch.setattr(first_import, "LARGE_FILES", 2)
    monkeypatch.setattr(night, "_work", lambda *_: pytest.fail("it read without an answer"))
    code, _, err = everest("night")
    assert code == 2
    assert "3 transcripts of 1 projects" in err
    assert "--yes" in err


def test_projects_that_were_not_chosen_are_kept_out(
    empty: Made, everest: Everest, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        folder = Path(empty.environ["EVEREST_CLAUDE_DIR"]) / "projects" / f"-{name}"
        folder.mkdir(parents=True)
        (folder / "1.jsonl").write_text(json.dumps({"type": "user", "cwd": f"/{name}"}) + "\n")

    class Stop(Exception):
        pass

    def stop(*_: object) -> None:
        raise Stop

    monkeypatch.setattr(night, "_work", stop)
    with pytest.raises(Stop):
        everest("night", "--projects", "one")
    assert json.loads(everest("ignore", "--json")[1]) == {"ignored": ["/two"]}


def test_a_taken_port_gives_the_next_free_one() -> None:
    import socket

    with socket.socket() as taken:
        taken.bind((up.HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert up.free_port(port) != port


def test_up_answers_on_the_loopback_address_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith("EVEREST_")
    } | {"EVEREST_HOME": str(tmp_path / "home"), "EVEREST_CLAUDE_DIR": str(tmp_path)}
    port = up.free_port(38_000 + os.getpid() % 1000)
    with subprocess.Popen(
        [*EVEREST, "up", "--port", str(port)],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as child:
        try:
            assert child.stdout is not None
            line = child.stdout.readline()
            assert f"http://127.0.0.1:{port}" in line
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/server_info", timeout=5) as page:
                assert "dagster_version" in page.read().decode()
            os.killpg(child.pid, signal.SIGINT)
            assert child.wait(timeout=90) == 0
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
    until = time.monotonic() + 20
    while up.free_port(port) != port and time.monotonic() < until:
        time.sleep(0.2)
    assert up.free_port(port) == port, "nothing is left behind"


def test_up_ends_with_all_that_it_started_when_a_service_manager_ends_it(tmp_path: Path) -> None:
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith("EVEREST_")
    } | {"EVEREST_HOME": str(tmp_path / "home"), "EVEREST_CLAUDE_DIR": str(tmp_path)}
    port = up.free_port(39_000 + os.getpid() % 1000)
    with subprocess.Popen(
        [*EVEREST, "up", "--port", str(port)],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as child:
        try:
            assert child.stdout is not None
            assert f"http://127.0.0.1:{port}" in child.stdout.readline()
            child.terminate()  # it alone, not its children
            assert child.wait(timeout=90) == 0
            until = time.monotonic() + 60
            with suppress(ProcessLookupError):  # nobody of its session is left
                while time.monotonic() < until:
                    os.killpg(child.pid, 0)
                    time.sleep(0.2)
                pytest.fail("something is left behind")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)


def test_a_day_that_is_not_over_is_refused(tmp_path: Path) -> None:
    home = {"EVEREST_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "EVEREST_TZ": "UTC"}
    done = start("night", "--through", "2999-01-01", **home)
    assert done.returncode == 2
    assert "2999-01-01 is not over" in done.stderr
    assert start("night", "--through", "2026-05-11", **home).returncode == 0, "the control"


def test_a_folder_that_was_named_and_is_not_there_is_an_error(tmp_path: Path) -> None:
    home = {"EVEREST_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "EVEREST_TZ": "UTC"}
    done = start("night", EVEREST_CLAUDE_DIR=str(tmp_path / "nowhere"), **home)
    assert done.returncode == 4
    assert str(tmp_path / "nowhere") in done.stderr
    assert start("night", **home).returncode == 0, "the control: by default nothing need be there"


def test_a_rendering_that_fails_is_said_and_fails_the_night(tmp_path: Path) -> None:
    import shutil

    claude = tmp_path / "claude"
    shutil.copytree(bundled.FOLDER, claude / "projects")
    home = {
        "EVEREST_HOME": str(tmp_path / "home"),
        "HOME": str(tmp_path),
        "EVEREST_TZ": "UTC",
        "EVEREST_CLAUDE_DIR": str(claude),
        "EVEREST_RENDER": "1",
    }
    through = ("night", "--through", bundled.LAST_DAY)
    assert start(*through, **home).returncode == 0, "the control"
    memory = next(claude.glob("projects/*/memory/MEMORY.md"))
    memory.write_text("<!-- everest:begin -->\nno end\n")
    done = start(*through, **home)
    assert done.returncode == 1
    assert f"left behind: {memory}" in done.stderr
