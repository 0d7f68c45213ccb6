"""How text is cut into words: the one tokenizer of search, vectors and comparison.

A word is a CJK character; or a version such as 3.11; or a run of letters, digits, underscores and
the signs that belong to letters, with apostrophes inside. Written without ``re``, whose import
costs a hook more than its whole search.
"""

from __future__ import annotations

# Cut by character: Han, kana, Hangul.
_CJK = (
    (0x3005, 0x3007), (0x3040, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF),
    (0xAC00, 0xD7AF), (0xF900, 0xFAFF), (0x20000, 0x3134F),
)  # fmt: skip
# Signs that belong to the letter before them and that Python does not count as letters.
_MARKS = (
    (0x300, 0x36F), (0x591, 0x5C7), (0x64B, 0x65F), (0x670, 0x670), (0x900, 0x963),
    (0x966, 0xDFF), (0xE31, 0xE4E),
)  # fmt: skip
_APOSTROPHES = "'\u2019"
_INSIDE = f"._{_APOSTROPHES}"  # what may stand within a word, beside letters and digits
_BREAK = "\0"  # put before every CJK character: it is a word of its own

# Function words only: what is left must be able to carry a match on its own. Words that are also
# names in this trade ("bin", "todo", "make") stay in.
_STOP_ENGLISH = """
a about after again all also am an and any are as at be because been before being below between
both but by can cannot could did do does doing don't doesn't didn't isn't aren't wasn't weren't
won't wouldn't can't couldn't shouldn't haven't hasn't hadn't down during each either else ever
few for from further had has have having he her here hers him his how however i i'd i'll i'm
i've if in into is it it's its itself just let let's like may me might more most much must my
myself neither no nor not now of off oh ok okay on once one only or other our ours out over own
please quite rather really same shall she should so some still such than thank thanks that
that's the their theirs them then there there's these they they're this those though through to
too under until up upon us very was we we're we've well were what when where whether which while
who whom whose why will with within without would yes yet you you'd you'll you're you've your
yours yourself never always
"""
_STOP_GERMAN = """
aber als am an auch auf aus bei beim bis bitte da damit dann das dass dein deine dem den denn
der des dich die dies diese diesem diesen dieser dieses dir doch dort du durch ein eine einem
einen einer eines er es etwas euch euer für ganz hab habe haben hat hatte hier ich ihm ihn ihr
ihre im immer in ist ja jede jeden jeder jetzt kann kannst kein keine keinen können könnte man
mein meine mich mir mit muss müssen nach nein nicht nie noch nochmal nun nur ob oder ohne schon
sehr sein seine sich sie sind so soll sollen sollte um und uns unser unter vom von vor war warum
was weil welche wenn werden wer wie wieder wir wird wirst wo wurde zu zum zur über
"""
_STOP_SPANISH = """
a al algo antes aquí así aunque cada como con cual cuando de del desde donde dos el ella ellos
en entre era eres es esa ese eso esta está están este esto estos favor fue ha hacia hasta hay he
la las le les lo los más me mi mis mucho muy nada ni no nos nosotros nunca o os otra otro para
pero poco por porque pues que qué quien se sea ser si sí siempre sin sobre solo sólo son soy su
sus también tan te tengo ti tiene tu tú un una uno unos usted y ya yo
"""
_STOP_CHINESE = """
的 了 是 在 我 你 您 他 她 它 们 这 那 不 也 就 和 与 有 没 很 都
还 又 把 被 让 给 吗 呢 吧 啊 请 个 会 要 之 其 而 或 及
"""

STOP_WORDS = frozenset(
    " ".join((_STOP_ENGLISH, _STOP_GERMAN, _STOP_SPANISH, _STOP_CHINESE)).split()
)


class _Cuts(dict[int, str]):
    """For ``str.translate``: what parts words becomes a space. Filled as signs are met."""

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        if _among(code, _CJK):
            cut = _BREAK + sign
        elif sign.isalnum() or sign in _INSIDE or _among(code, _MARKS):
            cut = sign
        else:
            cut = " "
        self[code] = cut
        return cut


def _among(code: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(first <= code <= last for first, last in ranges)


_CUTS = _Cuts()


def normalize(text: str) -> str:
    """NFKC and case folded, in a form that both leave as it is."""
    if text.isascii():
        return text.lower()
    import unicodedata

    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def words(text: str) -> list[str]:
    """Every word, normalised, in order; stop words kept; Chinese, Japanese, Korean by character."""
    found: list[str] = []
    for piece in normalize(text).translate(_CUTS).split():
        if piece.isalnum():
            found.append(piece)
            continue
        head, *rest = piece.split(_BREAK)
        _cut(head, found, bool(rest) and rest[0][0].isalnum())
        for at, part in enumerate(rest, start=1):
            found.append(part[0])
            _cut(part[1:], found, at < len(rest) and rest[at][0].isalnum())
    return found


def _cut(piece: str, found: list[str], before_letter: bool) -> None:
    """Append the words of a piece without CJK; `before_letter`: a CJK letter follows it at once."""
    if "." not in piece and "'" not in piece and "\u2019" not in piece:
        if piece:
            found.append(piece)
        return
    at = 0
    while at < len(piece):
        if piece[at] == "." or piece[at] in _APOSTROPHES:
            at += 1
            continue
        end = _version_end(piece, at, before_letter) or _word_end(piece, at)
        found.append(piece[at:end].replace("\u2019", "'"))
        at = end


def _version_end(piece: str, at: int, before_letter: bool) -> int:
    """Where the version that begins at `at` ends (3.11: a version is decisive); 0: none does."""
    ends: list[int] = []
    end = _digits_end(piece, at)
    while end > at and end + 1 < len(piece) and piece[end] == "." and piece[end + 1].isdecimal():
        end = _digits_end(piece, end + 1)
        ends.append(end)
    if ends:
        last = ends[-1]
        letter = piece[last].isalnum() or piece[last] == "_" if last < len(piece) else before_letter
        if letter:
            ends.pop()
    return ends[-1] if ends else 0


def _digits_end(piece: str, at: int) -> int:
    while at < len(piece) and piece[at].isdecimal():
        at += 1
    return at


def _word_end(piece: str, at: int) -> int:
    while at < len(piece):
        if piece[at] == ".":
            return at
        if piece[at] in _APOSTROPHES:
            follows = piece[at + 1 : at + 2]
            if not follows or follows in f".{_APOSTROPHES}":
                return at
        at += 1
    return at


def content_words(text: str) -> list[str]:
    """The words that carry matter: without stop words of English, German, Spanish, Chinese."""
    return [word for word in words(text) if word not in STOP_WORDS and word.strip("_'")]


def search_terms(text: str) -> list[str]:
    """What full-text search stores and asks for: words, and bigrams of neighbouring CJK characters.

    A run of one CJK character is that character. A word of several parts (snake_case) also gives
    its parts.
    """
    terms: list[str] = []
    for piece in normalize(text).translate(_CUTS).split():
        if piece.isalnum():
            terms.append(piece)
            continue
        head, *rest = piece.split(_BREAK)
        _terms_of(head, terms, bool(rest) and rest[0][0].isalnum())
        run = ""
        for at, part in enumerate(rest, start=1):
            run += part[0]
            if len(part) > 1 or at == len(rest):
                _close_run(run, terms)
                run = ""
                _terms_of(part[1:], terms, at < len(rest) and rest[at][0].isalnum())
    return terms


def _terms_of(piece: str, terms: list[str], before_letter: bool) -> None:
    found: list[str] = []
    _cut(piece, found, before_letter)
    for word in found:
        terms.append(word)
        if "_" in word:
            terms.extend(part for part in word.split("_") if part and part != word)


def _close_run(run: str, terms: list[str]) -> None:
    if len(run) == 1:
        terms.append(run)
    terms.extend(run[at : at + 2] for at in range(len(run) - 1))
