"""Arguments, errors, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import Namespace

import pytest

from everest_pipelines.cli import commands, places
from everest_pipelines.cli.context import as_typed
from everest_pipelines.cli.main import main
from everest_pipelines.text.errors import BusyError
from everest_pipelines_tests.cli.conftest import Everest, Made


@pytest.mark.parametrize("command", commands.COMMANDS, ids=lambda command: command.name)
def test_every_command_is_there_and_explains_itself(command: commands.Command) -> None:
    import importlib

    module, _, function = command.target.partition(":")
    assert callable(getattr(importlib.import_module(f"everest_pipelines.cli.{module}"), function))
    with pytest.raises(SystemExit) as ended:
        main([command.name, "--help"])
    assert ended.value.code == 0


def test_an_unknown_variable_is_an_error_that_names_the_nearest(
    empty: Made, everest: Everest, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert everest("config")[0] == 0
    monkeypatch.setenv("EVEREST_CLAUD_DIR", "/nowhere")
    code, _, err = everest("config")
    assert code == 5
    assert "EVEREST_CLAUDE_DIR" in err
    assert "Traceback" not in err


def test_an_unknown_key_names_file_line_and_the_nearest(empty: Made, everest: Everest) -> None:
    empty.home.ensure()
    empty.home.config.write_text("raw_days = 3\nrendr = true\n")
    code, _, err = everest("config")
    assert code == 5
    assert "config.toml:2" in err
    assert "render" in err


def test_a_known_error_is_a_message_the_next_command_and_its_own_code(
    empty: Made, everest: Everest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(_: Namespace) -> int:
        raise BusyError("Somebody is at work.", "everest status")

    monkeypatch.setattr(places, "paths", busy)
    code, out, err = everest("paths")
    assert (code, out) == (3, "")
    assert err == "everest: Somebody is at work.\nNext: everest status\n"


def test_an_unknown_error_is_not_hidden(
    empty: Made, everest: Everest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Namespace) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(places, "paths", broken)
    with pytest.raises(ZeroDivisionError):
        everest("paths")


def test_ctrl_c_says_how_to_resume(
    empty: Made, everest: Everest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(_: Namespace) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(places, "paths", stopped)
    code, _, err = everest("paths")
    assert code == 130
    assert "again to resume" in err


def test_paths_prints_every_location_also_with_wrong_settings(
    empty: Made, everest: Everest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVEREST_NO_SUCH_THING", "1")
    code, out, _ = everest("paths", "--json")
    assert code == 0
    body = json.loads(out.splitlines()[-1])
    assert body["home"] == str(empty.home.root)
    assert body["claude_dir"] == empty.environ["EVEREST_CLAUDE_DIR"]
    assert {"lake", "ledger", "duckdb", "dagster", "quarantine"} <= body.keys()


def test_off_and_on_are_idempotent_and_seen_by_hooks(empty: Made, everest: Everest) -> None:
    assert json.loads(everest("off", "--json")[1]) == {"state": "off", "changed": True}
    assert empty.home.off_switch.exists()
    assert json.loads(everest("off", "--json")[1])["changed"] is False
    assert json.loads(everest("on", "--json")[1])["changed"] is True
    assert not empty.home.off_switch.exists()


def test_on_says_so_when_the_environment_still_silences(
    empty: Made, everest: Everest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVEREST_OFF", "1")
    code, _, err = everest("on")
    assert code == 5
    assert "unset EVEREST_OFF" in err


def test_ignore_keeps_a_project_out_and_lists_it(empty: Made, everest: Everest) -> None:
    assert json.loads(everest("ignore", "--json")[1]) == {"ignored": []}
    everest("ignore", "/somewhere/private")
    assert json.loads(everest("ignore", "--json")[1]) == {"ignored": ["/somewhere/private"]}


def test_ignore_of_an_unknown_place_warns_and_can_be_undone(empty: Made, everest: Everest) -> None:
    code, out, err = everest("ignore", "/somewhere/private")
    assert code == 0 and "everest ignore --undo /somewhere/private" in out
    assert "No project that is known" in err
    assert everest("ignore", "--undo", "/somewhere/private")[0] == 0
    assert json.loads(everest("ignore", "--json")[1]) == {"ignored": []}
    assert everest("ignore", "--undo", "/somewhere/private")[0] == 2


def test_ignore_says_what_it_would_forget_and_asks_first(copied: Made, everest: Everest) -> None:
    path = "/home/mara/code/tidepool-web"
    code, _, err = everest("ignore", path)
    assert code == 2
    assert "1 project" in err and "turns" in err and "--yes" in err
    assert json.loads(everest("ignore", "--json")[1]) == {"ignored": []}
    code, out, err = everest("ignore", path, "--yes", "--json")
    answered = json.loads(out)
    assert code == 0 and answered["ignored"] == [path]
    assert answered["turns"] > 0 and len(answered["projects"]) == 1
    code, out, _ = everest("ignore", "--undo", path)
    assert code == 0 and "reads 1 project again" in out
    assert json.loads(everest("ignore", "--json")[1]) == {"ignored": []}


def test_doctor_is_content_only_when_there_is_something_to_read(
    empty: Made, everest: Everest
) -> None:
    code, out, _ = everest("doctor", "--json")
    wrong = [one for one in json.loads(out)["findings"] if not one["good"]]
    assert code == 1
    assert any("no transcripts" in one["sentence"] for one in wrong)
    assert all(one["command"] for one in wrong)


def test_doctor_sees_a_home_that_others_may_read(copied: Made, everest: Everest) -> None:
    def open_to_others() -> bool:
        _, out, _ = everest("doctor", "--json")
        return any("Others may look" in one["sentence"] for one in json.loads(out)["findings"])

    assert not open_to_others()
    copied.home.root.chmod(0o755)
    assert open_to_others()


def test_a_reader_that_goes_away_ends_the_command_quietly(empty: Made) -> None:
    script = f"{sys.executable} -m everest_pipelines.cli.main paths | true"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=False)
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("everest night", "US night"),
        ("Projects: a. Next: everest recall WORD", "Projects: a. Next: US recall WORD"),
        ("No lessons. `everest status` says more.", "No lessons. `US status` says more."),
        ("left behind: /home/everest night.jsonl", "left behind: /home/everest night.jsonl"),
        ("Waiting for everest ingest to end.", "Waiting for everest ingest to end."),
    ],
)
def test_a_command_is_told_as_it_works_when_typed(
    text: str, typed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/x/bin/everest"])
    monkeypatch.setenv("PATH", "/nowhere")
    assert as_typed(text) == typed.replace("US", "/x/bin/everest")
    monkeypatch.setattr(sys, "argv", ["/a/test/runner"])
    assert as_typed(text) == text
