"""Damaged files: each fault costs only itself, is named, and nothing raises."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everest_pipelines.core.transcripts import lines as lines_module
from everest_pipelines_tests.core.transcripts.shapes import (
    SESSION,
    file_of,
    line,
    read_bytes,
    read_records,
    record,
    text,
    user,
)

ONE, TWO, THREE = (user(f"u{n}", n, f"words {n}") for n in (1, 2, 3))


def said(*records: object) -> list[str]:
    return [turn.text for turn in read_records(*records).turns]  # type: ignore[arg-type]


def test_two_records_on_one_line_are_both_read() -> None:
    title = {"type": "summary", "summary": "x", "leafUuid": "y"}
    for glue in (b"", b"  ", b"\0\0"):
        reading = read_records(line(ONE) + glue + line(title) + glue + line(TWO), THREE)
        assert [turn.text for turn in reading.turns] == ["words 1", "words 2", "words 3"]
        assert (reading.records, reading.lines, reading.bad) == (4, 2, [])


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_a_cut_record_costs_only_itself_and_the_whole_one_behind_it_is_read(share: float) -> None:
    cut = line(ONE)[: int(len(line(ONE)) * share)]
    reading = read_records(THREE, cut + line(TWO))
    assert [turn.text for turn in reading.turns] == ["words 3", "words 2"]
    bad = reading.bad[0]
    assert (bad.line, bad.reason, bad.content, bad.size) == (2, "torn", cut, len(cut))
    assert bad.byte_offset == len(line(THREE)) + 1


def test_a_record_written_inside_another_leaves_both() -> None:
    outer, inner = line(ONE), line(TWO)
    for place in range(5, len(outer), 37):
        reading = read_records(outer[:place] + inner + outer[place:])
        assert {turn.text for turn in reading.turns} == {"words 1", "words 2"}, place
        assert not reading.bad


def test_a_part_of_a_cut_record_is_not_taken_for_a_record() -> None:
    inner = {"type": "assistant", "uuid": "x", "message": {"content": [text("not a turn")]}}
    progress = record("progress", "p1", 0, data={"type": "agent_progress", "message": inner})
    torn = line(progress)[:-1]
    reading = read_records(torn, ONE)
    assert [turn.text for turn in reading.turns] == ["words 1"]
    assert [(bad.line, bad.reason) for bad in reading.bad] == [(1, "torn")]


def test_a_torn_last_line_is_no_fault_and_the_bookmark_stays_before_it() -> None:
    head = file_of(ONE, TWO)
    for cut in (1, 20, len(line(THREE)) - 1):
        reading = read_bytes(head + line(THREE)[:cut])
        assert [turn.text for turn in reading.turns] == ["words 1", "words 2"]
        assert (reading.bad, reading.torn_tail) == ([], True)
        assert (reading.complete_offset, reading.size) == (len(head), len(head) + cut)
    grown = read_bytes(file_of(ONE, TWO, THREE))
    assert len(grown.turns) == 3 and not grown.torn_tail


def test_a_whole_last_line_without_a_newline_is_read() -> None:
    data = file_of(ONE) + line(TWO)
    reading = read_bytes(data)
    assert [turn.text for turn in reading.turns] == ["words 1", "words 2"]
    assert reading.complete_offset == len(data) and not reading.torn_tail


def test_a_torn_tail_behind_a_whole_record_on_the_last_line_stays_open() -> None:
    head = file_of(ONE) + line(TWO)
    reading = read_bytes(head + line(THREE)[:50])
    assert [turn.text for turn in reading.turns] == ["words 1", "words 2"]
    assert (reading.complete_offset, reading.bad, reading.torn_tail) == (len(head), [], True)


def test_nul_bytes_are_stripped_wherever_they_stand() -> None:
    data = line(ONE)
    assert said(b"\0" * 300 + data + b"\0" * 9000) == ["words 1"]
    assert said(data[:40] + b"\0" * 300 + data[40:]) == ["words 1"]
    assert read_records(b"\0" * 500, ONE).bad == []


def test_empty_cut_and_foreign_lines_are_survived_and_told_apart() -> None:
    reading = read_records(b"", b"  ", line(ONE)[:30], b"[1, 2]", b'{"a": 1}', b"null", b"hi", TWO)
    assert [turn.text for turn in reading.turns] == ["words 2"]
    assert [(bad.line, bad.reason) for bad in reading.bad] == [
        (3, "torn"),
        (4, "not_a_record"),
        (5, "not_a_record"),
        (6, "not_a_record"),
        (7, "not_json"),
    ]
    assert (reading.lines, reading.records) == (6, 1)


def test_lone_surrogates_become_replacement_characters() -> None:
    data = line(user("u1", 0, "a X b \\ud83d \U0001f600")).replace(b"X", rb"\ud83d")
    pair = line(user("u2", 1, "X")).replace(b"X", rb"\ud83d\ude00")
    escaped = line(user("u3", 2, "path X")).replace(b"X", rb"\\ud83d")
    texts = said(data, pair, escaped)
    assert texts == ["a \ufffd b \\ud83d \U0001f600", "\U0001f600", "path \\ud83d"]
    "".join(texts).encode()


def test_bytes_that_are_no_utf8_become_replacement_characters() -> None:
    data = line(user("u1", 0, "caf? ok")).replace(b"?", b"\xe9")
    assert said(data, TWO) == ["caf\ufffd ok", "words 2"]


def test_crlf_and_a_byte_order_mark_are_no_fault() -> None:
    data = b"\xef\xbb\xbf" + file_of(ONE, TWO).replace(b"\n", b"\r\n")
    reading = read_bytes(data)
    assert [turn.text for turn in reading.turns] == ["words 1", "words 2"]
    assert reading.bad == [] and reading.complete_offset == len(data)


def test_line_separators_inside_a_text_split_nothing() -> None:
    assert said(user("u1", 0, "a\u2028b\u2029c\u0085d")) == ["a\u2028b\u2029c\u0085d"]


def test_a_line_above_the_cap_is_named_and_the_rest_is_read(monkeypatch) -> None:
    monkeypatch.setattr(lines_module, "LINE_CAP", 2000)
    reading = read_records(ONE, user("u9", 0, "x" * 5000), TWO)
    assert [turn.text for turn in reading.turns] == ["words 1", "words 2"]
    assert [(bad.line, bad.reason, bad.size > 5000) for bad in reading.bad] == [
        (2, "too_long", True)
    ]


def test_fields_of_a_wrong_shape_do_not_cost_the_record() -> None:
    odd = ONE | {
        "version": 7,
        "isMeta": "false",
        "cwd": ["x"],
        "origin": "human",
        "gitBranch": None,
    }
    assert said(odd) == ["words 1"]
    blocks = [text("kept"), 5, {"type": "text", "text": 7}, {"type": ["x"]}, None]
    assert said(user("u1", 0, blocks)) == ["kept\n7"]
    assert said(user("u1", 0, {"type": "text", "text": "alone"})) == ["alone"]
    assert said(ONE | {"message": "plain"}) == ["plain"]


def test_a_record_without_its_message_is_no_error() -> None:
    bare = dict(ONE)
    del bare["message"]
    reading = read_records(bare, TWO)
    assert [turn.text for turn in reading.turns] == ["words 2"]


def test_numbers_that_json_does_not_know_do_not_cost_the_record() -> None:
    data = line(ONE | {"x": 1}).replace(b'"x":1', b'"x":NaN,"y":' + b"9" * 400)
    assert said(data) == ["words 1"]


def test_deep_nesting_neither_raises_nor_takes_long() -> None:
    reading = read_records(b'{"a":' * 100_000, b'{"type":' + b"[" * 100_000, ONE)
    assert [turn.text for turn in reading.turns] == ["words 1"]
    assert len(reading.bad) == 2


def test_a_chain_of_records_that_bites_its_tail_ends() -> None:
    loop = [record("progress", "p1", 0, "p2"), record("progress", "p2", 0, "p1")]
    reading = read_records(*loop, user("u1", 1, "hi", "p1"), user("u2", 2, "self", "u2"))
    assert [turn.parent for turn in reading.turns] == ["", ""]


# -- properties --------------------------------------------------------------------------------


Json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = [
    "type uuid parentUuid sessionId timestamp cwd version gitBranch isSidechain agentId isMeta",
    "message toolUseResult origin attachment content operation subtype planContent entrypoint",
]


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(["user", "assistant", "system", "attachment", "queue-operation"]),
    st.dictionaries(st.sampled_from(" ".join(FIELDS).split()), Json, max_size=6),
    st.dictionaries(st.sampled_from(["id", "model", "content", "role"]), Json, max_size=3),
)
def test_records_of_any_shape_never_raise(kind: str, fields: dict, message: dict) -> None:
    odd = {"type": kind, "message": message, "attachment": {"type": "queued_command"} | message}
    data = json.dumps(odd | fields).encode()
    reading = read_records(ONE, data, TWO)
    assert {"words 1", "words 2"} <= {turn.text for turn in reading.turns}
    assert reading.session_id == SESSION
