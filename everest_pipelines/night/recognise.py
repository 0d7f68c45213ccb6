"""What a file is, without storing anything: for `everest ingest`, and for what no format knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from everest_pipelines.core.records import Micros, Role
from everest_pipelines.core.transcripts import FORMATS, HEAD_BYTES, Format, format_of, nearest
from everest_pipelines.night.compressed import opened
from everest_pipelines.text.redact import may_hold_secret, redact_bytes

BLOCK = 1 << 20


class Recognised(Struct, kw_only=True):
    """One file as a reader sees it."""

    path: str
    format: str = ""  # empty: no format knows it
    agent: str = ""
    sessions: int = 0
    turns: int = 0
    person: int = 0  # turns of a person
    events: int = 0
    quarantined: int = 0
    unknown: dict[str, int] = {}
    guess: str = ""  # what was looked for, where no format knows it


def recognise(path: Path, start: Micros) -> Recognised:
    """Read a file and say what it holds. ``start``: as for a reader. Raises OSError."""
    blocks = _blocks(path)
    first = next(blocks, b"")
    form = format_of(first.lstrip(b"\0")[:HEAD_BYTES], str(path))
    if form is None:
        return Recognised(path=str(path), guess=guess(first[:HEAD_BYTES]))
    if form.undated:
        start = max(start, path.stat().st_mtime_ns // 1000)
    reading = form.read(
        _chained(first, blocks),
        path=str(path),
        start=start,
        redact=redact_bytes,
        suspects=may_hold_secret,
    )
    return Recognised(
        path=str(path),
        format=form.name,
        agent=form.agent,
        sessions=len({turn.session_id for turn in reading.turns}),
        turns=len(reading.turns),
        person=sum(turn.role is Role.HUMAN for turn in reading.turns),
        events=len(reading.events),
        quarantined=reading.bad_lines,
        unknown=dict(Counter(reading.unknown).most_common()),
    )


def what_it_is_not(path: str) -> str:
    """Why no format knows a file, with the nearest guess; field names only, no text of it."""
    try:
        with opened(path) as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        head = b""
    return f"is in no format that is known; {guess(head)}"


def guess(head: bytes) -> str:
    """A sentence: the nearest format, or all that were looked for."""
    form, shared = nearest(head)
    if form is None:
        return f"looked for {', '.join(one.name for one in FORMATS)}"
    return f"nearest is {form.name}, by its fields {', '.join(shared)}{_page(form)}"


def _page(form: Format) -> str:
    return f" (see docs/formats/{form.name}.md)"


def _blocks(path: Path) -> Iterator[bytes]:
    with opened(str(path)) as file:
        while block := file.read(BLOCK):
            yield block


def _chained(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from rest
