"""The one ranking, whatever holds the words: BM25, then recency and strength between near-equals.

Light on purpose: a hook imports this and nothing else of search.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_TERMS = 12  # the rarest words of a prompt; more add postings to read, not precision
MAX_POSTINGS = 5_000  # rows that all words together may touch: keeps 100,000 episodes in 15 ms
K1 = 1.2
B = 0.6
RECENCY_WEIGHT = 0.05  # of the best BM25: decides between near-equals only
STRENGTH_WEIGHT = 0.05
NAMED_WEIGHT = 1.0  # of the best BM25: what is called by its name comes before what shares words
SHARED_WORDS = 2  # one word alone bears on nothing
COVERED = 0.6  # own set, tuned part: 0.82 of what is shown bears; at 0.55 0.68, at 0.5 0.53
NAME_LENGTH = 3  # words of the longest name that is looked up
NAME_TERMS = 100  # of a prompt in which names are looked up
SLIP_START = 2  # letters that must be right: "mango" is not "mongo"
SLIP_LENGTH = 4  # letters of the shortest name that may be written wrong: k9s is not k8s
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


def parts(
    bm25: float, best: float, *, age: int, strength: float | None = None, named: bool = False
) -> tuple[tuple[str, float], ...]:
    """What a score is made of, by name. `best`: the best BM25 of the answer. `age`: microseconds
    before the newest record of the snapshot. `named`: the prompt calls the lesson's matter by its
    name."""
    recency = best * RECENCY_WEIGHT * 2.0 ** (-(max(age, 0) / _DAY) / HALF_LIFE_DAYS)
    found = [("words", round(bm25, 6)), ("recency", round(recency, 6))]
    if strength is not None:
        found.append(("strength", round(best * STRENGTH_WEIGHT * saturated(strength), 6)))
    if named:
        found.append(("name", round((best or 1.0) * NAMED_WEIGHT, 6)))
    return tuple(found)


def total(parts: Iterable[tuple[str, float]]) -> float:
    """The score to order by."""
    return round(sum(value for _, value in parts), 6)


def whole(
    bm25: float, best: float, *, age: int, strength: float | None = None, named: bool = False
) -> float:
    """The score to order by, of what `parts` says."""
    return total(parts(bm25, best, age=age, strength=strength, named=named))


def one_slip(one: str, other: str) -> bool:
    """Whether one letter more, less, other or two changed places make `one` into `other`."""
    if len(one) > len(other):
        one, other = other, one
    if one == other or len(other) - len(one) > 1:
        return False
    at = 0
    while at < len(one) and one[at] == other[at]:
        at += 1
    if len(one) < len(other):
        return one[at:] == other[at + 1 :]
    swapped = one[at : at + 2] == other[at : at + 2][::-1]
    return one[at + 1 :] == other[at + 1 :] or (swapped and one[at + 2 :] == other[at + 2 :])


def bears(named: bool, covered: float, shared: int) -> bool:
    """Whether a lesson is worth showing unasked. `covered`: the share of the lesson's own weight
    that the prompt holds; `shared`: words in common."""
    return named or (shared >= SHARED_WORDS and covered >= COVERED)


def phrases(terms: Sequence[str]) -> list[str]:
    """The runs of a prompt's terms that may be the name of a lesson's matter."""
    terms = terms[:NAME_TERMS]
    return sorted(
        {
            " ".join(terms[start : start + count])
            for count in range(1, NAME_LENGTH + 1)
            for start in range(len(terms) - count + 1)
        }
    )


def saturated(strength: float) -> float:
    """0 for none, a half at strength 1, below 1 for ever: stronger never counts less."""
    return max(strength, 0.0) / (1.0 + max(strength, 0.0))
