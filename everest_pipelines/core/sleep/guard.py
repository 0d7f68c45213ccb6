"""What must never meet in one lesson, whatever a similarity says.

No embedding tells a rule from its opposite, and word overlap ranks different rules above equal
ones. So every join and merge of rules passes this guard: it reads what a sentence wants and what it
refuses, the numbers and names that decide it, and the order of its parts. Errors are told apart by
their class and by the codes that masking keeps.
"""

from __future__ import annotations

import enum
from functools import lru_cache
from typing import NamedTuple

from everest_pipelines.core.sleep import lexicon as lex
from everest_pipelines.text.hashed import mask_error
from everest_pipelines.text.tokens import normalize

# A pair that differs by at most this many words on either side, and shares all but one of as many,
# is one frame with something swapped (npm/pnpm, lib/internal). At 2 all 35 false rule pairs of the
# near-duplicates are kept apart, at 1 two are missed; the whole guard then also blocks 15 of the 68
# true English pairs of the labelled themes (11 at 1), which share too few words to join by hashing.
SWAP_WORDS = 2
# Words shared, of all words, from which an opposite sign means a clash and not another subject. Not
# fitted: half, so that neither text is mostly about something else.
CLASH_OVERLAP = 0.5
# Digits from which a number names one thing (a port, a year) wherever it stands; 100 may be a line
# length here and a batch there. Not fitted.
NAMING_DIGITS = 4


class Block(enum.StrEnum):
    """Why two texts must stay apart."""

    POLARITY = "polarity"  # one asks for what the other refuses
    PREFERENCE = "preference"  # each refuses what the other asks for
    PERMISSION = "permission"  # ask first against just do it
    AXIS = "axis"  # before/after, on/off, short/long
    NUMBER = "number"
    WORD = "word"  # the same frame with another word
    ORDER = "order"  # the same words, paired otherwise
    CODE = "code"  # another error code or class


OPPOSITE = frozenset({Block.POLARITY, Block.PREFERENCE, Block.PERMISSION, Block.AXIS})


class Stance(NamedTuple):
    """What a rule's sentence wants and refuses, in stems."""

    wanted: frozenset[str]
    refused: frozenset[str]
    neutral: frozenset[str]  # what a condition is about: X in "never X without Y"
    context: frozenset[str]  # where it holds: what follows "in", "on", "for"
    numbers: frozenset[str]
    poles: frozenset[tuple[str, int]]  # (axis, which end)
    permission: int  # +1 asks to be asked, -1 frees from asking
    forbids: bool  # never, must not, ask before: never superseded without a person
    clauses: tuple[frozenset[str], ...]

    @property
    def words(self) -> frozenset[str]:
        return self.wanted | self.refused | self.neutral

    @property
    def polarity(self) -> int:
        """-1 forbids, +1 demands, 0 neither."""
        if self.permission > 0 or (self.refused and not self.wanted):
            return -1
        return 1 if self.wanted else 0


@lru_cache(maxsize=65_536)
def stance(text: str) -> Stance:
    """The stance of a rule's sentence; an empty text has an empty one."""
    flat = _shortened(text)
    permission = lex.permission(flat)
    reader = _Reader(asked=permission != 0)
    for sentence in lex.SENTENCE_END.split(flat):
        reader.sentence(sentence)
    words = reader.wanted | reader.refused | reader.neutral
    return Stance(
        wanted=frozenset(reader.wanted - reader.neutral),
        refused=frozenset(reader.refused - reader.neutral - reader.wanted),
        neutral=frozenset(reader.neutral),
        context=frozenset(reader.context),
        numbers=frozenset(word for word in words if any(sign.isdigit() for sign in word)),
        poles=frozenset(lex.poles(flat)),
        permission=permission,
        forbids=permission > 0 or bool(lex.PROHIBITION.search(flat)),
        clauses=tuple(reader.clauses),
    )


def rules_apart(a: Stance, b: Stance) -> Block | None:
    """Why these two rules may not be one lesson, None when nothing speaks against it."""
    if a == b:
        return None
    if a.permission * b.permission < 0:
        return Block.PERMISSION
    forth, back = a.wanted & b.refused, a.refused & b.wanted
    if forth and back:
        return Block.PREFERENCE
    agreed = a.permission * b.permission > 0 or _only_context(a, b, forth | back)
    if (forth or back) and not agreed:
        return Block.POLARITY
    if _opposite_poles(a, b):
        return Block.AXIS
    shared = a.words & b.words
    if (
        shared
        and a.numbers
        and b.numbers
        and not (a.numbers <= b.numbers or b.numbers <= a.numbers)
    ):
        return Block.NUMBER
    only_a, only_b = a.words - b.words, b.words - a.words
    if only_a and only_b:
        longest = max(len(only_a), len(only_b))
        swapped = longest <= SWAP_WORDS and len(shared) >= max(1, longest - 1)
        return Block.WORD if swapped else None
    if not only_a and not only_b and _paired_otherwise(a, b):
        return Block.ORDER
    return None


def clash(a: Stance, b: Stance) -> bool:
    """Whether two rules contradict each other about one matter: both cannot be followed."""
    block = rules_apart(a, b)
    if block == Block.PREFERENCE:
        return True
    if block not in OPPOSITE:
        return False
    overlap = len(a.words & b.words) / max(1, len(a.words | b.words))
    return overlap >= CLASH_OVERLAP


def replaces(later: Stance, earlier: Stance) -> bool:
    """Whether ``later`` explicitly swaps what ``earlier`` asks for in the same slot.

    "Use npm, not pnpm" replaces "use pnpm, not npm" and "use pnpm", not "use pnpm in the web
    folder"; but "5190 instead of 5180" replaces "port 5180 for the preview". A prohibition is
    never replaced: that needs a person.
    """
    if earlier.forbids or not later.wanted or not later.refused:
        return False
    old = earlier.wanted & later.refused
    if not old:
        return False
    if _swaps_number(later, earlier):
        return True
    frame = (earlier.wanted | earlier.neutral) - old
    if earlier.refused:
        return earlier.refused <= later.wanted and frame <= later.words
    return frame <= later.words


def _swaps_number(later: Stance, earlier: Stance) -> bool:
    """The later rule is "new instead of old" and no word more; the earlier rests on the old."""
    return (
        len(later.wanted) == len(later.refused) == 1
        and not later.neutral
        and not earlier.refused
        and earlier.numbers == later.refused
        and all(word.isdecimal() and len(word) >= NAMING_DIGITS for word in later.words)
    )


class ErrorSigns(NamedTuple):
    """What tells an error from others that read alike."""

    sub: str  # class of the detector, "" when unknown
    codes: frozenset[str]  # TS2345, 404, ECONNREFUSED, KeyError
    words: frozenset[str]  # of the telling lines, names and numbers masked


@lru_cache(maxsize=65_536)
def error_signs(text: str, sub: str = "") -> ErrorSigns:
    """The signs of an error's message; ``sub`` is its class."""
    kept = lex.ERROR_ECHO.sub("", text)
    masked = mask_error(kept)
    codes = {code.lower() for code in lex.ERROR_CODE.findall(masked)}
    return ErrorSigns(
        sub=sub,
        codes=frozenset(codes - lex.EVERY_ERROR),
        words=frozenset(lex.error_words(masked)) - codes,
    )


def errors_apart(a: ErrorSigns, b: ErrorSigns) -> Block | None:
    """Why these two errors may not be one lesson, None when nothing speaks against it."""
    if a == b:
        return None
    if (a.sub != b.sub and a.sub and b.sub) or a.codes != b.codes:
        return Block.CODE
    return Block.WORD if a.words - b.words and b.words - a.words else None


def _shortened(text: str) -> str:
    flat = normalize(text).replace("\u2019", "'").replace("\u2018", "'")
    return " ".join(flat.split())


class _Reader:
    """Sorts the words of a text, clause by clause, by what is wanted of them."""

    def __init__(self, *, asked: bool) -> None:
        self.wanted: set[str] = set()
        self.refused: set[str] = set()
        self.neutral: set[str] = set()
        self.context: set[str] = set()
        self.clauses: list[frozenset[str]] = []
        self._dropped = lex.ASKING if asked else frozenset[str]()
        self._here: list[str] = []

    def sentence(self, sentence: str) -> None:
        """Reads one sentence; a complaint ("you used X") refuses what was done."""
        sentence = lex.ASKS_WHY_NOT.sub("", sentence)
        negative = bool(lex.COMPLAINT.match(sentence))
        for clause in lex.CLAUSE_END.split(sentence):
            self._clause(clause, negative)
            negative = False

    def _clause(self, clause: str, negative: bool) -> None:
        bag: set[str] = set()
        places = prefers = False
        for token in lex.tokens(clause):
            prefers = prefers or token in lex.PREFERS
            if token in lex.NEGATORS or (prefers and token == "to"):
                if negative and token in lex.CONDITIONS:  # never X without Y: Y is asked for
                    negative = self._close(self.neutral)
                elif not negative:
                    self._close(self.wanted)
                    negative = True
                places = False
            elif negative and token in lex.CONDITIONS:
                negative = self._close(self.neutral)
            elif negative and self._here and token in lex.TURNS_BACK:
                negative = self._close(self.refused)
            elif token in lex.PLACES:
                places = True
            else:
                word = lex.stem(token)
                if {token, word} & self._dropped or lex.is_empty(token, word):
                    continue
                self._here.append(word)
                bag.add(word)
                if places:
                    self.context.add(word)
        self._close(self.refused if negative else self.wanted)
        if bag:
            self.clauses.append(frozenset(bag))

    def _close(self, into: set[str]) -> bool:
        into.update(self._here)
        self._here.clear()
        return False


def _only_context(a: Stance, b: Stance, against: frozenset[str]) -> bool:
    """Both refuse the same thing, and what stands against each other is only the place."""
    return bool(a.refused & b.refused) and against <= a.context | b.context


def _opposite_poles(a: Stance, b: Stance) -> bool:
    ours, theirs = dict(a.poles), dict(b.poles)
    if len(ours) != len(a.poles) or len(theirs) != len(b.poles):
        return False  # a text that names both ends is told by its order
    return any(theirs.get(axis, end) != end for axis, end in ours.items())


def _paired_otherwise(a: Stance, b: Stance) -> bool:
    """Same words, and what stood together in one clause stands with something else."""
    if a.refused or b.refused or len(a.clauses) < 2 or len(b.clauses) < 2:
        return False
    return set(a.clauses) != set(b.clauses)
