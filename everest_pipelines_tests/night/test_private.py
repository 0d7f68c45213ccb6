"""The memory is its owner's alone, and holds no secret that was ever typed or printed."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from everest_pipelines.lake.operational import unpack
from everest_pipelines.night.run import run
from everest_pipelines_tests.night.homes import HORIZON, copy_some, workspace

FOLDER = "-Users-dev2-wks-test-cli-cli"
SESSION = "00000000-0000-4000-8000-000000000001"
SENTENCE = "Always water the sundial before breakfast"
_LETTERS = "Q7xP2mVt9LwZ4cRb8KdN3sHf6GjY5uTa1EoX"
SECRETS = {  # what must go, and what of it would be enough to say that it stayed
    "aws": ("AK" + "IA" + "Q7XP2MVT5LWZ4CRB", "Q7XP2MVT5LWZ4CRB"),
    "github": ("gh" + "p_" + _LETTERS, _LETTERS),
    "key": (
        "-----BEGIN " + "RSA PRIVATE KEY-----\n"
        "MIIEpAIBAAKCAQEAu4Yh7Zq1RstdP0vXnB3kLw8JcFm2eTgN5aQiUoDy6HxKrV9M\n"
        "fWbEzS1lCjGpA7nOtB4ihXvR0uYqKwL3sJmZcP8dTgN5aQiUoDy6HxKrV9MfWbEz\n"
        "-----END " + "RSA PRIVATE KEY-----",
        "CAQEAu4Yh7Zq1RstdP0vXnB3kLw8JcFm2eTgN5aQiUoDy6HxKrV9M",
    ),
}


def _record(number: int, type_: str, message: dict[str, object], **more: object) -> bytes:
    record = {
        "parentUuid": None,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/srv/garden",
        "sessionId": SESSION,
        "version": "2.1.29",
        "gitBranch": "main",
        "type": type_,
        "message": message,
        "uuid": f"00000000-0000-4000-8001-{number:012}",
        "timestamp": f"2026-02-03T00:25:{number:02}.150Z",
        **more,
    }
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def _transcript(text: str) -> bytes:
    """A session in which the text sits wherever text can sit, and a torn and a strange line."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": text}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": text, "is_error": True}
    answer = {"id": "msg_1", "role": "assistant", "model": "m"}
    torn = _record(5, "user", {"role": "user", "content": f"{text} and then it was"})
    return b"".join(
        (
            _record(1, "user", {"role": "user", "content": f"{text}. {SENTENCE}."}),
            _record(2, "assistant", answer | {"content": [{"type": "text", "text": text}]}),
            _record(3, "assistant", answer | {"content": [call]}),
            _record(4, "user", {"role": "user", "content": [result]}, toolUseResult=text),
            torn[: torn.index(b" and then")] + b"\n",
            _record(6, "user_9", {"role": "user", "content": text}),
            f"no JSON at all: {text!r}\n".encode(),
            _record(7, "user", {"role": "user", "content": f"No, that is wrong: use {text}"}),
            _record(8, "user", {"role": "user", "content": f"{text} at the torn end"})[:-20],
        )
    )


@pytest.fixture(scope="module")
def home(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("private")
    claude = copy_some(shared / "transcripts" / "claude", root / "claude", (FOLDER,))
    for name, (secret, _) in SECRETS.items():
        path = claude / "projects" / FOLDER / f"{name}.jsonl"
        path.write_bytes(_transcript(secret).replace(SESSION.encode(), SESSION[:-1].encode()))
    before = os.umask(0)  # no help from there
    try:
        run(workspace(root / "home", claude), HORIZON)
        run(workspace(root / "home", claude), "2026-07-18")
    finally:
        os.umask(before)
    return root / "home"


def _contents(home: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file below the home as it is, and what is packed in it."""
    for path in sorted(home.rglob("*")):
        if not path.is_file() or path.is_symlink():
            continue
        yield path, path.read_bytes()
        if path.suffix == ".zst":
            with pa.input_stream(str(path), compression="zstd") as stream:
                yield path, stream.read()
        if path.suffix == ".parquet":
            table = pq.read_table(path, partitioning=None)
            yield path, json.dumps(table.to_pylist(), default=str, ensure_ascii=False).encode()
            if path.is_relative_to(home / "quarantine"):  # published, it is text
                yield path, b"\n".join(map(unpack, table.column("content").to_pylist()))


def test_nobody_else_can_read_anything(home: Path) -> None:
    modes = {
        path: stat.S_IMODE(path.lstat().st_mode)
        for path in (home, *home.rglob("*"))
        if not path.is_symlink()
    }
    assert len(modes) > 50
    wrong = {
        str(path): oct(mode)
        for path, mode in modes.items()
        if mode != (0o700 if path.is_dir() else 0o600)
    }
    assert not wrong


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_in_no_byte_below_the_home(home: Path, name: str) -> None:
    _, part = SECRETS[name]
    seen = [str(path) for path, content in _contents(home) if part.encode() in content]
    assert not seen
    marked = [path for path, content in _contents(home) if b"[REDACTED:" in content]
    places = {path.relative_to(home).parts[0] for path in marked}
    assert {"lake", "raw", "quarantine", "published"} <= places, "the control: it was there"


def test_what_was_said_is_in_the_lake_and_in_no_name(home: Path) -> None:
    seen = {path for path, content in _contents(home) if SENTENCE.encode() in content}
    assert any(path.is_relative_to(home / "lake" / "transcripts") for path in seen)
    words = {word.lower() for word in SENTENCE.split() if len(word) > 5}
    for path in home.rglob("*"):
        name = str(path.relative_to(home)).lower()
        assert not any(word in name for word in words), path


def test_what_was_said_is_in_no_log_of_the_ledger(home: Path) -> None:
    entries = b"".join(path.read_bytes() for path in (home / "ledger").rglob("*.jsonl"))
    assert entries, "the control: there is a ledger"
    assert SENTENCE.encode() not in entries
