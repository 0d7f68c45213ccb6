"""Intervals of shares and of their differences, at 95 %.

Wilson's score interval for one share (Wilson 1927); Newcombe's hybrid of two of them for a
difference (Newcombe 1998, method 10), which stays honest at few events and at shares near 0 or 1.
Moments of one session are not independent, so effects are counted by session family (see ``arms``);
where that cannot be, the cluster bootstrap below resamples whole families.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from msgspec import Struct

Z = 1.959964  # of a normal, 95 % two-sided
POWER_Z = 0.841621  # 80 % power
DRAWS = 2000


class Share(Struct, frozen=True):
    """``hits`` of ``of``; without any, ``value`` and its bounds are None."""

    hits: int
    of: int
    value: float | None = None
    low: float | None = None
    high: float | None = None


class Difference(Struct, frozen=True):
    """``first`` minus ``second``; None where an arm is empty."""

    value: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves zero out: nothing may be claimed otherwise."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def share(hits: int, of: int) -> Share:
    """A share with Wilson's interval, each rounded to 1e-6. Raises ValueError for hits > of."""
    if not 0 <= hits <= of:
        raise ValueError(f"{hits} of {of} is no share")
    if of == 0:
        return Share(0, 0)
    low, high = _wilson(hits, of)
    return Share(hits, of, round(hits / of, 6), round(low, 6), round(high, 6))


def _wilson(hits: int, of: int) -> tuple[float, float]:
    rate = hits / of
    spread = Z * Z / of
    middle = (rate + spread / 2) / (1 + spread)
    half = Z * math.sqrt(rate * (1 - rate) / of + spread / (4 * of)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def difference(first: Share, second: Share) -> Difference:
    """Newcombe's interval of the difference of two independent shares."""
    if not first.of or not second.of:
        return Difference()
    one, two = first.hits / first.of, second.hits / second.of
    low1, high1 = _wilson(first.hits, first.of)
    low2, high2 = _wilson(second.hits, second.of)
    gap = one - two
    return Difference(
        round(gap, 6),
        round(gap - math.hypot(one - low1, high2 - two), 6),
        round(gap + math.hypot(high1 - one, two - low2), 6),
    )


def needed(first: float, second: float) -> int | None:
    """Units in each arm for 80 % power to see ``first`` against ``second`` at 5 %; None if equal.

    The normal approximation for two shares (Fleiss 1981, without continuity correction).
    """
    if first == second:
        return None
    middle = (first + second) / 2
    noise = Z * math.sqrt(2 * middle * (1 - middle)) + POWER_Z * math.sqrt(
        first * (1 - first) + second * (1 - second)
    )
    return math.ceil((noise / (first - second)) ** 2)


def clustered_difference(
    first: Sequence[tuple[int, int]], second: Sequence[tuple[int, int]], *, seed: int = 7
) -> Difference:
    """The difference of two pooled shares; each item is one family's (hits, of).

    Percentile bootstrap over whole families: ``DRAWS`` resamples, the same for the same seed.
    """
    if not sum(of for _, of in first) or not sum(of for _, of in second):
        return Difference()
    draw = random.Random(seed)

    def pooled(items: Sequence[tuple[int, int]]) -> float | None:
        of = sum(count for _, count in items)
        return sum(hits for hits, _ in items) / of if of else None

    gaps: list[float] = []
    for _ in range(DRAWS):
        one = pooled(draw.choices(first, k=len(first)))
        two = pooled(draw.choices(second, k=len(second)))
        if one is not None and two is not None:
            gaps.append(one - two)
    gaps.sort()
    one, two = pooled(first), pooled(second)
    assert one is not None and two is not None
    cut = int(0.025 * len(gaps))
    return Difference(round(one - two, 6), round(gaps[cut], 6), round(gaps[-1 - cut], 6))
