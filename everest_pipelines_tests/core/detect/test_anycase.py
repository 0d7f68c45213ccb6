"""Searching a text in lower case finds what ignoring case finds."""
# ruff: noqa: RUF001 - the letters that matter here

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everest_pipelines.core.detect import cues as detect_cues
from everest_pipelines.core.detect import rule_cues, sentences, surprise
from everest_pipelines.core.detect.anycase import AnyCase, found_in

TABLES = {
    "cues": detect_cues.CUES,
    "shapes": rule_cues.SHAPES,
    "surprise": surprise._COMPILED,
    "single": {"hint": surprise._HINT, "fault": detect_cues.FAULT, "claims": detect_cues.CLAIMS},
}
SAID = """
no wait still why right should don't DON'T not working we use prefer Always NEVER I i'd maybe
KÜNFTIG künftig НЕТ нет Всегда ПОЧЕМУ siempre También 不要 总是 This repo reverted mistake
unexpected Turns out pre-existing FAILED wrong [Image #1] `npm test` - – … , . ! ? : ;
ı ſ İ K Å ß ς Σ µ ᲀ ᲃ ﬆ stıll ſtill İn baᲃ
"""
WORDS = [*SAID.split(), "\n"]
TEXTS = st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=3)), max_size=14).map(" ".join)


@pytest.mark.parametrize("table", sorted(TABLES))
@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_a_text_in_lower_case_answers_as_when_case_is_ignored(table: str, text: str) -> None:
    patterns = TABLES[table]
    for said in (text, text.upper(), text.title()):
        slow = tuple(name for name, one in patterns.items() if one.pattern.search(said))
        assert found_in(patterns, said) == slow
        assert tuple(name for name, one in patterns.items() if one.search(said)) == slow


def test_letters_with_several_lower_cases_are_found() -> None:
    still = AnyCase(r"\bstill\b")
    for said in ("STILL", "ſtill", "stıll", "Still – yes"):
        assert still.search(said)
    assert not still.search("distill")


def test_escapes_keep_their_case() -> None:
    assert AnyCase(r"\AX\W\S\Z").search("x-y")
    assert not AnyCase(r"\AX\W\S\Z").search("xay")


LINES = st.lists(
    st.sampled_from(["Review", "the log", "error", "output", ":", " ", "\t", "\u2003", ".", "x"]),
    max_size=8,
).map("".join)


@given(LINES)
def test_only_a_line_that_ends_with_a_colon_introduces_a_paste(line: str) -> None:
    found = sentences._INTRODUCES.search(line) is not None
    assert found == (line.rstrip().endswith(":") and found)


def test_what_is_remembered_of_a_text_cannot_be_changed_from_outside() -> None:
    text = "Please use tabs. The log says:\nerror 1"
    first, spans = sentences.sentences(text), sentences.own_lines(text)
    sentences.sentences(text).clear()
    sentences.own_lines(text).clear()
    assert sentences.sentences(text) == first and first
    assert sentences.own_lines(text) == spans and spans


def test_no_pattern_of_a_table_holds_what_lower_case_would_break() -> None:
    for patterns in TABLES.values():
        for one in patterns.values():
            assert not re.search(r"\(\?[A-Za-z]|[A-Z]-[A-Z]", one.pattern.pattern)
