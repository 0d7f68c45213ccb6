"""The default space: hashed word and bigram vectors. Finds near-duplicates, knows no synonyms."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise

from everest_pipelines.text.tokens import content_words, words

SPACE = "hashed-256-v1"
DIMENSION = 256
_BIGRAM_WEIGHT = 0.5  # order tells near-duplicates apart, but must not outweigh the words


def embed(text: str) -> list[float]:
    """The unit vector of `text`'s content words and their bigrams; the same on every machine.

    A text of stop words alone uses those, one without words its own signs; an empty text gives the
    zero vector.
    """
    found = content_words(text) or words(text) or text.split()
    vector = [0.0] * DIMENSION
    for word, times in Counter(found).items():
        slot, sign = _slot(word)
        vector[slot] += sign * (1.0 + math.log(times))
    pairs = Counter(pairwise(found))
    for (first, second), times in pairs.items():
        slot, sign = _slot(f"{first} {second}")
        vector[slot] += sign * _BIGRAM_WEIGHT * (1.0 + math.log(times))
    norm = math.sqrt(math.fsum(value * value for value in vector))
    if norm < 1e-9:
        return _alone(found)
    return [value / norm for value in vector]


def _alone(found: list[str]) -> list[float]:
    """The vector of a text whose words cancelled out: the text as one feature."""
    vector = [0.0] * DIMENSION
    if found:
        slot, sign = _slot("\n".join(found))
        vector[slot] = sign
    return vector


@lru_cache(maxsize=131_072)
def _slot(feature: str) -> tuple[int, float]:
    raw = hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return raw[0], 1.0 if raw[1] & 1 else -1.0


# What stays although it is a number: it says which error this is.
_STATUS = (
    r"(?P<keep>"
    r"\b(?:exit(?:ed)?|status|code|http(?:/\d(?:\.\d)?)?|errno|signal|returned|error)"
    r"(?:\s+(?:with|code|status|error|non-zero))*\s*[:=#(\[]?\s*-?\d{1,3}\b(?![.:/\d])"
    r"|\b[1-5]\d\d\s+(?=[A-Z][a-z]+)"  # 404 Not Found
    r"|\b(?:TS|E|W|F|C|SC|CS|ORA-|PG|SQLSTATE )\d{3,5}\b"  # TS2345, E0308, F401
    r")"
)
_MASKED = re.compile(
    _STATUS
    + r"|(?P<url>\b[a-z][a-z0-9+.-]*://[^\s\"'`<>)\]]+)"
    + r"|(?P<name>\"[^\"\n]{1,200}\"|`[^`\n]{1,200}`|(?<!\w)'[^'\n]{1,200}'(?!\w)"
    + r"|\u2018[^\u2019\n]{1,200}\u2019|\u201c[^\u201d\n]{1,200}\u201d)"
    + r"|(?P<path>(?:\b[A-Za-z]:[\\/]|~/|\.{1,2}/|(?<![\w/])/(?=[\w.@-]))[^\s\"'`:,;()<>|\[\]]*"
    + r"|(?<![\w/])[\w.@-]+(?:[/\\][\w.@-]+)+[/\\]?"
    + r"|(?<![\w.])[\w-]+\.(?:py|pyi|js|jsx|ts|tsx|mjs|cjs|json|jsonl|go|rs|c|h|cc|cpp|hpp|java|kt"
    + r"|rb|php|cs|swift|sh|md|toml|ya?ml|lock|txt|html|css|sql|cfg|ini|xml)\b)"
    + r"|(?P<hex>\b0x[0-9a-fA-F]+\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
    + r"|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}\b)"
    + r"|(?P<number>(?<![\w.])[-+]?\d+(?:[,_]\d{3})*(?:\.\d+)*(?:[eE][-+]?\d+)?"
    + r"(?:ms|s|m|h|kb|mb|gb|b|%)?"
    + r"(?![\w]))",
    re.IGNORECASE,
)


def mask_error(text: str) -> str:
    """`text` with numbers, paths, addresses and quoted names masked; status codes stay."""
    return _MASKED.sub(_mask, text)


def _mask(match: re.Match[str]) -> str:
    kind = match.lastgroup
    return match[0] if kind in (None, "keep") else f"<{kind}>"
