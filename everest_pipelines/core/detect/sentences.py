"""A person's own sentences, with their exact spans; what was pasted is left out.

Code blocks, quoted lines, logs, stack traces, diffs, tables and bulk that looks like a review are
not the person's wording. A span always points into the text that was given: the sentence is
``text[start:end]``, never a cleaned copy.
"""
# ruff: noqa: RUF001 - people type these characters

from __future__ import annotations

import itertools
import re
from functools import lru_cache
from typing import NamedTuple

LONG_LINE = 600  # characters; a longer line without a sentence end was not typed
PASTE_LINES = 12  # a block of that many lines was rarely typed
TYPED_SHARE = 0.5  # of a block's lines must read like prose
REMEMBERED = 256  # texts whose answers are kept; a text has at most 64 KB

_FENCE = re.compile(r"^[ \t]*(?:```|~~~|\"\"\"|''')")
_IMAGE = re.compile(r"^\s*\[(?:image|Image)[^\]]*\]\s*$")
_TAG = re.compile(r"^\s*</?[a-zA-Z_-]+>\s*$|^\s*<(\w[\w-]*)>.*</\1>\s*$")
_MACHINE_LINE = re.compile(
    r"""^\s*(?:
      >\s                                     # quoted
    | \$\s | ❯ | ➜ | PS\s?[A-Z]?: | >>>       # a prompt
    | [+-]{3}\s | @@ | diff\s--git | index\s[0-9a-f]+\.\.
    | [+-]\s{2,}\S | \d+\s[+-]                # diff lines
    | \d{2,4}[-/:]\d\d[-/:T]?\d\d             # a time
    | \[[^\]]{1,40}\]\s+\S+.*[:=]             # [tag] key: value
    | at\s\S+\s?\( | File\s", | Traceback
    | (?:---\s)?(?:FAIL|PASS|ok|RUN|ERROR|WARN(?:ING)?|INFO|DEBUG|Error|fatal|remote)\b[:\s]
    | \S+:\d+(?::\d+)?:?\s                    # file:line
    | \d+\.\d+\s | =>\s | FAILED\b
    | [│┃╭╰━─═|*#]{2,} | \|.*\|\s*$
    | [{}\[\]();,]+\s*$
    | (?:High|Medium|Low|Critical)\sSeverity\s*$
    | \#{1,6}\s
    | (?:GET|POST|PUT|DELETE|HEAD)\s+\S
    | https?://\S+\s*$
    | \S*[/\\]\S+\.\w+\s*$
    | \S+\s=\s.+;$
    | [\w.$-]+\s*:\s*[{\["'\d].*,?$
    | \d+\s\d*\s?[+-]
    )""",
    re.VERBOSE,
)
_PROSE = re.compile(r"[^\W\d_]{2,}(?:['’]\w+)?\s+[^\W\d_]{1,}|[\u3040-\u30ff\u3400-\u9fff]{3,}")
_END = re.compile(r"(?<=[.!?…])[\"')\]]*\s+(?=\S)|(?<=[。！？])")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|z\.B|bzw|d\.h)\.|\b\d+\.)$", re.IGNORECASE)
_BULLET = re.compile(r"\s*(?:[-*•+]\s+|\d{1,2}[.)]\s+)?")


_IDENTIFIER = re.compile(r"[a-z][A-Z]\w|\w_\w|\w\(|`|\.\w{2,4}\b|\w/\w")
_URL = re.compile(r"https?://\S+")
_PERSON = re.compile(r"(?i)\b(?:i|i'[a-z]+|we|you|me|my|our|us|your|please|can|let'?s|ok)\b")
_INTRODUCES = re.compile(
    r"(?i)\b(?:feedback|review|comments?|copilot|bugbot|coderabbit|says?|said|error|log|output|"
    r"warning|getting|message|report)\b[^.!?]{0,60}:\s*$"
)
REVIEW_LENGTH = 160  # characters; so long a line full of identifiers and without a person is pasted


def one_piece(text: str, own: list[Sentence]) -> bool:
    """Whether nothing but white space and bullets stands between the sentences."""
    return all(
        not any(char.isalnum() for char in text[one.end : other.start])
        for one, other in itertools.pairwise(own)
    )


class Sentence(NamedTuple):
    """One sentence and where it stands."""

    text: str
    start: int
    end: int


def own_lines(text: str) -> list[tuple[int, int]]:
    """The spans of the lines that the person typed."""
    return list(_own_lines(text))


# Detectors ask the same turns again, for their context and on every day of a session.
@lru_cache(maxsize=REMEMBERED)
def _own_lines(text: str) -> tuple[tuple[int, int], ...]:
    lines = _lines(text)
    own: list[tuple[int, int]] = []
    fenced = False
    block: list[tuple[int, int]] = []
    paste = False
    for start, end in [*lines, (len(text), len(text))]:
        line = text[start:end]
        if _FENCE.match(line):
            # a one-line """quote""" opens and closes at once
            if not _closes_itself(line):
                fenced = not fenced
            own.extend(_typed(text, block))
            block = []
            continue
        if fenced or paste:
            continue
        if line.rstrip().endswith(":") and _INTRODUCES.search(line):
            # what follows is not the person's, up to the end: where it stops nobody can tell
            own.extend(_typed(text, [*block, (start, end)]))
            block, paste = [], True
            continue
        if not line.strip():
            own.extend(_typed(text, block))
            block = []
            continue
        block.append((start, end))
    own.extend(_typed(text, block))
    return tuple(own)


def sentences(text: str) -> list[Sentence]:
    """The person's own sentences in order."""
    return list(_sentences(text))


@lru_cache(maxsize=REMEMBERED)
def _sentences(text: str) -> tuple[Sentence, ...]:
    found: list[Sentence] = []
    for start, end in _own_lines(text):
        found.extend(_split(text, start, end))
    return tuple(found)


@lru_cache(maxsize=REMEMBERED)
def own_text(text: str) -> str:
    """The person's own lines, joined."""
    return "\n".join(text[start:end].strip() for start, end in _own_lines(text))


def pasted_text(text: str) -> str:
    """The lines that the person did not type, joined."""
    own = set(_own_lines(text))
    return "\n".join(text[start:end] for start, end in _lines(text) if (start, end) not in own)


def is_review(line: str) -> bool:
    """Whether a line reads like a reviewer's: long, full of identifiers, without a person."""
    line = _URL.sub("", line)  # a link is nobody's wording
    return (
        len(line) >= REVIEW_LENGTH
        and not _PERSON.search(line)
        and len(_IDENTIFIER.findall(line)) >= 2
    )


def _lines(text: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    start = 0
    for part in text.split("\n"):
        spans.append((start, start + len(part)))
        start += len(part) + 1
    return spans


def _closes_itself(line: str) -> bool:
    stripped = line.strip()
    return any(len(stripped) > 6 and stripped.endswith(mark) for mark in ("```", '"""', "'''"))


def _typed(text: str, block: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The lines of one block (between blank lines) that the person typed."""
    if not block:
        return []
    kept = [span for span in block if _is_prose(text[span[0] : span[1]])]
    if len(block) >= 3 and len(kept) < TYPED_SHARE * len(block):
        # mostly machine output: only a first line of plain prose introduces it
        first = block[0]
        return [first] if first in kept and _introduces(text[first[0] : first[1]]) else []
    if len(block) >= PASTE_LINES and len(kept) < 0.8 * len(block):
        return []
    return kept


def _introduces(line: str) -> bool:
    return len(line) < 240 and _PROSE.search(line) is not None


def _is_prose(line: str) -> bool:
    if len(line) > LONG_LINE and not _END.search(line):
        return False
    if _IMAGE.match(line) or _TAG.match(line) or _MACHINE_LINE.match(line):
        return False
    if is_review(line):
        return False
    symbols = sum(line.count(char) for char in "{}[]();=<>|\\│━")
    return symbols <= max(3, len(line) // 14)


def _split(text: str, start: int, end: int) -> list[Sentence]:
    line = text[start:end]
    bullet = _BULLET.match(line)
    at = bullet.end() if bullet else 0
    found: list[Sentence] = []
    for mark in _END.finditer(line):
        if line[: mark.start()].endswith("..") and line[mark.end() : mark.end() + 1].islower():
            continue
        if mark.start() < at or _ABBREVIATION.search(line[at : mark.start()]):
            continue
        _keep(found, text, start + at, start + mark.start())
        at = mark.end()
    _keep(found, text, start + at, end)
    return found


def _keep(found: list[Sentence], text: str, start: int, end: int) -> None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if any(char.isalpha() for char in text[start:end]):
        found.append(Sentence(text[start:end], start, end))


_FILLER = re.compile(
    r"""^(?:\s|[,.:;!…–—-])*
    (?:(?:ok(?:ay)?|no|nope|yes|yeah|yep|sure|well|so|and|but|also|hmm+|hm|oh|ah|wait|right|please|
       alright|actually|sorry|thanks|great|good|again|then|hey(?:\sclaude)?|cool|perfect|nice|
       fine|stop|just|btw|fyi|i\ssaid|remember(?:\sthat)?|note(?:\sthat)?|like\si\ssaid|
       to\sbe\sclear|one\smore\sthing|for\sthe\srecord|in\sgeneral|
       nein|ja|aber|bitte|also|nicht\sso|不|不是|请|no\sno)
    (?=[\s,.:;!…–—-]|$)(?:\s*[,.:;!…–—-]+\s*|\s+))
    """,
    re.VERBOSE | re.IGNORECASE,
)
_KEEP_BEFORE_COMMA = re.compile(r"(?i)^(?:no|stop|just|so|then|right|good|fine|again|please)\s+\w")


_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?[,.!?]?$")


def as_rule(sentence: str) -> str:
    """The sentence as a reader meets it: leading fillers cut, first letter upper, full stop."""
    text = " ".join(sentence.split()).strip(" \"'“”*")
    while True:
        cut = _FILLER.match(text)
        rest = text[cut.end() :] if cut else ""
        if not cut or len(rest.split()) < 2:
            break
        word = cut.group(0).strip().lower()
        # "no mocks in tests" and "stop using vale" say something with their first word
        if _KEEP_BEFORE_COMMA.match(text) and word in {"no", "stop", "just"}:
            break
        text = rest
    text = text.strip(" ,;:–—-\"'“”")
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1].strip()
    if not text:
        return ""
    first = text.split(" ", 1)[0]
    if first.islower() and _WORD.match(first):
        text = text[0].upper() + text[1:]
    return text if text[-1] in ".!?…。！？" else text + "."
