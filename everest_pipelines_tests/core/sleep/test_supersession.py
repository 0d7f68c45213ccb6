"""Which of two rules is shown, disputed or superseded, over made-up pairs on any dates."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from everest_pipelines.core import trust
from everest_pipelines_tests.core.sleep.making import day_end, day_of, folded, last, said, states

PAIRS = json.loads(Path(__file__).with_name("supersession.json").read_text(encoding="utf-8"))
OUTCOMES = {
    "superseded": ("superseded", "stated"),
    "disputed": ("disputed", "disputed"),
    "both": ("stated", "stated"),
}


def test_there_are_pairs_of_every_kind() -> None:
    kinds = {pair["kind"] for pair in PAIRS}
    assert kinds == {"swap", "scope", "prohibition", "clash", "retraction"}
    assert len(PAIRS) >= 30
    assert {pair["in_order"] for pair in PAIRS} == set(OUTCOMES)


@pytest.mark.parametrize("order", ["in_order", "reversed"])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair["first"])
def test_a_pair_comes_out_as_it_must_on_any_dates_in_any_order(
    pair: dict[str, str], order: str
) -> None:
    one, two = pair["first"], pair["second"]
    earlier, later = (one, two) if order == "in_order" else (two, one)
    first, second = OUTCOMES[pair[order]]
    dice = random.Random(f"{earlier} {later}")
    for _ in range(3):
        start, gap = dice.randrange(40), dice.randrange(1, 60)
        rows = [said(earlier, start, "x"), said(later, start + gap, "y")]
        dice.shuffle(rows)
        done = folded(rows, start + gap + 1)
        assert states(done) == {earlier: first, later: second}
        before = trust.visible(
            [row for _, row in done.lessons], [], set(), at=day_end(day_of(start + gap - 1))
        )
        assert [row.text for row in before] == [earlier], "on the day before, the earlier held"
        if first == "superseded":
            ended = last(done)[earlier].valid_to
            assert ended is not None
            assert day_end(day_of(start + gap - 1)) < ended <= day_end(day_of(start + gap))
        shown = trust.visible(
            [row for _, row in done.lessons], [], set(), at=day_end(day_of(start + gap))
        )
        kept = set() if first == "superseded" else {earlier}
        assert {row.text for row in shown} == {later} | kept
