"""Does showing a lesson help? Sessions in which hooks spoke against those held out.

The unit is the session family, since the hold-out is drawn by family: a family counts once, as a
hit when what one of its opportunities warned of followed in it. Opportunities inside a family hang
together; counting them one by one would make the interval too short. The estimand is what hooks add
on top of the rendered files, in families with at least one opportunity. For lessons withheld from
every surface the unit is (family, lesson), compared by the cluster bootstrap.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from everest_pipelines.core.measure.intervals import (
    Difference,
    Share,
    clustered_difference,
    difference,
    needed,
    share,
)
from everest_pipelines.core.records import Micros

SHOWN, HELD_OUT, WITHHELD = "shown", "held_out", "withheld"
ESTIMAND = (
    "what hooks add on top of the rendered files: share of session families with an opportunity in"
    " which the thing warned of followed, shown minus held out"
)
ESTIMAND_WITHHELD = (
    "the whole effect of a lesson on every surface: share of (family, lesson) opportunities after"
    " which the thing warned of followed, shown minus withheld"
)


class Opportunity(Struct, frozen=True):
    """A moment at which a lesson would have been shown, in one arm."""

    at: Micros
    family_id: str
    lesson_id: str
    arm: str  # shown, held_out or withheld


class Comparison(Struct, frozen=True):
    """Two arms. ``claim`` is the sentence that the interval carries, and no more."""

    estimand: str
    shown: Share
    other: Share
    effect: Difference
    still_needed: int | None  # units in each arm until a gap like this one could be seen
    claim: str


def opportunities(entries: Iterable[Mapping[str, object]]) -> list[Opportunity]:
    """Those in the ledger's recall entries, in order; other reasons are none."""
    found: list[Opportunity] = []
    for entry in entries:
        arm = entry.get("reason")
        if entry.get("kind") != "recall" or arm not in (SHOWN, HELD_OUT, WITHHELD):
            continue
        family = str(entry.get("family_id") or entry.get("session_id") or "")
        lessons = entry.get("lesson_ids")
        if not family or not isinstance(lessons, Sequence) or isinstance(lessons, str):
            continue
        at = entry.get("recorded_at")
        found += [
            Opportunity(int(at) if isinstance(at, int) else 0, family, str(lesson), str(arm))
            for lesson in lessons
        ]
    return sorted(found, key=lambda one: (one.at, one.family_id, one.lesson_id))


def followed(
    found: Sequence[Opportunity], matters: Mapping[tuple[str, str], Sequence[Micros]]
) -> list[tuple[Opportunity, bool]]:
    """Whether what a lesson is about came up later in the same family.

    ``matters``: (family, lesson) -> times of episodes that joined the lesson.
    """
    return [
        (one, any(at > one.at for at in matters.get((one.family_id, one.lesson_id), ())))
        for one in found
    ]


def compare_hold_out(outcomes: Sequence[tuple[Opportunity, bool]]) -> Comparison:
    """Families in which hooks spoke against families held out."""
    arms: dict[str, dict[str, bool]] = {SHOWN: {}, HELD_OUT: {}}
    for one, hit in outcomes:
        if one.arm in arms:
            known = arms[one.arm].get(one.family_id, False)
            arms[one.arm][one.family_id] = known or hit
    first, second = (
        share(sum(families.values()), len(families)) for families in (arms[SHOWN], arms[HELD_OUT])
    )
    return _comparison(ESTIMAND, first, second, difference(first, second), "held out")


def compare_withheld(outcomes: Sequence[tuple[Opportunity, bool]]) -> Comparison:
    """Lessons shown against lessons withheld for the week, families resampled whole."""
    arms: dict[str, dict[str, list[bool]]] = {
        SHOWN: defaultdict(list),
        WITHHELD: defaultdict(list),
    }
    seen: set[tuple[str, str, str]] = set()
    for one, hit in outcomes:
        key = (one.arm, one.family_id, one.lesson_id)
        if one.arm in arms and key not in seen:
            seen.add(key)
            arms[one.arm][one.family_id].append(hit)
    pairs = [
        [(sum(hits), len(hits)) for _, hits in sorted(arms[arm].items())]
        for arm in (SHOWN, WITHHELD)
    ]
    first, second = (share(sum(hits for hits, _ in arm), sum(of for _, of in arm)) for arm in pairs)
    effect = clustered_difference(pairs[0], pairs[1])
    return _comparison(ESTIMAND_WITHHELD, first, second, effect, "withheld")


def _comparison(
    estimand: str, first: Share, second: Share, effect: Difference, other: str
) -> Comparison:
    still: int | None = None
    if first.value is not None and second.value is not None and not effect.is_clear:
        wanted = needed(first.value, second.value)
        still = None if wanted is None else max(0, wanted - min(first.of, second.of))
    return Comparison(estimand, first, second, effect, still, _claim(effect, other))


def _claim(effect: Difference, other: str) -> str:
    if effect.low is None or effect.high is None:
        return f"Nothing can be said: one arm ({other} or shown) has no opportunity yet."
    if effect.high < 0:
        return f"Less often with lessons than {other}: by {-effect.high:.1%} to {-effect.low:.1%}."
    if effect.low > 0:
        return f"More often with lessons than {other}: by {effect.low:.1%} to {effect.high:.1%}."
    return (
        f"No effect shown: with lessons the share lies between {-effect.low:.1%} below and"
        f" {effect.high:.1%} above {other}."
    )
