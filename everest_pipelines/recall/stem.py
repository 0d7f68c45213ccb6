"""English words to a common form, so that "configured" meets "configuration"."""

from __future__ import annotations

_VOWELS = frozenset("aeiou")
# Endings that make another kind of word of the same matter, longest first. A light form of Porter's
# algorithm (1980): no measure of syllables, and nothing that joins words of different matter.
_ENDINGS = (
    ("ization", "iz"),
    ("ational", "at"),
    ("ations", "at"),
    ("ation", "at"),
    ("ments", ""),
    ("ment", ""),
    ("ness", ""),
    ("ally", "al"),
    ("ly", ""),
)


def stem(word: str) -> str:
    """The common form of a lower-case English `word`; anything but plain letters stays as it is."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    word = _of_tense(_singular(word))
    if len(word) >= 6:
        for ending, instead in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= 3:
                word = word[: -len(ending)] + instead
                break
    if len(word) > 4 and word[-1] == "e":
        word = word[:-1]
    if len(word) >= 7 and word.endswith("at"):  # install-ation, valid-ate
        word = word[:-2]
    if len(word) > 3 and word[-1] == "y" and word[-2] not in _VOWELS:
        return word[:-1] + "i"
    return word[:-1] if len(word) > 4 and word.endswith("ll") else word


def _singular(word: str) -> str:
    """Names in -ss, -us, -is and -os stay."""
    if word[-1] != "s":
        return word
    if word.endswith("ies"):
        return word[:-3] + "y" if len(word) > 4 else word[:-1]
    if word.endswith(("sses", "ches", "shes", "xes")):
        return word[:-2]
    return word if word[-2] in "suio" else word[:-1]


def _of_tense(word: str) -> str:
    """Without -ing or -ed, where a word with a vowel is left: "string" and "need" stay."""
    rest = word[:-3] if word.endswith("ing") else word[:-2] if word.endswith("ed") else ""
    if len(rest) < 3 or not any(sign in "aeiouy" for sign in rest):
        return "use" if rest == "us" else word
    return rest[:-1] if rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest
