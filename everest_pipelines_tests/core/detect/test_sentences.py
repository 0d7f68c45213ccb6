from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everest_pipelines.core.detect.rule_cues import clause_start
from everest_pipelines.core.detect.sentences import as_rule, own_lines, own_text, sentences


@given(st.text())
def test_a_sentence_is_a_verbatim_span_in_order(text: str) -> None:
    at = 0
    for sentence in sentences(text):
        assert text[sentence.start : sentence.end] == sentence.text
        assert sentence.start >= at
        assert sentence.text == sentence.text.strip()
        at = sentence.end


@given(st.text(alphabet="ab .!?\n`>-*#,'\"", max_size=200))
def test_own_lines_are_lines_of_the_text(text: str) -> None:
    for start, end in own_lines(text):
        assert "\n" not in text[start:end]
        assert start == 0 or text[start - 1] == "\n"


@given(st.text())
def test_a_rule_is_one_line_and_a_clause_starts_inside(text: str) -> None:
    assert "\n" not in as_rule(text)
    assert 0 <= clause_start(text) <= len(text)


def test_a_turn_falls_into_its_sentences() -> None:
    text = "ok, thanks!  But e.g. v1.2 is old. Use pnpm\n- never commit dist/\n1. run make"
    assert [one.text for one in sentences(text)] == [
        "ok, thanks!", "But e.g. v1.2 is old.", "Use pnpm", "never commit dist/", "run make",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "pasted",
    [
        "```\nnever use tabs here\n```",
        "> never use tabs here",
        "$ npm install\nnpm ERR! never use tabs\n2026-01-01 12:00:00 ERROR never use tabs",
        "--- FAIL: TestNeverUseTabs (0.00s)",
        "+   never use tabs",
        "The comment in loadSettings() says never use tabs, but parseConfig() in settings_file.go "
        "still writes them when the strategy is empty, which makes isEnabled() return the default.",
        "evaluate this feedback from copilot:\nnever use tabs in any of the files",
    ],
)
def test_pasted_text_is_not_the_persons(pasted: str) -> None:
    text = f"fix the indentation please\n\n{pasted}"
    assert "never use tabs" not in own_text(text).lower()
    assert "fix the indentation please" in own_text(text)


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        ("ok, no, use pnpm", "Use pnpm."),
        ("No. Wait, please always run make lint", "Always run make lint."),
        ("no mocks in the tests", "No mocks in the tests."),
        ("don't create a pr, just a commit.", "Don't create a pr, just a commit."),
        ("(we use go-git)", "We use go-git."),
        ("why are you still using vale?", "Why are you still using vale?"),
        ("npm.cmd is what works", "npm.cmd is what works."),
        ("use table-driven\n   tests", "Use table-driven tests."),
        ("", ""),
    ],
)
def test_a_rule_reads_like_one(said: str, rule: str) -> None:
    assert as_rule(said) == rule


@pytest.mark.parametrize(
    ("said", "clause"),
    [
        ("that is not correct, we don't gitignore the folder", "we don't gitignore the folder"),
        ("for e2e tests, use table driven tests", "for e2e tests, use table driven tests"),
        ("I have both, but I don't want to depend on node", "I don't want to depend on node"),
        ("do not stash anything, read the files", "do not stash anything, read the files"),
    ],
)
def test_the_clause_that_states_the_rule_keeps_its_scope(said: str, clause: str) -> None:
    assert said[clause_start(said) :] == clause
