"""The sentence of a turn that most likely outlives the task."""

from __future__ import annotations

from typing import NamedTuple

from everest_pipelines.core.detect.examples import sentence_examples
from everest_pipelines.core.detect.model import load, tokens
from everest_pipelines.core.detect.rule_cues import clause_start, is_direct
from everest_pipelines.core.detect.scene import Place
from everest_pipelines.core.detect.sentences import Sentence, as_rule

MODEL = "standing"
SHORTEST_RULE = 2  # words; one word states nothing


class Statement(NamedTuple):
    """A standing sentence with its probability."""

    sentence: Sentence
    score: float
    sure: bool  # makes a lesson at once
    clear: bool  # above the cut with the best F1


def scored(place: Place) -> list[Statement]:
    """Every sentence of the turn with its probability; empty without sentences or a model.

    A sentence is sure only in the shape of a rule: a high score alone made lessons of product
    requirements.
    """
    model = load(MODEL)
    if model is None:
        return []
    found: list[Statement] = []
    for sentence, seen in sentence_examples(place):
        score = model.probability(seen.words, seen.flags)
        sure = score >= model.sure and is_direct(sentence.text)
        found.append(Statement(sentence, score, sure, sure or score >= model.best))
    return found


def statement(place: Place) -> Statement | None:
    """The turn's standing sentence, sure ones first, above the likely cut; None without one."""
    model = load(MODEL)
    rules = [
        one
        for one in scored(place)
        if len(tokens(as_rule(one.sentence.text).strip(".?!"))) >= SHORTEST_RULE
    ]
    if model is None or not rules:
        return None
    best = max(rules, key=lambda one: (one.sure, one.score, -one.sentence.start))
    if best.sure:
        whole = best.sentence
        start = whole.start + clause_start(whole.text)
        clause = Sentence(whole.text[start - whole.start :], start, whole.end)
        return best._replace(sentence=clause)
    return best if best.score >= model.likely else None
