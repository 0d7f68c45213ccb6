"""Words, vectors and value keys: deterministic, and alike where people mean the same."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everest_pipelines.text.hashed import DIMENSION, embed, mask_error
from everest_pipelines.text.tokens import content_words, normalize, search_terms, words
from everest_pipelines.text.value_key import folded, value_key


def cosine(first: str, second: str) -> float:
    return sum(a * b for a, b in zip(embed(first), embed(second), strict=True))


def test_words_are_cut_as_people_read_them() -> None:
    assert words("Don't use npm; use PNPM 3.11!") == ["don't", "use", "npm", "use", "pnpm", "3.11"]
    assert words("don\u2019t") == ["don't"]
    assert words("Stra\u00dfe \uff26\uff35\uff2c\uff2c") == ["strasse", "full"]
    assert words("用pnpm安装") == ["用", "pnpm", "安", "装"]
    assert words("हिन्दी में") == ["हिन्दी", "में"]
    assert words("snake_case lib/a.py") == ["snake_case", "lib", "a", "py"]
    assert words("…!?") == []


def test_stop_words_of_four_languages_are_dropped_and_matter_stays() -> None:
    assert content_words("Please do not push to main") == ["push", "main"]
    assert content_words("Bitte nicht auf main pushen") == ["main", "pushen"]
    assert content_words("por favor no uses npm") == ["uses", "npm"]
    assert content_words("请不要用npm") == ["用", "npm"]
    assert content_words("___ TODO bin") == ["todo", "bin"]


def test_search_terms_pair_neighbouring_cjk_characters() -> None:
    assert search_terms("安装依赖 用 pnpm") == ["安装", "装依", "依赖", "用", "pnpm"]
    assert search_terms("run_tests now") == ["run_tests", "run", "tests", "now"]
    assert search_terms("") == []


_CJK = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003134f"
)
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff\u0e31-\u0e4e"
_LETTER = rf"(?:[^\W{_CJK}]|[{_MARKS}])"
_GRAMMAR = re.compile(
    rf"[{_CJK}]|\d+(?:\.\d+)+(?!\w)|{_LETTER}+(?:['\u2019]{_LETTER}+)*"  # what a word is
)
_TRICKY = "ab1\u06632_._.''\u2019\u2019\u4e2d\u6587\u3042\u30fbe\u0301\u093e ,-\0\u0130\u00df"


@given(st.text(alphabet=_TRICKY, max_size=14) | st.text(max_size=20))
def test_the_cutting_follows_the_grammar_of_words(text: str) -> None:
    found = [(m.start(), m[0].replace("\u2019", "'")) for m in _GRAMMAR.finditer(normalize(text))]
    assert words(text) == [word for _, word in found]
    singles = {at: word for at, word in found if re.fullmatch(f"[{_CJK}]", word)}
    pairs = [word + singles[at + 1] for at, word in singles.items() if at + 1 in singles]
    lone = [w for at, w in singles.items() if at + 1 not in singles and at - 1 not in singles]
    terms = search_terms(text)
    assert sorted(term for term in terms if term[0] in "".join(singles.values())) == sorted(
        pairs + lone
    )
    assert {word for _, word in found} - set(singles.values()) <= set(terms)


@given(st.text())
def test_normalizing_twice_is_normalizing_once(text: str) -> None:
    once = normalize(text)
    assert normalize(once) == once
    assert words(text) == words(once)


@given(st.text())
def test_a_vector_has_length_one_or_stands_for_nothing(text: str) -> None:
    vector = embed(text)
    assert len(vector) == DIMENSION
    norm = math.sqrt(math.fsum(value * value for value in vector))
    assert norm == pytest.approx(1.0) if text.strip() else norm == 0.0


def test_near_duplicates_are_near_and_strangers_far() -> None:
    rule = "Use pnpm, never npm, to install packages in this repository"
    assert cosine(rule, rule.upper() + "!!") == pytest.approx(1.0)
    assert cosine(rule, "use pnpm to install the packages, not npm") > 0.6
    assert abs(cosine(rule, "the login page shows a blank screen on Safari")) < 0.25
    assert cosine("npm", "no, not that") < 0.5
    assert embed("do it again") != embed("no, not that")


def test_vectors_do_not_depend_on_the_hash_seed_or_the_locale() -> None:
    code = (
        "from everest_pipelines.text.hashed import embed\n"
        "from everest_pipelines.text.value_key import value_key\n"
        "print([v.hex() for v in embed('Use pnpm für alle Pakete 安装')], value_key('Use pnpm'))"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": "C", "TZ": zone},
            capture_output=True,
            check=True,
        ).stdout
        for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo"))
    }
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("/home/a/b.py:12: oops", "<path>:<number>: oops"),
        ("No module named 'foo.bar'", "No module named <name>"),
        ("HTTP 404 after 350ms", "HTTP 404 after <number>"),
        ("exit code 127", "exit code 127"),
        ("Exit status: 1 at line 20", "Exit status: 1 at line <number>"),
        ("502 Bad Gateway for https://a.example/x?y=1", "502 Bad Gateway for <url>"),
        ("error TS2345 in src/app.ts(3,4)", "error TS2345 in <path>(<number>,<number>)"),
        (r"cannot open C:\work\x.txt", "cannot open <path>"),
        ("at 0xdeadbeef in 3f9a1c07e2b8", "at <hex> in <hex>"),
        ("ENOENT: no such file or directory, open 'a b'", None),
    ],
)
def test_errors_lose_numbers_paths_and_names_but_keep_their_codes(
    text: str, masked: str | None
) -> None:
    expected = masked or "ENOENT: no such file or directory, open <name>"
    assert mask_error(text) == expected
    assert mask_error(expected) == expected


SAME = [
    ("Use pnpm, not npm.", "use  PNPM - not npm!!"),
    ("Use pnpm", "\u0421\u200buse pnpm"[1:].replace("u", "\u03c5", 1)),  # Greek upsilon
    ("always run tests", "\u0430lways run t\u0435sts"),  # Cyrillic a and e
    ("run tests", "\uff52un\u00a0tests\ufe0f \u2705"),
    ("run tests", "`run`\n\u200b tests\u00ad"),
    ("a \u2192 b", "a -> b"),
]
DIFFERENT = [
    ("port 8080", "port 8081"),
    ("python 3.11", "python 311"),
    ("use C++", "use C"),
    ("use C#", "use C"),
    ("set it to -1", "set it to 1"),
    ("x = y", "x \u2260 y"),
    ("a < b", "a > b"),
    ("use pnpm not npm", "use npm not pnpm"),
    ("schön", "schon"),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_what_says_the_same_has_one_key(first: str, second: str) -> None:
    assert folded(first) == folded(second)
    assert value_key(first) == value_key(second)


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_what_says_something_else_has_another_key(first: str, second: str) -> None:
    assert value_key(first) != value_key(second)


@given(st.text())
def test_dressing_a_text_up_does_not_change_its_key(text: str) -> None:
    key = value_key(text)
    assert len(key) == 32
    assert value_key(f"  \u200b{text}\u00a0. ") == key
