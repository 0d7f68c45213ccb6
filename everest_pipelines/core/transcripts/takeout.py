"""The reader of Gemini's activities in a Google Takeout (``MyActivity.json``)."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from everest_pipelines.core.records import Micros
from everest_pipelines.core.transcripts import times
from everest_pipelines.core.transcripts.fields import Fields, read_document
from everest_pipelines.core.transcripts.lines import Redact, Sink, Suspects, unredacted
from everest_pipelines.core.transcripts.reading import Reading
from everest_pipelines.core.transcripts.talk import (
    Talk,
    fields_of,
    json_of,
    list_of,
    string_of,
)
from everest_pipelines.text.ids import digest

NAME = "gemini-takeout"
GAP: Micros = 30 * 60 * 1_000_000  # activities name no session: a longer pause ends one
PREFIXES = ("Prompted ", "Asked ", "Said ")
# Other languages: the word that so many titles of prompts begin with is no one's wording.
COMMON, COMMON_LEAST = 0.8, 5
_BEGINS = re.compile(rb'\{\s*"header"\s*:')
_TAG = re.compile(r"<[^>]*>")
_BREAK = re.compile(r"</(?:p|li|h\d|tr|pre|div)>|<br\s*/?>", re.IGNORECASE)


class Activity(Struct, frozen=True):
    """One prompt with its answer (HTML)."""

    at: Micros
    stamp: str
    title: str
    answer: str
    line: int
    content: bytes


def recognises(head: bytes, path: str) -> bool:
    """Whether a file begins like a list of activities of Gemini."""
    del path
    beginning = head.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf \t\r\n")[:8192]
    return (
        beginning[:1] in (b"[", b"{")
        and b'"header"' in beginning
        and b'"title"' in beginning
        and re.search(rb'"(?:Gemini Apps|Gemini|Bard)"', beginning) is not None
    )


def read(
    blocks: Iterable[bytes],
    *,
    path: str,
    start: Micros,
    redact: Redact = unredacted,
    suspects: Suspects | None = None,
    sink: Sink | None = None,
) -> Reading:
    """Read the activities, oldest first, as sessions between pauses; see ``claude.read``."""
    found: list[Activity] = []
    reading = read_document(
        blocks,
        path=path,
        redact=redact,
        suspects=suspects,
        sink=sink,
        begins=_BEGINS,
        is_record=lambda fields: "header" in fields and "title" in fields,
        take=lambda fields, line, content: _take(found, fields, line, content),
    )
    found.sort(key=lambda one: (one.at, one.title))
    prefixes = (*PREFIXES, *_common(found))
    sessions = Reading()
    talk: Talk | None = None
    before: Micros = 0
    for one in found:
        if talk is None or one.at - before > GAP:
            if talk is not None:
                talk.finish(sessions)
            ident = f"{NAME}-{digest(one.stamp, one.title)}"
            talk = Talk(path=path, start=start, agent=NAME, session_id=ident)
            talk.go(NAME)
        before = one.at
        talk.at(one.stamp, one.line, one.content)
        name = digest(one.stamp, one.title)
        prefix = next((prefix for prefix in prefixes if one.title.startswith(prefix)), "")
        talk.person(f"{name}:prompt", one.title[len(prefix) :])
        talk.reply(f"{name}:answer", one.answer)
    if talk is not None:
        talk.finish(sessions)
    reading.adopt(sessions)
    return reading


def _take(found: list[Activity], fields: Fields, line: int, content: bytes) -> str:
    pages = [fields_of(one) for one in list_of(fields.get("safeHtmlItem"))]
    stamp = string_of(fields.get("time"))
    at = times.parse(stamp)
    if pages and at is not None:  # else an activity that is no prompt
        answer = "\n".join(plain(string_of(one.get("html"))) for one in pages)
        own = json_of(fields) if len(content) > 1 << 16 else content
        found.append(Activity(at, stamp, string_of(fields.get("title")), answer, line, own))
    return ""


def _common(found: list[Activity]) -> list[str]:
    first = Counter(one.title.split(" ", 1)[0] for one in found if " " in one.title)
    return [
        f"{word} "
        for word, count in first.most_common(1)
        if count >= COMMON_LEAST and count >= COMMON * len(found)
    ]


def plain(page: str) -> str:
    """The text of a piece of HTML."""
    return html.unescape(_TAG.sub("", _BREAK.sub("\n", page))).strip()
