"""Secrets are cut out before anything is stored. The rules are data: ``redact_rules.json``.

Two steps. An *anchor* is a cheap pattern that begins with a literal, so that the search runs at the
speed of memchr; text without a hit of any anchor is returned as it is. Around a hit the exact
rules that name the anchor run. A rule never matches across a quote or half an escape, so a raw line
of JSON stays valid.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T", str, bytes)

_MARK = "[REDACTED:"
_REACH = 72  # how far before its anchor's hit a secret may begin
_AHEAD = 640  # how far behind the hit its first needed characters may lie
_ROUNDS = 8  # a cut can lay a second secret bare; more than two rounds were never seen
# Before a token: no letter that makes it the end of a longer word, except the letter of an escape.
# A lone backslash is refused, for the token's first letter would be the escape's.
_ESCAPE = r"(?<=\\n)|(?<=\\r)|(?<=\\t)|(?<=\\u00[0-9a-f][0-9a-f])"
_LEFT = {
    "none": "",
    "word": rf"(?:(?<![A-Za-z0-9_\\-])|{_ESCAPE})",
    "base64": rf"(?:(?<![A-Za-z0-9_\\/+-])|{_ESCAPE})",
}
_PLACEHOLDER = re.compile(
    r"(?i)x{4}|\*{3}|\.\.\.|your|example|placeholder|changeme|redacted|dummy|_here|\$\{|^\$|\$\("
    r"|process\.env|environ|getenv|secrets\.|config\.|self\.|this\.|%s"
)
_UUID = re.compile(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HEX = re.compile(r"[0-9a-fA-F]+")
_DATE = re.compile(r"\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d")


@dataclass(frozen=True)
class _Rule(Generic[T]):
    name: str
    pattern: re.Pattern[T]
    reach: int
    ahead: int
    secret: int
    word: int
    check: Callable[[str, str], bool] | None


@dataclass(frozen=True)
class _Anchor(Generic[T]):
    pattern: re.Pattern[T]
    rules: tuple[_Rule[T], ...]


@dataclass(frozen=True)
class _Rules(Generic[T]):
    anchors: tuple[_Anchor[T], ...]


def redact(text: str) -> str:
    """`text` with every secret replaced by ``[REDACTED:<rule>]``. Twice is the same as once."""
    for _ in range(_ROUNDS):
        cut = _cut(text, _text_rules(), str)
        if cut == text:
            break
        text = cut
    return text


def redact_bytes(data: bytes) -> bytes:
    """The same for raw bytes, such as lines of JSON, which stay valid; the input when clean."""
    for _ in range(_ROUNDS):
        cut = _cut(data, _byte_rules(), _readable)
        if cut == data:
            break
        data = cut
    return data


def may_hold_secret(data: bytes) -> bool:
    """Whether `redact_bytes` could change anything: one look over a whole block of lines.

    False is certain. Ask it of blocks of some 256 KB and redact line by line only after a True.
    """
    return any(anchor.pattern.search(data) for anchor in _byte_rules().anchors)


def secrets_in(text: str) -> list[str]:
    """The names of the rules that fire in `text`, sorted, each once: the leak gate's question."""
    return sorted({rule for rule, _, _ in findings(text)})


def findings(text: str) -> list[tuple[str, int, int]]:
    """Every secret of `text` as (rule, start, end), in order, without overlaps."""
    return _apart(_found(text, _text_rules(), str))


def _readable(raw: bytes) -> str:
    return raw.decode("latin-1")


def _cut(data: T, rules: _Rules[T], readable: Callable[[T], str]) -> T:
    found = _found(data, rules, readable)
    if not found:
        return data
    parts: list[T] = []
    done = 0
    for name, start, end in _apart(found):
        parts.append(data[done:start])
        mark = f"{_MARK}{name}]"
        parts.append(cast("T", mark if isinstance(data, str) else mark.encode()))
        done = end
    parts.append(data[done:])
    joined: object = data[:0].join(cast("Any", parts))
    return cast("T", joined)


def _found(data: T, rules: _Rules[T], readable: Callable[[T], str]) -> list[tuple[str, int, int]]:
    found: list[tuple[str, int, int]] = []
    for anchor in rules.anchors:
        for hit in anchor.pattern.finditer(data):
            for rule in anchor.rules:
                found.extend(_around(data, hit.start(), hit.end(), rule, readable))
    return found


def _around(
    data: T, hit_start: int, hit_end: int, rule: _Rule[T], readable: Callable[[T], str]
) -> Iterator[tuple[str, int, int]]:
    """The secrets of `rule` that begin at most its reach before the hit, and not after it."""
    position = max(0, hit_start - rule.reach)
    limit = hit_end + rule.ahead
    while near := rule.pattern.search(data, position, limit):
        if near.start() >= hit_end:
            return
        # The limit may have cut it short.
        match = rule.pattern.match(data, near.start()) or near
        first, last = match.span(rule.secret)
        word = readable(match[rule.word]) if rule.word else ""
        if rule.check is None or rule.check(readable(data[first:last]), word):
            yield rule.name, first, last
            position = last
        else:
            position = match.start() + 1


def _apart(found: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """Without overlaps: the earlier and longer finding keeps its name and covers the other."""
    kept: list[tuple[str, int, int]] = []
    for name, start, end in sorted(found, key=lambda item: (item[1], -item[2])):
        if kept and start < kept[-1][2]:
            before = kept[-1]
            kept[-1] = (before[0], before[1], max(before[2], end))
        else:
            kept.append((name, start, end))
    return kept


# --- is it a secret? each check gets the candidate and the word it was assigned to ---


def _entropy(text: str) -> float:
    """Bits per character."""
    size = len(text)
    return -sum(n / size * math.log2(n / size) for n in Counter(text).values())


def _digits(secret: str, _: str) -> bool:
    """Kebab-case names have few digits; keys have many."""
    return sum(sign.isdigit() for sign in secret) >= 3 and _entropy(secret) >= 3.0


def _mixed(secret: str, _: str) -> bool:
    return (
        any(sign.isdigit() for sign in secret)
        and any(sign.isupper() for sign in secret)
        and any(sign.islower() for sign in secret)
        and _entropy(secret) >= 4.0
    )


def _given(secret: str, _: str) -> bool:
    """A real value, no hole to be filled in."""
    return not (secret[0] in "$<{%*[" or _MARK in secret or _PLACEHOLDER.search(secret))


def _header(secret: str, _: str) -> bool:
    return (
        len(secret) >= 12
        and not _PLACEHOLDER.search(secret)
        and any(sign.isdigit() for sign in secret)
        and _entropy(secret) >= 3.0
    )


def _assigned(secret: str, word: str) -> bool:
    """What follows ``password =`` is a secret when it looks random, neither name, path nor code."""
    if _PLACEHOLDER.search(secret) or _UUID.fullmatch(secret) or _DATE.search(secret):
        return False
    digits = sum(sign.isdigit() for sign in secret)
    letters = sum(sign.isalpha() and sign.isascii() for sign in secret)
    if not letters or digits < 2 or secret[:2] in ("./", "~/", "//") or "://" in secret:
        return False
    is_password = word.casefold().startswith("pass")
    if _HEX.fullmatch(secret):
        # A hash may be the value of a "token"; of a password, secret or key only a secret is.
        return len(secret) >= 20 and word.casefold() != "token"
    both_cases = any(s.islower() for s in secret) and any(s.isupper() for s in secret)
    signs = any(not s.isalnum() for s in secret)
    if is_password and (both_cases or signs):
        return len(secret) >= 8 and _entropy(secret) >= 2.75 and not _is_name(secret)
    return len(secret) >= 16 and _entropy(secret) >= 3.5 and not _is_name(secret)


_NAME_PART = re.compile(r"[A-Z]?[a-z]{2,}\d{0,3}|[A-Z]{2,}\d{0,3}|\d{1,4}|v\d+")


def _is_name(text: str) -> bool:
    """Made of words, as identifiers, paths and file names are: at most a fifth is anything else."""
    rest = _NAME_PART.sub("", text)
    return sum(sign.isalnum() for sign in rest) * 5 <= len(text) and _words_are_long(text)


def _words_are_long(text: str) -> bool:
    parts = _NAME_PART.findall(text)
    letters = [part for part in parts if part[-1].isalpha() or part[0].isalpha()]
    return bool(letters) and sum(map(len, letters)) / len(letters) >= 3.8


_CHECKS: dict[str, Callable[[str, str], bool]] = {
    "digits": _digits,
    "mixed": _mixed,
    "given": _given,
    "header": _header,
    "assigned": _assigned,
}


# --- the rules ---


@dataclass(frozen=True)
class RawRule:
    """A rule as it stands in the file; `body` is the pattern without its left boundary."""

    name: str
    anchors: tuple[str, ...]
    body: str
    left: str
    check: str
    reach: int
    ahead: int


@functools.cache
def rule_table() -> tuple[dict[str, str], tuple[RawRule, ...]]:
    """The anchors (name to pattern) and the rules as they stand in the file."""
    file = resources.files("everest_pipelines.text").joinpath("redact_rules.json")
    raw = json.loads(file.read_text("utf-8"))
    rules = tuple(
        RawRule(
            name=rule["name"],
            anchors=tuple(rule["anchor"] if isinstance(rule["anchor"], list) else [rule["anchor"]]),
            body=rule["body"],
            left=rule.get("left", "word"),
            check=rule.get("check", ""),
            reach=rule.get("reach", _REACH),
            ahead=rule.get("ahead", max(_AHEAD, rule.get("reach", 0))),
        )
        for rule in raw["rules"]
    )
    return raw["anchors"], rules


@functools.cache
def _text_rules() -> _Rules[str]:
    return _compiled(lambda source: re.compile(source, re.ASCII))


@functools.cache
def _byte_rules() -> _Rules[bytes]:
    return _compiled(lambda source: re.compile(source.encode()))


def _compiled(compile_: Callable[[str], re.Pattern[T]]) -> _Rules[T]:
    anchors, raw_rules = rule_table()
    rules = [(raw.anchors, _compiled_rule(raw, compile_)) for raw in raw_rules]
    return _Rules(
        tuple(
            _Anchor(compile_(pattern), tuple(rule for names, rule in rules if name in names))
            for name, pattern in anchors.items()
        )
    )


def _compiled_rule(raw: RawRule, compile_: Callable[[str], re.Pattern[T]]) -> _Rule[T]:
    pattern = compile_(_LEFT[raw.left] + f"(?:{raw.body})")
    groups = pattern.groupindex
    return _Rule(
        name=raw.name,
        pattern=pattern,
        reach=raw.reach,
        ahead=raw.ahead,
        secret=groups.get("secret", 0),
        word=groups.get("word", 0),
        check=_CHECKS[raw.check] if raw.check else None,
    )
