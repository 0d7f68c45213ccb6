"""The public sets guard the ranking; they live outside of the project."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("EVEREST_SHARED", ROOT.parent / "shared")) / "benchmarks"
pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared benchmarks are not here")


def _load(name: str) -> Any:
    path = ROOT / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


retrieval = _load("retrieval")
own_set = _load("own_set")


def test_past_decisions_are_found_and_the_one_in_force_comes_before_what_it_replaced(
    tmp_path: Path,
) -> None:
    found = retrieval.decisions(SHARED / "sde-decisions", None, tmp_path)
    everest = found["everest"]
    assert everest["r_at_1"] >= 0.9
    assert everest["current_above_superseded"] == everest["amended"] == 3
    assert everest["mrr"] > found["bm25"]["mrr"] > found["seed"]["mrr"]


def test_just_what_bears_on_a_turn_is_shown(tmp_path: Path) -> None:
    found = retrieval.precision(SHARED / "precision", None, tmp_path)
    assert found["everest"]["cases"] == 43
    assert found["everest"]["exact"] >= 40
    assert found["everest"]["silence"] >= 0.9
    assert found["bm25"]["exact"] < 25


def test_the_evidence_of_long_talks_is_among_the_first_ten(tmp_path: Path) -> None:
    conversations = json.loads((SHARED / "locomo" / "locomo-dev6.json").read_bytes())[:2]
    sums: dict[str, Counter[str]] = {"everest": Counter(), "bm25": Counter()}
    for conversation in conversations:
        turns = retrieval.turns(conversation)
        asks = {
            "everest": retrieval.product(turns, tmp_path, None),
            "bm25": retrieval.bm25(turns),
        }
        for question, wanted in retrieval.questions(conversation, turns):
            for name, ask in asks.items():
                retrieval.count(sums[name], ask(question), wanted, (10,), "recall_at")
    means = {name: retrieval.means(found) for name, found in sums.items()}
    assert means["everest"]["recall_at_10"] >= 0.69
    assert means["everest"]["recall_at_10"] > means["bm25"]["recall_at_10"] + 0.08


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found: dict[str, Any] = own_set.measure(SHARED.parent, tmp_path_factory.mktemp("own"))
    return found


def test_on_held_out_projects_the_own_set_is_found_shown_with_care_and_silent_else(
    own: dict[str, Any],
) -> None:
    everest = own["everest"]
    assert everest["queries"] + everest["tuned_on"]["queries"] >= 150
    assert everest["r_at_3"] >= 0.8
    assert everest["precision"] >= 0.85
    assert everest["silence"] >= 0.95


def test_showing_whatever_shares_a_word_would_not_do(own: dict[str, Any]) -> None:
    assert own["any word"]["precision"] < 0.3
    assert own["any word"]["silence"] < 0.6


def test_the_own_set_holds_no_text_of_a_transcript() -> None:
    given = json.loads(own_set.SET.read_text(encoding="utf-8"))
    assert len(given["memory"]) > 100
    known = {"id", "project", "kind", "session", "file", "line", "span", "digest", "bears"}
    for one in given["memory"] + given["queries"]:
        assert set(one) <= known
