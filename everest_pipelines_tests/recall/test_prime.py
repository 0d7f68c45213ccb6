"""A hook answers in the contract of its event, or says nothing at all."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from everest_pipelines.recall import arms, bundle, overlay, prime, switch
from everest_pipelines.recall.format import tokens
from everest_pipelines.recall.snapshot import FILE_NAME, build
from everest_pipelines.text import ledger
from everest_pipelines.text.chain import Lock
from everest_pipelines.text.home import Home
from everest_pipelines_tests.recall.rows import HERE, LESSONS, lesson

NOW = 1_790_000_000_000_000
FOLDER = "/srv/harbor-api"
RULE, ERROR = LESSONS[0], LESSONS[6]
SECRET_WORDS = "please use npm to install the dependencies with heliotrope"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "ho me")  # a path that a shell would cut
    publish(home, "g1", LESSONS)
    bundle.write(home.root)
    return home


def publish(home: Home, generation: str, lessons: list[dict[str, Any]]) -> None:
    build(
        home.published / generation / FILE_NAME,
        lessons=lessons,
        episodes=[],
        generation=generation,
        projects=[(FOLDER, HERE)],
    )
    link = home.published / ".new"
    link.symlink_to(generation)
    link.rename(home.current)


def event(name: str = prime.PROMPT, **changes: Any) -> dict[str, Any]:
    """What the agent writes to stdin (Claude Code's hooks reference, common and own fields)."""
    own: dict[str, dict[str, Any]] = {
        prime.PROMPT: {"prompt": SECRET_WORDS},
        prime.STOP: {
            "stop_hook_active": False,
            "last_assistant_message": "I used npm to install the dependencies. Done!",
            "background_tasks": [],
        },
        prime.TOOL: {
            "tool_name": "Bash",
            "tool_input": {"command": "node dist/app.js || echo ENOENT no such file"},
            "tool_use_id": "toolu_1",
        },
    }
    return {
        "session_id": "5f0c2a7e-0000-4000-8000-000000000001",
        "transcript_path": "/nowhere/5f0c2a7e.jsonl",
        "cwd": FOLDER,
        "permission_mode": "default",
        "hook_event_name": name,
        **own[name],
        **changes,
    }


ENVIRON = {"PATH": os.environ["PATH"], "EVEREST_HOLDOUT": "0"}


def installed(home: Home, given: object, **environ: str) -> subprocess.CompletedProcess[bytes]:
    """Run the hook as the agent does: the command through the shell, the event on stdin."""
    data = given if isinstance(given, bytes) else json.dumps(given).encode()
    return subprocess.run(
        ["/bin/sh", "-c", bundle.command(home.root)],
        input=data,
        capture_output=True,
        env={**ENVIRON, "HOME": str(home.root.parent), **environ},
        cwd="/",
        check=False,
        timeout=20,
    )


def context(done: subprocess.CompletedProcess[bytes], name: str = prime.PROMPT) -> str:
    assert (done.returncode, done.stderr) == (0, b"")
    (only,) = json.loads(done.stdout).items()
    assert only[0] == "hookSpecificOutput"
    assert only[1].keys() == {"hookEventName", "additionalContext"}
    assert only[1]["hookEventName"] == name
    return str(only[1]["additionalContext"])


def silent(done: subprocess.CompletedProcess[bytes]) -> bool:
    return (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def logged(home: Home) -> list[tuple[str, list[str]]]:
    return [
        (entry["reason"], entry["lesson_ids"]) for entry in ledger.read(home, ("recall",)).entries
    ]


def answered(home: Home, given: dict[str, Any], now: int = NOW, **environ: str) -> str:
    """The same in this process."""
    said = prime.answer(json.dumps(given).encode(), {**ENVIRON, **environ}, str(home.root), now=now)
    return said.decode()


def test_a_prompt_is_answered_with_the_lessons_that_it_bears_on(home: Home) -> None:
    said = context(installed(home, event()))
    assert RULE["text"] in said and RULE["short_id"] in said and "(unreviewed)" in said
    assert said.startswith("<everest-lessons ") and said.endswith("</everest-lessons>\n")
    assert tokens(said) <= 600
    (entry,) = ledger.read(home, ("recall",)).entries
    assert entry["reason"] == "shown" and entry["rendered"] is True
    assert RULE["id"] in entry["lesson_ids"]
    assert entry["event"] == "prompt" and entry["project"] == HERE
    assert ledger.verify(home) == []


def test_a_tool_call_is_answered_with_errors_and_a_hand_back_with_rules(home: Home) -> None:
    said = context(installed(home, event(prime.TOOL)), prime.TOOL)
    assert ERROR["text"] in said and "run the build first" in said
    done = installed(home, event(prime.STOP, session_id="another"))
    body = json.loads(done.stdout)
    assert body.keys() == {"decision", "reason"} and body["decision"] == "block"
    assert RULE["text"] in body["reason"] and done.returncode == 0
    assert ERROR["text"] not in body["reason"]


def test_a_new_agent_gets_a_hand_backs_lessons_quietly(home: Home, tmp_path: Path) -> None:
    transcript = tmp_path / "session.jsonl"
    for version, key in (("2.1.277", "decision"), ("2.1.278", "hookSpecificOutput")):
        transcript.write_text(f'{{"uuid":"u1","version":"{version}","type":"assistant"}}\n')
        given = event(prime.STOP, session_id=version, transcript_path=str(transcript))
        assert key in json.loads(answered(home, given))


@pytest.mark.parametrize(
    "changes",
    [
        {"stop_hook_active": True},
        {"background_tasks": [{"id": "1"}]},
        {"last_assistant_message": None},
    ],
)
def test_a_turn_that_goes_on_is_no_hand_back(home: Home, changes: dict[str, Any]) -> None:
    assert answered(home, event(prime.STOP, **changes)) == ""
    assert answered(home, event(prime.STOP)) != ""


def test_a_lesson_is_shown_once_in_a_session(home: Home) -> None:
    assert RULE["text"] in answered(home, event())
    assert answered(home, event()) == ""
    assert answered(home, event(prime.STOP)) == ""
    assert RULE["text"] in answered(home, event(session_id="next"))
    assert [reason for reason, _ in logged(home)] == [
        "shown", "already_shown", "already_shown", "shown"
    ]  # fmt: skip


def test_no_word_of_the_session_is_written_anywhere(home: Home) -> None:
    given = event(cwd=f"{FOLDER}/heliotrope")
    assert answered(home, given) and answered(home, event(prime.STOP, session_id="two"))
    held = b"".join(path.read_bytes() for path in home.root.rglob("*") if path.is_file())
    assert b"heliotrope" not in held and b"I used npm" not in held
    assert given["session_id"].encode() in held


def test_called_wrong_and_off_are_obeyed_by_the_very_next_call(home: Home) -> None:
    overlay.hide(home, RULE["id"], value_key=RULE["value_key"])
    assert RULE["text"] not in installed(home, event()).stdout.decode()
    overlay.unhide(home, RULE["id"])
    assert RULE["text"] in context(installed(home, event(session_id="two")))
    switch.turn_off(home)
    assert silent(installed(home, event(session_id="three")))
    switch.turn_on(home)
    assert silent(installed(home, event(session_id="four"), EVEREST_OFF="1"))
    assert RULE["text"] in context(installed(home, event(session_id="five")))
    assert [reason for reason, _ in logged(home)].count("off") == 2


def test_a_damaged_overlay_shows_nothing(home: Home) -> None:
    home.overlay.write_text("{")
    assert silent(installed(home, event()))
    assert logged(home) == [("error", [])]
    home.overlay.unlink()
    assert context(installed(home, event(session_id="two")))


def test_half_of_the_families_are_held_out_and_what_they_missed_is_logged(home: Home) -> None:
    sessions = [f"session-{number}" for number in range(60)]
    spoken = {one for one in sessions if answered(home, event(session_id=one), EVEREST_HOLDOUT="")}
    assert 15 < len(spoken) < 45
    entries = ledger.read(home, ("recall",)).entries
    for entry in entries:
        shown = entry["session_id"] in spoken
        assert (entry["reason"], entry["rendered"]) == (
            ("shown", True) if shown else ("held_out", False)
        )
        assert RULE["id"] in entry["lesson_ids"]
    assert len(entries) == len(sessions)


def test_a_fork_belongs_to_the_family_of_its_root(home: Home, tmp_path: Path) -> None:
    root, fork = tmp_path / "root.jsonl", tmp_path / "fork.jsonl"
    answered(home, event(session_id="root", transcript_path=str(root)))  # no transcript yet
    root.write_text('{"type":"summary"}\n{"uuid":"first-record","sessionId":"root"}\n')
    answered(home, event(prime.TOOL, session_id="root", transcript_path=str(root)))
    fork.write_text(root.read_text().replace('"root"', '"fork"'))
    answered(home, event(session_id="fork", transcript_path=str(fork)))
    entries = ledger.read(home, ("recall",)).entries
    assert [entry["family_id"] for entry in entries] == ["root", "root", "root"]
    assert entries[-1]["session_id"] == "fork"


def test_withheld_lessons_are_left_out_for_a_week_and_logged(home: Home) -> None:
    pinned = lesson("Use npm to install dependencies as pinned.", state="pinned")
    publish(home, "g2", [*LESSONS, pinned])
    said = answered(home, event(), EVEREST_WITHHOLD="1")
    assert pinned["text"] in said and RULE["text"] not in said
    reasons = dict(logged(home))
    assert RULE["id"] in reasons["withheld"] and reasons["shown"] == [pinned["id"]]
    weeks = {arms.iso_week(NOW + week * 7 * 86_400_000_000) for week in range(60)}
    hits = sum(arms.is_withheld(RULE["id"], "stated", 0.5, week) for week in weeks)
    assert len(weeks) == 60 and 15 < hits < 45


def test_the_budget_is_kept_by_leaving_lessons_out_whole(home: Home) -> None:
    said = answered(home, event(), EVEREST_BUDGET="75")
    shown = json.loads(said)["hookSpecificOutput"]["additionalContext"]
    assert tokens(shown) <= 75 and RULE["text"] in shown
    assert answered(home, event(session_id="two"), EVEREST_BUDGET="20") == ""
    assert logged(home)[-1][0] == "nothing_fits" and RULE["id"] in logged(home)[-1][1]


def test_settings_of_the_file_hold_however_they_are_written(home: Home) -> None:
    written = ("holdout = 1", "'holdout'=1.0 # all", "x = 1\nholdout= 1\n[t]\n")
    for number, text in enumerate(written):
        home.config.write_text(text)
        assert answered(home, event(session_id=f"a{number}"), EVEREST_HOLDOUT="") == ""
        assert answered(home, event(session_id=f"b{number}"), EVEREST_HOLDOUT="0") != ""
    assert {reason for reason, _ in logged(home)} == {"held_out", "shown"}


@pytest.mark.parametrize(
    "given",
    [
        b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe{}", b"{}" * 9,
        b'{"hook_event_name":"SessionStart"}', b'{"hook_event_name":["Stop"]}',
        b'{"hook_event_name":"UserPromptSubmit"}',
        b'{"hook_event_name":"UserPromptSubmit","prompt":7,"cwd":{},"session_id":[]}',
        b'{"hook_event_name":"PreToolUse","tool_input":"x","session_id":"../../x"}',
    ],
)  # fmt: skip
def test_what_is_no_event_is_answered_with_silence(home: Home, given: bytes) -> None:
    assert silent(installed(home, given))
    assert not (home.root / "x").exists()
    assert context(installed(home, event()))


def test_sessions_with_hostile_names_stay_inside(home: Home) -> None:
    for number, name in enumerate(("../../evil", "a/b", "x" * 500, "", "\n", "ü")):
        assert answered(home, event(session_id=name)) != "", number
    assert not list(home.root.parent.glob("evil*"))
    assert len(list((home.root / "hooks" / "sessions").iterdir())) == 6


def snapshots(home: Home) -> Iterator[str]:
    """Ways in which a publication can be missing or broken, one after the other."""
    file = home.published / "g1" / FILE_NAME
    whole = file.read_bytes()
    file.unlink()
    yield "gone"
    file.write_bytes(whole[: len(whole) // 2])
    yield "half written"
    file.write_bytes(b"not a database at all")
    yield "not a database"
    file.write_bytes(whole)
    import sqlite3

    connection = sqlite3.connect(file)
    connection.execute("UPDATE meta SET value = '99' WHERE name = 'version'")
    connection.commit()
    connection.close()
    yield "of a newer version"
    home.current.unlink()
    yield "no generation"
    home.current.symlink_to("gone")
    yield "a link to nowhere"
    home.current.unlink()
    home.current.symlink_to("current")
    yield "a link to itself"


def test_a_broken_snapshot_is_silence_and_an_error_in_the_ledger(home: Home) -> None:
    for number, what in enumerate(snapshots(home)):
        assert silent(installed(home, event(session_id=f"s{number}"))), what
        assert logged(home)[-1][0] == "error", what
    publish(home, "g2", LESSONS)
    assert RULE["text"] in context(installed(home, event()))


def as_somebody_else(call: Callable[[], str]) -> str:
    """What `call` gives in a child that may not write: root may write everywhere."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        if os.geteuid() == 0:
            os.setuid(65534)
        os.write(writes, call().encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    return said


def test_a_home_that_cannot_be_written_still_gives_lessons() -> None:
    with tempfile.TemporaryDirectory() as folder:  # one that somebody else may look into
        home = Home(Path(folder) / "home")
        publish(home, "g1", LESSONS)
        assert answered(home, event(session_id="loads all modules"))
        before = sorted(home.root.rglob("*"))
        folders = [path for path in before if path.is_dir() and not path.is_symlink()]
        Path(folder).chmod(0o755)
        for path in (home.root, *before):
            if not path.is_symlink():
                path.chmod(0o555 if path.is_dir() else 0o444)
        try:
            assert RULE["text"] in as_somebody_else(lambda: answered(home, event()))
            assert sorted(home.root.rglob("*")) == before
            assert len(logged(home)) == 1
        finally:
            for path in (home.root, *folders):
                path.chmod(0o755)


def test_a_ledger_that_is_held_or_torn_disturbs_nobody(home: Home) -> None:
    ledger.append(home, "note", {"text": "x"}, now=NOW)
    with Lock(str(home.ledger)):
        start = time.monotonic()
        assert silent(installed(home, event()))
        assert time.monotonic() - start < 10  # the hook itself gives up after a quarter of a second
    note = next(home.ledger.glob("note/*.jsonl"))
    with note.open("ab") as file:
        file.write(b'{"id":')
    assert RULE["text"] in context(installed(home, event()))
    assert ledger.verify(home) == [] and logged(home)[-1][0] == "shown"


def test_a_hook_that_waits_for_its_input_leaves_within_a_second(home: Home) -> None:
    child = subprocess.Popen(
        ["/bin/sh", "-c", bundle.command(home.root)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRON,
    )  # fmt: skip
    try:
        assert child.wait(timeout=20) == 0
        assert child.stdout is not None and child.stdout.read() == b""
    finally:
        child.kill()
        child.communicate()


def test_the_hook_outlives_its_interpreter_its_modules_and_its_home(home: Home) -> None:
    command = bundle.command(home.root)
    modules = next((home.root / "hooks").glob("*.bin"))
    data = modules.read_bytes()
    for broken in (b"", data[:40], data[: len(data) // 2]):
        modules.write_bytes(broken)
        done = installed(home, event(session_id=str(len(broken))))
        assert (done.returncode, done.stderr) == (0, b"")
    modules.unlink()
    assert RULE["text"] in context(installed(home, event()))  # from the package itself
    gone = command.replace(bundle.interpreter(), "/nowhere/python")
    done = subprocess.run(["/bin/sh", "-c", gone], input=b"{}", capture_output=True, check=False)
    assert silent(done)
    shutil.rmtree(home.root)
    done = installed(home, event())
    assert done.stdout == b""


def test_another_home_is_moved_to_by_the_variable(home: Home, tmp_path: Path) -> None:
    other = Home(tmp_path / "other")
    publish(other, "g1", [lesson("Use npm to install dependencies from the mirror.")])
    said = context(installed(home, event(), EVEREST_HOME=str(other.root)))
    assert "from the mirror" in said
    assert logged(home) == [] and len(logged(other)) == 1


def test_the_bundle_is_made_anew_only_when_the_package_changed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = next((home.root / "hooks").glob("*.bin"))
    before = modules.stat().st_mtime_ns
    bundle.write(home.root)
    assert bundle.is_current(home.root) and modules.stat().st_mtime_ns == before
    monkeypatch.setattr(bundle, "_stamp", lambda: b"x" * 32)
    assert not bundle.is_current(home.root)
    bundle.refresh(home.root)
    assert bundle.is_current(home.root) and modules.stat().st_mtime_ns != before


def test_an_answer_loads_what_is_listed_in_that_order_and_nothing_heavy(home: Home) -> None:
    ledger.append(home, "note", {"text": "the key of the chain is there"}, now=NOW)
    code = (home.root / "hooks" / bundle.ENTRY).read_text().rpartition("try:\n    run()")[0]
    script = (
        f"{code}\nbefore = set(sys.modules)\nsystem._exit = lambda code: None\nrun()\n"
        "new = [name for name in sys.modules if name not in before]\n"
        "system.write(2, repr(new).encode())"
    ).replace("__file__", repr(str(home.root / "hooks" / bundle.ENTRY)))
    done = subprocess.run(
        [bundle.interpreter(), "-I", "-S", "-c", script],
        input=json.dumps(event()).encode(), capture_output=True, check=False,
        env={**ENVIRON, "HOME": "/nowhere"},
    )  # fmt: skip
    assert RULE["text"] in done.stdout.decode()
    names = eval(done.stderr)
    heavy = {"re", "json", "typing", "collections", "pathlib", "functools", "hashlib", "os"}
    assert not heavy & set(names)
    ours = [name for name in names if name.count(".") == 2]
    hot = [f"everest_pipelines.{name}" for name in bundle._HOT]
    assert ours == [name for name in hot if name in ours]
