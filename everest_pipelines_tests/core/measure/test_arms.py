from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everest_pipelines.core.measure import arms, simulate
from everest_pipelines.core.measure.arms import HELD_OUT, SHOWN, WITHHELD, Opportunity
from everest_pipelines.core.measure.intervals import (
    clustered_difference,
    difference,
    needed,
    share,
)

RUNS = 500


def test_wilson_and_newcombe_give_the_published_numbers():
    """Newcombe 1998, table II: 56/70 against 48/80 is 0.2000, 0.0524 to 0.3339 (method 10)."""
    found = difference(share(56, 70), share(48, 80))
    assert (found.value, round(found.low, 4), round(found.high, 4)) == (0.2, 0.0524, 0.3339)
    one = share(81, 263)  # Newcombe 1998 (one proportion): 0.2553 to 0.3662
    assert (round(one.low, 4), round(one.high, 4)) == (0.2553, 0.3662)


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), st.integers(0, 60))
def test_an_interval_holds_its_value_and_turns_round_with_its_arms(a, b, c, d):
    one, two = share(min(a, b), max(a, b)), share(min(c, d), max(c, d))
    forth, back = difference(one, two), difference(two, one)
    if not one.of or not two.of:
        assert forth.value is None and not forth.is_clear
        return
    assert forth.low <= forth.value <= forth.high
    assert math.isclose(forth.low, -back.high, abs_tol=2e-6)
    assert one.low <= one.value <= one.high


def test_more_hits_than_tries_is_an_error():
    with pytest.raises(ValueError, match="3 of 2"):
        share(3, 2)


def test_units_needed_match_the_textbook():
    """Fleiss: 0.3 against 0.2 at 5 % and 80 % power needs some 293 in each arm."""
    assert 290 <= needed(0.3, 0.2) <= 296
    assert needed(0.3, 0.3) is None


@pytest.mark.parametrize("effect", [0.0, 0.1])
def test_over_500_runs_the_interval_covers_the_planted_effect(effect):
    covered = helped = 0
    for seed in range(RUNS):
        outcomes, truth = simulate.sessions(seed=seed, families=120, effect=effect)
        found = arms.compare_hold_out(outcomes).effect
        covered += found.low <= truth <= found.high
        helped += found.high < 0
    assert covered / RUNS >= 0.93  # 0.95 less two standard errors of 500 runs
    if effect == 0.0:
        assert helped / RUNS <= 0.05
    else:
        assert helped / RUNS >= 0.2  # the same rule does see an effect that is there


def test_counting_moments_as_if_independent_would_be_too_sure():
    """The control of the choice of unit: pooled moments of careless people cover less."""
    covered = families = 0
    for seed in range(200):
        outcomes, _ = simulate.sessions(
            seed=seed, families=60, effect=0.0, base_rate=0.5, spread=0.45
        )
        hits = {SHOWN: [0, 0], HELD_OUT: [0, 0]}
        for one, hit in outcomes:
            hits[one.arm][0] += hit
            hits[one.arm][1] += 1
        pooled = difference(share(*hits[SHOWN]), share(*hits[HELD_OUT]))
        covered += pooled.low <= 0 <= pooled.high
        found = arms.compare_hold_out(outcomes).effect
        families += found.low <= 0 <= found.high
    assert families > covered


def one(arm: str, family: str, lesson: str = "l", at: int = 1) -> Opportunity:
    return Opportunity(at, family, lesson, arm)


def test_a_family_counts_once_and_nothing_is_claimed_of_an_empty_arm():
    shown = [(one(SHOWN, "a"), False), (one(SHOWN, "a", at=2), True), (one(SHOWN, "b"), False)]
    found = arms.compare_hold_out(shown)
    assert (found.shown.hits, found.shown.of) == (1, 2)
    assert found.effect.value is None and found.claim.startswith("Nothing can be said")
    both = arms.compare_hold_out([*shown, (one(HELD_OUT, "c"), True)])
    assert "No effect shown" in both.claim and both.still_needed


def test_a_clear_effect_is_told_with_its_interval_and_its_direction():
    outcomes = [(one(SHOWN, f"s{n}"), n < 5) for n in range(100)]
    outcomes += [(one(HELD_OUT, f"h{n}"), n < 60) for n in range(100)]
    assert arms.compare_hold_out(outcomes).claim.startswith("Less often with lessons than held out")
    turned = [
        (one(HELD_OUT if o.arm == SHOWN else SHOWN, o.family_id), hit) for o, hit in outcomes
    ]
    assert arms.compare_hold_out(turned).claim.startswith("More often with lessons")


def test_withheld_lessons_are_compared_by_family_and_lesson():
    outcomes = [(one(SHOWN, f"f{n}", "a"), False) for n in range(40)]
    outcomes += [(one(WITHHELD, f"f{n}", "b"), n % 2 == 0) for n in range(40)]
    outcomes += [(one(SHOWN, "f1", "a", at=9), True)]  # the same lesson again: no new unit
    found = arms.compare_withheld(outcomes)
    assert (found.shown.of, found.other.of) == (40, 40) and found.effect.high < 0
    assert clustered_difference([(1, 2)], []).value is None


def test_only_decisions_about_a_lesson_are_opportunities():
    entries = [
        {"kind": "recall", "reason": SHOWN, "family_id": "f", "lesson_ids": ["a", "b"],
         "recorded_at": 5},
        {"kind": "recall", "reason": "nothing_fits", "family_id": "f", "lesson_ids": []},
        {"kind": "recall", "reason": HELD_OUT, "session_id": "s", "lesson_ids": ["a"],
         "recorded_at": 3},
        {"kind": "recall", "reason": SHOWN, "family_id": "", "lesson_ids": ["a"]},
        {"kind": "note", "reason": SHOWN, "family_id": "f", "lesson_ids": ["a"]},
    ]  # fmt: skip
    found = arms.opportunities(entries)
    assert [(o.family_id, o.lesson_id, o.arm) for o in found] == [
        ("s", "a", HELD_OUT),
        ("f", "a", SHOWN),
        ("f", "b", SHOWN),
    ]


def test_what_followed_came_later_and_in_the_same_family():
    found = [one(SHOWN, "f", at=10), one(SHOWN, "g", at=10)]
    matters = {("f", "l"): [5, 11], ("g", "l"): [9], ("h", "l"): [50]}
    assert [hit for _, hit in arms.followed(found, matters)] == [True, False]
