"""The ledger keeps what it took, in order, whoever dies, and shows what was altered."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everest_pipelines.text import bare, ledger
from everest_pipelines.text.errors import CallerError
from everest_pipelines.text.home import Home

NOW = 1_790_000_000_000_000
DAY = 86_400_000_000


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def only_file(home: Home, kind: str) -> Path:
    (path,) = (home.ledger / kind).glob("*.jsonl")
    return path


def test_what_is_appended_is_read_in_order_over_all_kinds(home: Home) -> None:
    kinds = ["review", "note", "review", "recall", "veto"]
    written = [ledger.append(home, k, {"n": i}, now=NOW + i) for i, k in enumerate(kinds)]
    seen = ledger.read(home)
    assert seen.entries == written
    assert [entry["kind"] for entry in seen.entries] == kinds
    assert seen.torn == []
    assert seen.last_id == written[-1]["id"]
    assert ledger.read(home, kinds=["review"]).entries == [written[0], written[2]]
    assert ledger.verify(home) == []
    assert ledger.read(Home(home.root / "nowhere")).entries == []


def test_entries_stay_in_order_when_the_clock_goes_back(home: Home) -> None:
    first = ledger.append(home, "note", {"n": 1}, now=NOW)
    second = ledger.append(home, "note", {"n": 2}, now=NOW - 90 * DAY)
    assert second["id"] > first["id"]
    assert second["recorded_at"] == NOW - 90 * DAY
    assert only_file(home, "note").read_bytes().count(b"\n") == 2
    assert ledger.verify(home) == []


def test_until_leaves_out_what_was_recorded_at_that_instant_or_later(home: Home) -> None:
    for offset in (0, 1, 2):
        ledger.append(home, "review", {"n": offset}, now=NOW + offset)
    assert [e["n"] for e in ledger.read(home, until=NOW + 2).entries] == [0, 1]


def test_months_go_to_their_own_files(home: Home) -> None:
    for step in range(3):
        ledger.append(home, "event", {"n": step}, now=NOW + step * 31 * DAY)
    assert len(list((home.ledger / "event").glob("*.jsonl"))) == 3
    assert [e["n"] for e in ledger.read(home).entries] == [0, 1, 2]
    assert ledger.verify(home) == []


def test_every_text_is_redacted_before_it_is_written(home: Home) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    entry = {"text": f"use {secret}", "deep": [{"more": secret, secret: 1}], "lone": "a\ud800b"}
    written = ledger.append(home, "note", entry, now=NOW)
    assert written["text"] == "use [REDACTED:github]"
    assert written["lone"] == "a\ufffdb"
    assert secret.encode() not in only_file(home, "note").read_bytes()


@pytest.mark.parametrize(
    ("kind", "entry"),
    [
        ("gossip", {}),
        ("note", {"id": "mine"}),
        ("note", {"chain": "x"}),
        ("note", {"value": float("nan")}),
        ("note", {"value": b"bytes"}),
        ("note", {"value": {1: 2}}),
        ("note", {"value": {"forgotten": "abc"}}),
    ],
)
def test_what_the_ledger_cannot_hold_is_refused_and_leaves_nothing(
    home: Home, kind: str, entry: dict[str, object]
) -> None:
    with pytest.raises(CallerError):
        ledger.append(home, kind, entry, now=NOW)
    assert ledger.read(home).entries == []
    ledger.append(home, "note", {"value": {"a": [1, 2.5, None, True, "x"]}}, now=NOW)
    assert len(ledger.read(home).entries) == 1


def test_a_torn_last_line_is_set_aside_by_the_next_append_of_any_kind(home: Home) -> None:
    kept = ledger.append(home, "review", {"n": 1}, now=NOW)
    path = only_file(home, "review")
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"id":"torn')
    seen = ledger.read(home)
    assert seen.entries == [kept]
    assert [(torn.line, torn.tail) for torn in seen.torn] == [(2, True)]
    assert ledger.verify(home) == []
    ledger.append(home, "note", {"n": 2}, now=NOW + 1)
    assert path.read_bytes() == whole
    (aside,) = (home.quarantine / "ledger").iterdir()
    assert aside.read_bytes() == b'{"id":"torn'
    assert ledger.read(home).torn == []
    assert ledger.verify(home) == []


def test_a_damaged_line_in_the_middle_costs_itself_alone(home: Home) -> None:
    for step in range(3):
        ledger.append(home, "note", {"n": step}, now=NOW + step)
    path = only_file(home, "note")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"\0\0\0\n[1]\n" + lines[1] + lines[2])
    seen = ledger.read(home)
    assert [e["n"] for e in seen.entries] == [0, 1, 2]
    assert [torn.line for torn in seen.torn] == [2, 3]
    assert len(ledger.verify(home)) == 2


def test_an_altered_removed_or_moved_entry_is_named(home: Home) -> None:
    for step in range(4):
        ledger.append(home, "note", {"n": step, "text": "as it was"}, now=NOW + step)
    path = only_file(home, "note")
    good = path.read_bytes()
    lines = good.splitlines(keepends=True)
    assert ledger.verify(home) == []
    for bad in (
        good.replace(b"as it was", b"as it is", 1),
        good.replace(str(NOW + 2).encode(), str(NOW - 2).encode(), 1),
        b"".join(lines[:1] + lines[2:]),
        good + lines[-1],
    ):
        path.write_bytes(bad)
        assert len(ledger.verify(home)) >= 1
    path.write_bytes(good)
    path.rename(home.ledger / "note" / "2020-01.jsonl")
    assert ledger.verify(home) == []  # the name of the file is no part of the chain
    (home.ledger / ".key").unlink()
    assert len(ledger.verify(home)) == 1


def test_a_forgotten_value_is_gone_and_the_chain_holds(home: Home) -> None:
    for step in range(3):
        ledger.append(home, "note", {"n": step, "text": f"forget me {step}"}, now=NOW + step)
    path = only_file(home, "note")
    path.write_bytes(path.read_bytes() + b'{"text":"forget me 1')
    changed = ledger.blank(home, lambda entry: ["text", "absent"] if entry["n"] == 1 else [])
    assert changed == 1
    assert b"forget me 1" not in path.read_bytes()
    seen = ledger.read(home).entries
    assert "text" not in seen[1] and seen[1]["forgotten"] == ["text"] and seen[1]["n"] == 1
    assert seen[0]["text"] == "forget me 0"
    assert ledger.verify(home) == []
    ledger.append(home, "veto", {"n": 9}, now=NOW + 9)
    assert ledger.verify(home) == []
    assert ledger.blank(home, lambda entry: ["text"] if entry["n"] == 1 else []) == 0


def test_files_are_the_owners_alone(home: Home) -> None:
    ledger.append(home, "note", {"n": 1}, now=NOW)
    assert (home.root.stat().st_mode & 0o777) == 0o700
    for path in [only_file(home, "note"), home.ledger / ".key", home.ledger / ".lock"]:
        assert (path.stat().st_mode & 0o777) == 0o600, path


WRITER = """
import sys
from pathlib import Path
from everest_pipelines.text import ledger
from everest_pipelines.text.home import Home
home, start, kind = Home(Path(sys.argv[1])), int(sys.argv[2]), sys.argv[3]
for n in range(100_000):
    entry = ledger.append(home, kind, {"n": n, "text": "word " * 400}, now=start + n)
    sys.stdout.write(entry["id"] + "\\n")
    sys.stdout.flush()
"""


def start_writer(home: Home, kind: str, start: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", WRITER, str(home.root), str(start), kind]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ})


def test_kill_minus_nine_at_any_instant_loses_no_acknowledged_entry(home: Home) -> None:
    chance = random.Random(7)
    acknowledged: set[str] = set()
    for turn in range(8):
        writers = [start_writer(home, kind, NOW + turn * DAY) for kind in ("note", "recall")]
        for writer in writers:
            assert writer.stdout is not None
            acknowledged.add(writer.stdout.readline().decode().strip())
        time.sleep(chance.random() * 0.05)
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
        for writer in writers:
            assert writer.stdout is not None
            told = writer.stdout.read().decode()
            acknowledged.update(told.split("\n")[:-1])
            writer.wait()
            writer.stdout.close()
        seen = {entry["id"] for entry in ledger.read(home).entries}
        assert acknowledged <= seen
        assert ledger.verify(home) == []
    ledger.append(home, "note", {"n": -1}, now=NOW)
    assert ledger.read(home).torn == []
    assert len(acknowledged) > 16


def test_a_line_cut_at_any_byte_is_survived(home: Home) -> None:
    ledger.append(home, "note", {"n": 1}, now=NOW)
    path = only_file(home, "note")
    first = path.read_bytes()
    ledger.append(home, "note", {"n": 2, "text": "é" * 9}, now=NOW + 1)
    second = path.read_bytes()
    for size in range(len(first), len(second)):
        path.write_bytes(second[:size])
        assert [e["n"] for e in ledger.read(home).entries] == [1]
        ledger.append(home, "note", {"n": 3}, now=NOW + 2)
        assert [e["n"] for e in ledger.read(home).entries] == [1, 3]
        assert ledger.verify(home) == []


def test_the_newest_entry_is_found_behind_long_lines(home: Home) -> None:
    ledger.append(home, "note", {"text": "x y " * 60_000}, now=NOW)
    last = ledger.append(home, "note", {"text": "x y " * 60_000}, now=NOW)
    assert json.loads(only_file(home, "note").read_bytes().splitlines()[-1])["id"] == last["id"]
    assert ledger.verify(home) == []


_FLOATS = st.floats(allow_nan=False, allow_infinity=False)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | _FLOATS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(_VALUES, st.binary(max_size=200), st.binary(max_size=90))
def test_the_light_parts_say_what_the_standard_modules_say(
    value: Any, message: bytes, key: bytes
) -> None:
    compact = {"separators": (",", ":"), "allow_nan": False}
    assert bare.dumps(value) == json.dumps(value, ensure_ascii=False, **compact)
    assert bare.dumps(value, canonical=True) == json.dumps(value, sort_keys=True, **compact)
    assert bare.loads(f" {json.dumps(value)}\n") == value
    assert bare.hmac_sha256(key, message) == hmac.new(key, message, hashlib.sha256).hexdigest()


@pytest.mark.parametrize("text", ["", " ", "{", "{} {}", "nul", '{"a":}', "[1,]"])
def test_what_is_no_json_is_refused_by_the_light_reader(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        bare.loads(text)
    assert bare.loads("{}") == {}
    with pytest.raises(ValueError, match=r"."):
        bare.dumps(math.nan)
