"""A native scanner only makes redaction faster: the same lines come out."""

from __future__ import annotations

import builtins
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everest_pipelines.night.scan import WORTH_BYTES, Scan, native_suspects, scan_for
from everest_pipelines.text.redact import may_hold_secret, redact_bytes
from everest_pipelines_tests.text.test_redact import SECRETS

pytest.importorskip("hyperscan", reason="the extra `fast` is not installed")
NATIVE = native_suspects()
FAST = scan_for(WORTH_BYTES)
EACH = [(name, secret.encode()) for name, secrets in SECRETS.items() for secret in secrets]


def test_every_rule_can_be_asked_of_the_native_scanner() -> None:
    assert NATIVE is not None
    assert FAST.suspects is not may_hold_secret
    assert not FAST.suspects(b'{"type":"user","message":{"content":"run the tests, please"}}')
    assert not FAST.suspects(b"")


@pytest.mark.parametrize(("name", "secret"), EACH)
def test_what_is_redacted_is_suspected(name: str, secret: bytes) -> None:
    cuts = 0
    for around in (b"%s", b'{"text":"%s"}', b'"a\\n%s\\n"', b"\xff\x00 %s\n\n", b"x = %s;"):
        line = around % secret
        cut = redact_bytes(line)
        if cut != line:
            cuts += 1
            assert FAST.suspects(line)
            assert FAST.suspects(b"plain\n" * 9000 + line + b"\nplain" * 9000)
        assert FAST.redact(line) == cut
    assert cuts, f"the control: a secret of {name} is one"


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.sampled_from([secret for _, secret in EACH]),
            st.binary(max_size=12),
            st.sampled_from([b" ", b"\n", b'\\"', b'"', b"=", b": ", b"token", b"-----", b"\\/"]),
        ),
        max_size=8,
    ),
    st.randoms(use_true_random=False),
)
def test_any_bytes_are_redacted_the_same_both_ways(parts: list[bytes], luck: random.Random) -> None:
    line = b"".join(parts)
    if line and luck.random() < 0.5:
        start = luck.randrange(len(line))
        line = line[:start] + line[start + luck.randrange(1, 6) :]
    cut = redact_bytes(line)
    assert FAST.redact(line) == cut
    if cut != line:
        assert FAST.suspects(line)


def test_real_transcripts_are_redacted_the_same_both_ways(shared: Path) -> None:
    changed = 0
    for path in sorted((shared / "transcripts").rglob("*.jsonl"))[::9]:
        for line in path.read_bytes().split(b"\n"):
            cut = redact_bytes(line) if may_hold_secret(line) else line
            changed += cut != line
            assert FAST.redact(line) == cut
    assert changed, "the control: some line holds what looks like a secret"


def test_without_the_native_scanner_the_anchors_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name == "hyperscan":
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    assert scan_for(WORTH_BYTES) == Scan()
    assert scan_for(WORTH_BYTES).suspects is may_hold_secret
    monkeypatch.undo()
    assert scan_for(WORTH_BYTES - 1) == Scan(), "for little the scanner is not made"
