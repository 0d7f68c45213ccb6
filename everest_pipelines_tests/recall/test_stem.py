from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everest_pipelines.recall.stem import stem


@pytest.mark.parametrize(
    "family",
    [
        "configure configures configured configuring configuration configurations",
        "install installs installed installing installation",
        "deploy deploys deployed deploying deployment deployments",
        "test tests tested testing",
        "run runs running",
        "use used uses using",
        "commit commits committed committing",
        "dependency dependencies",
        "validate validates validated validation",
        "class classes",
        "process processes processed processing",
    ],
)
def test_forms_of_one_word_meet(family: str) -> None:
    assert len({stem(word) for word in family.split()}) == 1


@pytest.mark.parametrize(
    "word", ["string", "this", "bus", "thing", "need", "redis", "go", "3.11", "été", "c", "status"]
)
def test_what_only_looks_like_a_form_stays(word: str) -> None:
    assert stem(word) == word


def test_words_of_different_matter_stay_apart() -> None:
    words = [
        "test",
        "text",
        "commit",
        "comment",
        "install",
        "instance",
        "staging",
        "stage",
        "string",
        "strip",
        "npm",
        "pnpm",
    ]
    assert len({stem(word) for word in words}) == len(words) - 1  # staging, stage


@given(st.text())
def test_no_word_is_lost_or_raises(word: str) -> None:
    assert bool(stem(word)) == bool(word)
