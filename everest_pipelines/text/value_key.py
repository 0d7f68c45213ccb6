"""The key of what a lesson says, however it is dressed up. Tombstones hold on to it."""

from __future__ import annotations

import re
import unicodedata

from everest_pipelines.text.ids import digest

# Letters of other scripts that look like Latin ones (Unicode TR 39, the single-letter pairs that
# matter after case folding). Digits are left alone: v1 and vl are different.
_LATIN = (
    "\u0430a \u0432b \u0435e \u043ak \u043cm \u043dh \u043eo \u0440p \u0441c \u0442t \u0443y "
    "\u0445x \u0455s \u0456i \u0458j \u04bbh \u0501d \u051bq \u051dw \u0475v \u0433r \u04cfl "
    "\u03b1a \u03b2b \u03b3y \u03b5e \u03b7n \u03b9i \u03bak \u03bdv \u03bfo \u03c1p \u03c3o "
    "\u03c4t \u03c5u \u03c7x \u03c9w \u03f2c \u0131i \u0237j \u0251a \u0261g \u0269i \u0282s "
    "\u0578n \u057du \u0585o \u0570h \u0581g \u0566q "
    "\ua731s \u1d00a \u1d04c \u1d05d \u1d07e \u1d0aj \u1d0bk \u1d0dm \u1d0fo \u1d18p \u1d1bt "
    "\u1d1cu \u1d20v \u1d21w \u1d22z"
)
_CONFUSABLES = {ord(pair[0]): pair[1] for pair in _LATIN.split()}
_EMPTY = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5")  # letters that show nothing
# A plus or sharp that ends a name (C++, C#) and a minus before a number are no punctuation.
_NAME_SIGN = re.compile(r"(?<=\w)(?:\+\+|#)(?!\w)|(?<![\w.])-(?=\d)")
_KEPT_SIGNS = {"++": "\ue000", "#": "\ue001", "-": "\ue002"}  # private use: survives the folding
_ALIKE = {"\u2212": "-", "\u2192": ">"}  # the minus and the arrow that people type as - and ->


def folded(text: str) -> str:
    """`text` with everything folded that does not change what it says; readable."""
    text = "".join(_ALIKE.get(sign, sign) for sign in text)
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    text = "".join(sign for sign in text if not _invisible(sign))
    text = unicodedata.normalize("NFC", text.translate(_CONFUSABLES))
    text = _NAME_SIGN.sub(lambda match: _KEPT_SIGNS[match[0]], text)
    return " ".join("".join(_fold_sign(sign) for sign in text).split())


def value_key(text: str) -> str:
    """32 hex digits that are equal for texts that say the same in the same words.

    Compatibility forms, look-alike letters, case, punctuation, invisible characters and white space
    do not count; numbers, operators and accents do.
    """
    return digest("value", folded(text))


def _invisible(sign: str) -> bool:
    if sign.isascii():
        return sign < " " and not sign.isspace()
    return (
        (unicodedata.category(sign) in ("Cf", "Cc") and not sign.isspace())
        or sign in _EMPTY
        or "\ufe00" <= sign <= "\ufe0f"
        or "\U000e0100" <= sign <= "\U000e01ef"
    )


def _fold_sign(sign: str) -> str:
    if sign.isalnum() or "\ue000" <= sign <= "\ue002":
        return sign
    category = unicodedata.category(sign)
    if category in ("Po", "Ps", "Pe", "Pd", "Pi", "Pf", "Pc", "Sk", "So", "Zs", "Zl", "Zp"):
        return " "
    if category == "Mn" and "\u0300" <= sign <= "\u036f":
        return ""  # what NFC could not compose is decoration
    return sign
