"""Secrets are cut, everything else survives, and raw JSON stays JSON."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from everest_pipelines.text.redact import (
    findings,
    may_hold_secret,
    redact,
    redact_bytes,
    rule_table,
    secrets_in,
)

LETTERS = "aZ3kQ9xT7mB2vL5nW8rY4pD6sF1hJ0cG"


def token(head: str, size: int, alphabet: str = LETTERS) -> str:
    """A made-up secret; put together here so that no scanner takes this file for a leak."""
    return head + "".join(alphabet[(7 * i + i // 5) % len(alphabet)] for i in range(size))


HEX = "3f9a1c07e2b84d56"
SECRETS = {
    "github": [token("ghp_", 36), token("github_pat_", 22) + token("_", 59)],
    "gitlab": [token("glpat-", 20)],
    "npm": [token("npm_", 36)],
    "huggingface": [token("hf_", 34)],
    "stripe": [token("sk_live_", 24), token("rk_test_", 24)],
    "anthropic": [token("sk-ant-api03-", 93)],
    "openai": [token("sk-proj-", 120), token("sk-", 48)],
    "slack": [token("xoxb-", 12, "1234567890") + token("-", 24)],
    "google": [token("AIza", 35), token("GOCSPX-", 28), token("ya29.", 60)],
    "aws": [token("AKIA", 16, "ABCDEFGHIJKLMNOP2345")],
    "pypi": [token("pypi-AgEIcHlwaS5vcmc", 120)],
    "sendgrid": [token("SG.", 22) + token(".", 43)],
    "twilio": [token("SK", 32, HEX)],
    "telegram": ["123456789" + token(":AA", 33)],
    "discord": [token("M", 23) + token(".", 6) + token(".", 27)],
    "jwt": [token("eyJ", 33) + token(".eyJ", 60) + token(".", 43)],
    "vault": [token("hvs.", 24)],
    "digitalocean": [token("dop_v1_", 64, HEX)],
    "url-password": ["postgres://app:" + "pg9Xs2Lq" + "@db.internal:5432/app"],
    "authorization": ["Authorization: Bearer " + token("", 40), "Authorization: " + token("", 40)],
    "assignment": [
        "password=" + "xK9#mP2$vL5nQ8",
        'api_key: "' + token("", 32) + '"',
        "AWS_SECRET_ACCESS_KEY=" + token("", 40, LETTERS + "/+"),
        "AccountKey=" + token("", 86) + "==",
        "--token " + token("", 32),
        "clientSecret = '" + token("", 30) + "'",
    ],
    "private-key": [
        "-----BEGIN RSA PRIVATE KEY-----\n"
        + "\n".join(token("", 64) for _ in range(4))
        + "\n-----END RSA PRIVATE KEY-----"
    ],
}
SAMPLES = [(rule, secret) for rule, secrets in SECRETS.items() for secret in secrets]

HARMLESS = [
    "the commit 3f9a1c07e2b84d563f9a1c07e2b84d563f9a1c07 broke the build",
    "sha256:3f9a1c07e2b84d563f9a1c07e2b84d563f9a1c073f9a1c07e2b84d563f9a1c07",
    "session 7b0a3c5e-1d2f-4a6b-8c9d-0e1f2a3b4c5d ended",
    '"toolu_01AbCdEfGhIjKlMnOpQrStUv" and "msg_011xXrAdZnjuPTsj3PxR47br" and req_011CRabcdefghij',
    "/home/dev/projects/token-service/src/secrets/password_reset_v2.py:120",
    r"C:\Users\dev\AppData\Local\key-store\token_cache_2024",
    "token = get_token_from_env()  # no secret",
    "password = os.environ['DB_PASSWORD_2024_PROD']",
    "api_key=${API_KEY_2024_PRODUCTION}",
    "API_KEY=your-key-here-1234567890",
    "https://user:${DB_PASSWORD}@host and https://host:8080/@scope/pkg@1.2.3",
    '"input_tokens":12345678901234,"cache_read_input_tokens":98765432101234',
    "sk-learn-compatible-estimators-are-task-oriented-things",
    "Authorization: Bearer ${TOKEN_FROM_ENVIRONMENT_2}",
    "tokenId: 7b0a3c5e-1d2f-4a6b-8c9d-0e1f2a3b4c5d",
    "const key = generateIssueCommentKey2024(owner, repo)",
    "secret: env.AUTH0_CLIENT_SECRET_2024_PRODUCTION",
    "apiKey: config.oracle.apiKeyV2Production2024",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----",
    "diff --git a/tokens/secret_key_2024.go b/tokens/secret_key_2024.go",
    "the password rules: at least 12 characters, 2 digits",
]


@pytest.mark.parametrize(("rule", "secret"), SAMPLES, ids=lambda value: str(value)[:14])
def test_a_planted_secret_is_cut_wherever_it_stands(rule: str, secret: str) -> None:
    bare = secret.rstrip("=").split("=")[-1].split(" ")[-1].strip("'\"")
    for before, after in [("", ""), ("use ", " now"), ("\n", "\n"), ("(", ")"), ('"', '"')]:
        cut = redact(before + secret + after)
        assert f"[REDACTED:{rule}]" in cut
        assert bare not in cut
        assert cut.startswith(before) and cut.endswith(after)
    assert rule in secrets_in(secret)


@pytest.mark.parametrize(("rule", "secret"), SAMPLES, ids=lambda value: str(value)[:14])
@pytest.mark.parametrize("depth", [1, 2])
def test_a_secret_is_cut_from_raw_json_which_stays_valid(
    rule: str, secret: str, depth: int
) -> None:
    text = f'it said:\n"{secret}"\nand went\ton'
    value: object = {"text": text, "n": 1}
    raw = json.dumps(value)
    for _ in range(depth - 1):
        raw = json.dumps({"outer": raw})
    cut = redact_bytes(raw.encode())
    assert may_hold_secret(raw.encode())
    assert f"[REDACTED:{rule}]".encode() in cut
    seen: object = json.loads(cut)
    for _ in range(depth - 1):
        assert isinstance(seen, dict)
        seen = json.loads(seen["outer"])
    assert isinstance(seen, dict)
    assert seen["text"] == redact(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_paths_hashes_ids_names_and_code_survive(text: str) -> None:
    assert findings(text) == []
    assert redact(text) == text
    raw = json.dumps({"text": text}).encode()
    assert redact_bytes(raw) == raw


def test_a_key_block_without_its_end_is_cut_and_the_prose_behind_a_whole_one_is_kept() -> None:
    block = SECRETS["private-key"][0]
    assert redact(f"before\n{block}\nthen the prose") == (
        "before\n[REDACTED:private-key]\nthen the prose"
    )
    torn = block[: len(block) // 2]
    assert redact_bytes(json.dumps(torn).encode()) == b'"[REDACTED:private-key]"'


def test_the_letter_of_an_escape_is_never_taken_for_the_start_of_a_secret() -> None:
    # In raw JSON this is a newline and then "pm_…"; cutting "npm_…" would leave a lone backslash.
    raw = json.dumps({"t": "\npm_" + "A1b2C3" * 6}).encode()
    assert json.loads(redact_bytes(raw))["t"].startswith("\npm_")
    # And here a value that begins on the next line.
    raw = json.dumps({"t": "password=\n" + "xK9#mP2$vL5nQ8"}).encode()
    json.loads(redact_bytes(raw))


@pytest.mark.parametrize("rule", rule_table()[1], ids=lambda rule: rule.name)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_a_rule_describes_trips_its_anchor_and_is_cut(rule, data) -> None:  # type: ignore[no-untyped-def]
    if rule.name in ("assignment", "private-key", "authorization"):
        return  # look-arounds, or too long for this generator; sampled above
    sample = data.draw(st.from_regex(re.compile(rule.body, re.ASCII), fullmatch=True))
    assume(not re.search("[_-]{3}", sample))  # the anchors allow for three signs in a row
    assume(not rule.check or findings(sample))
    cut = redact(f" {sample} ")
    assert "[REDACTED:" in cut
    assert secrets_in(cut) == []


PIECES = st.sampled_from(
    [secret for _, secret in SAMPLES]
    + HARMLESS
    + [
        "\n",
        "\\",
        '"',
        "'",
        "\\n",
        "-----BEGIN PRIVATE KEY-----",
        "=",
        ":",
        " ",
        "@",
        "://",
        "é",
        "\u2028",
    ]
    + ["password", "token=", "secret: ", "n", "t", "/", "[REDACTED:jwt]", "\\u0041", "Bearer "]
)
TEXTS = st.lists(st.one_of(PIECES, st.text(max_size=6)), max_size=10).map("".join)


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_redacting_twice_is_redacting_once_and_leaves_nothing_to_find(text: str) -> None:
    once = redact(text)
    assert redact(once) == once
    assert secrets_in(once) == []


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.booleans())
def test_raw_json_stays_json_with_the_same_shape(text: str, ascii_only: bool) -> None:
    value = {"a": [text, 1, None], "b": {"c": text}}
    raw = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    cut = redact_bytes(raw)
    seen = json.loads(cut.decode("utf-8", "surrogatepass"))
    assert isinstance(seen["a"][0], str) and seen["a"][1:] == [1, None] and set(seen) == {"a", "b"}
    assert redact_bytes(cut) == cut
    if not may_hold_secret(raw):
        assert cut == raw


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(
        st.uuids(version=4).map(str),
        st.binary(min_size=20, max_size=20).map(bytes.hex),
        st.binary(min_size=32, max_size=32).map(bytes.hex),
        st.lists(st.from_regex(r"[a-z]{2,9}", fullmatch=True), min_size=2, max_size=6).map(
            lambda parts: "/" + "/".join(parts) + ".py"
        ),
    )
)
def test_any_hash_uuid_or_path_survives(text: str) -> None:
    for line in (text, f"at {text}:", f'"uuid":"{text}"', f"git show {text}"):
        assert redact(line) == line


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_at_all_go_through(data: bytes) -> None:
    assert isinstance(redact_bytes(data), bytes)


@settings(max_examples=300, deadline=None)
@given(st.lists(TEXTS, max_size=6))
def test_a_block_without_suspicion_holds_no_line_that_would_be_cut(texts: list[str]) -> None:
    parts = [part for text in texts for part in text.encode("utf-8", "replace").split(b"\n")]
    if not may_hold_secret(b"\n".join(parts)):
        assert [redact_bytes(part) for part in parts] == parts


@pytest.mark.parametrize(("rule", "secret"), SAMPLES, ids=lambda value: str(value)[:14])
def test_a_secret_on_any_line_of_a_block_makes_it_suspect(rule: str, secret: str) -> None:
    line = json.dumps({rule: secret}).encode()
    for block in ([line], [b"{}", line], [line, b"{}"], [b"a" * 100, line, b"b" * 100]):
        assert may_hold_secret(b"\n".join(block))
    for part in secret.encode().split(b"\n"):  # where it begins and ends a line
        if redact_bytes(part) != part:
            assert may_hold_secret(b"x\n" + part + b"\ny")
