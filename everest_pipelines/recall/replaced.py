"""Which past decisions were replaced by a later one that says so."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence

# Only words that say it outright. "git commit --amend" says nothing of a decision; it still has to
# be of the same matter as the older text.
_REPLACES = re.compile(
    r"\b(?<!--)amend(?:s|ed|ing|ments?)?\b(?! (?:the |this |that |last )*commit)"
    r"|\bsupersed(?:es?|ed|ing)\b"
    r"|\b(?:replac|overrul)(?:es|ing)\s+(?:the|our|that|what)\s+(?:\w+\s+)?"
    r"(?:old|earlier|previous|original|former)\b"
    r"|\bchanged (?:my|our) minds?\b",
    re.IGNORECASE,
)
# Cosine of the telling words: six amended decisions have 0.25 to 0.45 with what they amend and at
# most 0.13 with any other conversation.
SAME_MATTER = 0.2
_COMMON = 0.1  # a word of more than a tenth of the texts tells no matter
_FEW = 20  # texts: in fewer every word counts


def replacements(
    places: Sequence[tuple[str, int]], texts: Sequence[str], terms: Sequence[Sequence[str]]
) -> dict[int, int]:
    """Row -> the row that replaced it, rows counted from 1.

    `places`: (project, microseconds UTC) of each row. A text replaces the earlier ones of its
    project and matter when it says that it does; of several that do, the last one counts.
    """
    by_project: dict[str, list[int]] = defaultdict(list)
    for row, (project, _) in enumerate(places):
        by_project[project].append(row)
    found: dict[int, int] = {}
    for rows in by_project.values():
        replacing = [row for row in rows if _REPLACES.search(texts[row])]
        if not replacing:
            continue
        replacing.sort(key=lambda row: (places[row][1], row))
        weights = _weights([terms[row] for row in rows])
        kept = {row: {term for term in terms[row] if term in weights} for row in rows}
        holders: dict[str, list[int]] = defaultdict(list)
        for row in rows:
            for term in kept[row]:
                holders[term].append(row)
        norms = {
            row: math.sqrt(math.fsum(weights[term] ** 2 for term in kept[row])) for row in rows
        }
        for row in replacing:
            dots: dict[int, float] = defaultdict(float)
            for term in sorted(kept[row]):
                for other in holders[term]:
                    dots[other] += weights[term] ** 2
            for other, dot in dots.items():
                earlier = places[other][1] < places[row][1]
                if earlier and dot > SAME_MATTER * norms[row] * norms[other]:
                    found[other + 1] = row + 1
    return found


def _weights(documents: Sequence[Sequence[str]]) -> dict[str, float]:
    counts = Counter(term for document in documents for term in set(document))
    total = len(documents)
    return {
        term: math.log(1.0 + (total - count + 0.5) / (count + 0.5))
        for term, count in counts.items()
        if total < _FEW or count <= max(2, total * _COMMON)
    }
