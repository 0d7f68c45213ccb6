from __future__ import annotations

import pytest

from everest_pipelines.core.transcripts import FORMATS, HEAD_BYTES, format_of
from everest_pipelines_tests.core.transcripts.shapes import file_of, queue, record, user

SUMMARY = {"type": "summary", "summary": "x", "leafUuid": "y"}
SNAPSHOT = {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}}


@pytest.mark.parametrize(
    "head",
    [
        file_of(user("u1", 0, "hello")),
        file_of(SUMMARY),
        file_of(SNAPSHOT),
        file_of(queue("enqueue", 0, "hello")),
        b"\xef\xbb\xbf" + file_of(user("u1", 0, "hello")),
        b"\0" * 200 + file_of(user("u1", 0, "hello")),
        b'{"torn": tru\n' + file_of(record("system", "s1", 0, content="x")),
        file_of(user("u1", 0, "x" * 200_000))[:HEAD_BYTES],
    ],
)
def test_claude_code_is_recognised_by_its_content(head: bytes) -> None:
    found = format_of(head, "whatever.txt")
    assert found is not None and found.name == "claude-code"


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"hello\n",
        b'{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"x"}}\n',
        b'{"type":"session.start","data":{"sessionId":"x"},"id":"1","timestamp":"t","parentId":null}',
        b'{"sessionId":"x","projectHash":"y","startTime":"t","messages":[]}',
        b'[{"mapping":{}}]',
    ],
)
def test_other_agents_files_are_not_taken_for_claude_code(head: bytes) -> None:
    found = format_of(head, "projects/x/y.jsonl")
    assert found is None or found.name != "claude-code"


def test_names_of_formats_are_unique() -> None:
    assert len({one.name for one in FORMATS}) == len(FORMATS)
