"""How text is cut into words: the one tokenizer of search, vectors and comparison."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

# Cut by character: Han, kana, Hangul.
_CJK = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003134f"
)
# Signs that belong to the letter before them and that Python does not count as letters.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff\u0e31-\u0e4e"
_LETTER = rf"(?:[^\W{_CJK}]|[{_MARKS}])"
_WORD = re.compile(
    rf"[{_CJK}]"
    rf"|\d+(?:\.\d+)+(?!\w)"  # 3.11 is one word: a version is decisive
    rf"|{_LETTER}+(?:['\u2019]{_LETTER}+)*"
)
_IS_CJK = re.compile(f"[{_CJK}]")

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


def normalize(text: str) -> str:
    """NFKC and case folded, in a form that both leave as it is."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def words(text: str) -> list[str]:
    """Every word, normalised, in order; stop words kept; Chinese, Japanese, Korean by character."""
    found = _WORD.findall(normalize(text))
    return [word.replace("\u2019", "'") for word in found] if not text.isascii() else found


def content_words(text: str) -> list[str]:
    """The words that carry matter: without stop words of English, German, Spanish, Chinese."""
    return [word for word in words(text) if word not in STOP_WORDS and word.strip("_'")]


def search_terms(text: str) -> list[str]:
    """What full-text search stores and asks for: words, and bigrams of neighbouring CJK characters.

    A run of one CJK character is that character. A word of several parts (snake_case) also gives
    its parts.
    """
    terms: list[str] = []
    source = normalize(text)
    run_end = -1
    run: list[str] = []
    for match in _WORD.finditer(source):
        word = match[0]
        if _IS_CJK.match(word):
            if match.start() != run_end:
                _close_run(run, terms)
            run.append(word)
            run_end = match.end()
            continue
        _close_run(run, terms)
        word = word.replace("\u2019", "'")
        terms.append(word)
        if "_" in word:
            terms.extend(part for part in word.split("_") if part and part != word)
    _close_run(run, terms)
    return terms


def _close_run(run: list[str], terms: list[str]) -> None:
    if len(run) == 1:
        terms.append(run[0])
    terms.extend(first + second for first, second in pairwise(run))
    run.clear()
