"""Reading a file whose records are plain objects: lines or one document, one walk for both."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from everest_pipelines.core.records import BadLine
from everest_pipelines.core.transcripts.document import records
from everest_pipelines.core.transcripts.lines import Redact, Sink, Suspects, lines
from everest_pipelines.core.transcripts.reading import Reading
from everest_pipelines.core.transcripts.walk import walk
from everest_pipelines.core.transcripts.wire import NotARecord, NotJson, load, mend_characters

Fields = dict[str, Any]
IsRecord = Callable[[Fields], bool]
Take = Callable[[Fields, int, bytes], str]


def read_lines(
    blocks: Iterable[bytes],
    *,
    path: str,
    redact: Redact,
    suspects: Suspects | None,
    sink: Sink | None,
    is_record: IsRecord,
    take: Take,
) -> Reading:
    """Hand every object of a file of JSON lines that is a record to ``take`` (see ``walk``)."""
    reading = Reading()
    walk(
        lines(blocks, redact=redact, suspects=suspects, sink=sink),
        reading,
        path=path,
        decode=lambda line: _decode(line, is_record),
        is_record=lambda fields, _: is_record(fields),
        take=take,
    )
    return reading


def read_document(
    blocks: Iterable[bytes],
    *,
    path: str,
    redact: Redact,
    suspects: Suspects | None,
    sink: Sink | None,
    begins: re.Pattern[bytes],
    is_record: IsRecord,
    take: Take,
    rewritten: bool = False,
) -> Reading:
    """As ``read_lines``, of a document's outermost objects (see ``document.records``).

    ``rewritten``: its agent writes the file anew all the time, so an unfinished one is no fault.
    """
    reading = Reading()
    total = 0

    def counted() -> Iterator[bytes]:
        nonlocal total
        for block in blocks:
            total += len(block)
            yield block

    walk(
        records(counted(), begins=begins, redact=redact, suspects=suspects, sink=sink),
        reading,
        path=path,
        decode=lambda line: _decode(line, is_record),
        is_record=lambda fields, _: is_record(fields),
        take=take,
    )
    if reading.torn_tail and not rewritten:
        where = reading.complete_offset
        reading.add_bad(
            BadLine(
                source_path=path,
                line=reading.lines,
                byte_offset=where,
                reason="torn",
                content=b"",
                size=total - where,
            )
        )
    reading.size = total
    if not reading.torn_tail:
        reading.complete_offset = total
    return reading


def _decode(line: bytes, is_record: IsRecord) -> Fields:
    try:
        value = load(mend_characters(line))
    except RecursionError as error:
        raise NotJson("nested too deeply") from error
    if not isinstance(value, dict) or not is_record(cast("Fields", value)):
        raise NotARecord("another object")
    return cast("Fields", value)
