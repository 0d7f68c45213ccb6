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

# A pair that differs by at most this many words on either side, and shares as many, is one frame
# with something swapped (npm/pnpm, lib/internal). At 2 all 35 false rule pairs of the
# near-duplicates are kept apart, at 1 two are missed; the whole guard blocks 1 of the 68 true
# English rule pairs of the labelled themes, and 3 of 24 rewordings that it was not tuned on.
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
    pole_words: frozenset[str]  # by which it names them
    permission: int  # +1 asks to be asked, -1 frees from asking
    forbids: bool  # never, must not, ask before: never superseded without a person
    clauses: tuple[frozenset[str], ...]
    groups: tuple[frozenset[str], ...]  # what is refused together, without its place
    order: tuple[str, ...]  # every word once, as it comes

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
    poles = lex.poles(flat)
    named = (token for phrase in poles.values() for token in lex.tokens(phrase))
    return Stance(
        wanted=frozenset(reader.wanted - reader.neutral),
        refused=frozenset(reader.refused - reader.neutral - reader.wanted),
        neutral=frozenset(reader.neutral),
        context=frozenset(reader.context),
        numbers=frozenset(word for word in words if any(sign.isdigit() for sign in word)),
        poles=frozenset(poles),
        pole_words=frozenset(lex.stem(token) for token in named),
        permission=permission,
        forbids=permission > 0 or bool(lex.PROHIBITION.search(flat)),
        clauses=tuple(reader.clauses),
        groups=tuple(reader.groups),
        order=tuple(dict.fromkeys(reader.order)),
    )


def rules_apart(a: Stance, b: Stance) -> Block | None:
    """Why these two rules may not be one lesson, None when nothing speaks against it."""
    if a == b:
        return None
    if a.permission * b.permission < 0:
        return Block.PERMISSION
    forth, back = _against(a, b), _against(b, a)
    if forth and back:
        return Block.PREFERENCE
    agreed = a.permission * b.permission > 0 or _only_context(a, b, forth | back)
    if (forth or back) and not agreed and not _only_part(a, b) and not _only_part(b, a):
        return Block.POLARITY
    if _same_time(a, b) or _same_time(b, a):
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
        return Block.WORD if _swapped(a, b, only_a, only_b) else None
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
    ends = a.pole_words | b.pole_words if block == Block.AXIS else frozenset[str]()
    ours, theirs = a.words - ends, b.words - ends
    overlap = len(ours & theirs) / max(1, len(ours | theirs))
    return overlap >= CLASH_OVERLAP


def replaces(later: Stance, earlier: Stance) -> bool:
    """Whether ``later`` explicitly swaps what ``earlier`` asks for in the same slot.

    "Use npm, not pnpm" replaces "use pnpm, not npm" and "use pnpm", not "use pnpm in the web
    folder"; but "5190 instead of 5180" replaces "port 5180 for the preview". A prohibition is
    never replaced: that needs a person.
    """
    if earlier.forbids or not later.wanted - lex.REMOVING or not later.refused:
        return False  # to want something gone puts nothing in its place
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
    flat = " ".join(normalize(text).replace("\u2019", "'").replace("\u2018", "'").split())
    for idiom, plain in lex.IDIOMS:
        flat = idiom.sub(plain, flat)
    return flat


class _Reader:
    """Sorts the words of a text, clause by clause, by what is wanted of them."""

    def __init__(self, *, asked: bool) -> None:
        self.wanted: set[str] = set()
        self.refused: set[str] = set()
        self.neutral: set[str] = set()
        self.context: set[str] = set()
        self.clauses: list[frozenset[str]] = []
        self.groups: list[frozenset[str]] = []
        self.order: list[str] = []
        self._dropped = lex.ASKING if asked else frozenset[str]()
        self._here: list[str] = []

    def sentence(self, sentence: str) -> None:
        """Reads one sentence; a complaint ("you used X") refuses what was done."""
        sentence = lex.ASKS_WHY_NOT.sub("", sentence)
        omission = lex.OMISSION.match(sentence)
        complaint = None if omission else lex.COMPLAINT.match(sentence)
        told = omission or complaint
        told_only = not told and lex.DESCRIPTION.match(sentence) is not None
        wanted, self.wanted = self.wanted, set[str]() if told_only else self.wanted
        negative = complaint is not None
        for clause in lex.CLAUSE_END.split(sentence[told.end() :] if told else sentence):
            self._clause(clause, negative, told=complaint is not None)
            negative = False
        if told_only:
            self.neutral |= self.wanted
            self.wanted = wanted

    def _clause(self, clause: str, negative: bool, *, told: bool) -> None:
        bag: set[str] = set()
        places = prefers = False
        for token in lex.tokens(clause):
            prefers = prefers or token in lex.PREFERS
            if token in lex.NEGATORS or (prefers and token == "to"):
                if negative and token in lex.CONDITIONS:  # never X without Y: Y is asked for
                    negative = self._close(self.neutral)
                elif negative and told:  # you used X instead of Y: Y is asked for
                    negative = self._close(self.refused)
                elif not negative and not (told and not bag):
                    self._close(self.wanted)
                    negative = True
                places = False
            elif negative and token in lex.CONDITIONS:
                negative = self._close(self.neutral)
            elif negative and self._here and token in lex.TURNS_BACK:
                negative = self._close(self.refused)
            elif token in lex.PLACES:
                places = bool(self._here)  # "not in lib" is about lib
            else:
                word = lex.stem(token)
                if {token, word} & self._dropped or lex.is_empty(token, word):
                    continue
                if negative and told and len(self._here) == 1 and not bag - set(self._here):
                    self._close(self.neutral)  # what was done with it, not what is wrong
                self._here.append(word)
                self.order.append(word)
                if places:
                    self.context.add(word)
                if not bag and not negative and lex.removes(clause, token):
                    self._close(self.wanted)
                    negative = True
                bag.add(word)
        self._close(self.refused if negative else self.wanted)
        if bag:
            self.clauses.append(frozenset(bag))

    def _close(self, into: set[str]) -> bool:
        if into is self.refused and self._here:
            self.groups.append(frozenset(self._here) - self.context)
        into.update(self._here)
        self._here.clear()
        return False


def _against(a: Stance, b: Stance) -> frozenset[str]:
    """What ``a`` asks for and ``b`` refuses; refusing X in Y does not refuse Y."""
    return a.wanted & (b.refused - b.context)


def _only_part(a: Stance, b: Stance) -> bool:
    """Both are of one mind about something, and ``a`` asks for a lesser part of what ``b`` refuses.

    Whoever refuses "ALTER by hand" and asks for a migration does not refuse every change.
    """
    if not (a.wanted & b.wanted or a.refused & b.refused):
        return False
    touched = [(group & a.wanted, group) for group in b.groups if group & a.wanted]
    return bool(touched) and all(2 * len(part) < len(group) for part, group in touched)


def _same_time(a: Stance, b: Stance) -> bool:
    """ "X before Y" against "don't X before Y"; "don't Y before X" has the other order."""
    before = ("time", 0)
    if before not in a.poles or before not in b.poles or a.neutral or a.refused or not b.neutral:
        return False
    shared = a.wanted & b.words
    if not (shared & b.neutral and shared & b.wanted):
        return False
    return [w for w in a.order if w in shared] == [w for w in b.order if w in shared]


def _swapped(a: Stance, b: Stance, only_a: frozenset[str], only_b: frozenset[str]) -> bool:
    """Whether one has other words in the frame of the other: one anywhere, more place by place."""
    longest = max(len(only_a), len(only_b))
    shared = a.words & b.words
    if longest > SWAP_WORDS or len(shared) < longest:
        return False
    return longest == 1 or _frame(a, shared) == _frame(b, shared)


def _frame(one: Stance, shared: frozenset[str]) -> list[str]:
    """The shared words in their order, a run of others between them as one gap."""
    frame: list[str] = []
    for word in one.order:
        if word in shared:
            frame.append(word)
        elif not frame or frame[-1]:
            frame.append("")
    return frame


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
