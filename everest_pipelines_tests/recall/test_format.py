from __future__ import annotations

import re
from typing import Any

import pytest

from everest_pipelines.recall.format import block, terminal, tokens
from everest_pipelines.recall.search import Hit
from everest_pipelines_tests.core.render.lessons import HOSTILE


def _hit(text: str = "Use pnpm.", **changes: Any) -> Hit:
    fields: dict[str, Any] = {
        "lesson_id": "3f9c2b7a51d0",
        "short_id": "3f9c2b7a",
        "text": text,
        "score": 1.5,
        "state": "stated",
        "why": "pnpm",
        "kind": "rule",
        "scope": "p",
        "fix": "",
        "quote": "",
    }
    return Hit(**{**fields, **changes})


def test_lessons_are_fenced_with_id_and_mark() -> None:
    text, shown = block([_hit(), _hit("Never push.", state="approved")])
    lines = text.splitlines()
    assert lines[0].startswith("<everest-lessons ")
    assert lines[1:] == [
        "- [3f9c2b7a] (unreviewed) Use pnpm.",
        "- [3f9c2b7a] Never push.",
        "</everest-lessons>",
    ]
    assert len(shown) == 2


def test_what_fits_is_whole_and_what_does_not_fit_is_left_out() -> None:
    hits = [_hit("short one"), _hit("long " * 2000), _hit("short two")]
    text, shown = block(hits, budget=120)
    assert [hit.text for hit in shown] == ["short one", "short two"]
    assert "long" not in text
    assert tokens(text) <= 120
    assert block(hits, budget=10) == ("", [])
    assert block([]) == ("", [])


def test_the_fix_of_an_error_is_shown_once() -> None:
    assert "what then worked: make build" in block([_hit("ENOENT", fix="make build")])[0]
    assert "what then worked" not in block([_hit("ENOENT: make build", fix="make build")])[0]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_lesson_breaks_the_fence_or_the_terminal(hostile: str) -> None:
    text, _ = block([_hit(hostile, fix=hostile + "!")])
    assert text.count("<") == 2
    assert len(text.splitlines()) == 3
    shown = terminal([_hit(hostile, why=hostile)], explain=True)
    assert len(shown.splitlines()) == 2
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u200b]", text + shown)


def test_the_terminal_explains_on_request() -> None:
    assert terminal([_hit()]) == "3f9c2b7a  Use pnpm. (unreviewed)\n"
    assert "score 1.500; in common: pnpm; rule, stated, p" in terminal([_hit()], explain=True)
    assert terminal([]) == ""


def test_other_scripts_are_counted_by_the_sign() -> None:
    assert tokens("部署之前") == 4
    assert tokens("abcdef") == 2
    assert tokens("") == 0
