"""The one ranking, whatever holds the words: BM25, then recency and strength between near-equals.

Light on purpose: a hook imports this and nothing else of search.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_TERMS = 12  # the rarest words of a prompt; more add postings to read, not precision
MAX_POSTINGS = 20_000  # rows that all words together may touch: keeps 100,000 episodes in 15 ms
K1 = 1.2
B = 0.6
RECENCY_WEIGHT = 0.05  # of the best BM25: decides between near-equals only
STRENGTH_WEIGHT = 0.05
HALF_LIFE_DAYS = 30.0
_DAY = 86_400_000_000


def rarest(known: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Of (term, documents that hold it) the rarest, within the budget of postings; rarest first."""
    kept: dict[str, int] = {}
    postings = 0
    for term, documents in sorted(known, key=lambda one: (one[1], one[0])):
        postings += documents
        if len(kept) == MAX_TERMS or (kept and postings > MAX_POSTINGS):
            break
        kept[term] = documents
    return kept


def idf(total: int, documents: int) -> float:
    """How telling a term is that `documents` of `total` hold; positive, so that in a memory of
    three lessons a word of two still counts."""
    import math

    return math.log(1.0 + (total - documents + 0.5) / (documents + 0.5))


def part(weight: float, count: int, length: float) -> float:
    """What a term adds to Okapi BM25: its idf, its count, the length over the mean length."""
    return weight * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length))


def whole(bm25: float, best: float, *, age: int, strength: float | None = None) -> float:
    """The score to order by. `best`: the best BM25 of the answer. `age`: microseconds before the
    newest record of the snapshot."""
    recency = 2.0 ** (-(max(age, 0) / _DAY) / HALF_LIFE_DAYS)
    score = bm25 + best * RECENCY_WEIGHT * recency
    if strength is not None:
        score += best * STRENGTH_WEIGHT * saturated(strength)
    return round(score, 6)


def saturated(strength: float) -> float:
    """0 for none, a half at strength 1, below 1 for ever: stronger never counts less."""
    return max(strength, 0.0) / (1.0 + max(strength, 0.0))
