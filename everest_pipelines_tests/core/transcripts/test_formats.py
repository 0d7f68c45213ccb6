"""What holds for every format beside Claude Code's and Codex's, on hand-made files of each."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everest_pipelines.core.records import Role
from everest_pipelines.core.transcripts import Reading, format_of, nearest
from everest_pipelines_tests.core.transcripts import chats
from everest_pipelines_tests.core.transcripts.chats import FILES, START, lines_of, read

LINES = sorted(name for name, (_, _, lines) in FILES.items() if lines)
MUTILATIONS = ["cut", "splice", "nul", "glue", "garbage", "duplicate", "recode"]


def said(reading: Reading) -> list[str]:
    """The person's words, and the notes."""
    humans = [turn.text for turn in reading.turns if turn.role is Role.HUMAN]
    return humans + [one.text for one in reading.events]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("block", [7, 1 << 20])
def test_every_format_is_recognised_and_its_words_are_read(name: str, block: int) -> None:
    form, data, _ = FILES[name]
    found = format_of(data[: 64 * 1024], "whatever.bin")
    assert found is not None and found.name == form
    reading = read(data, block=block)
    words = [text for text in said(reading) if text.startswith("words")]
    assert words == ["words 1", "words 2", "words 3"]
    assert (reading.bad, reading.unknown, reading.torn_tail) == ([], {}, False)
    assert (reading.complete_offset, reading.size) == (len(data), len(data))
    answers = [turn.text for turn in reading.turns if turn.role is Role.ASSISTANT]
    if form != "everest-events":
        assert [text[:8] for text in answers if text] == ["answer 1", "answer 2", "answer 3"]
        assert {turn.agent for turn in reading.turns} == {found.agent}


@pytest.mark.parametrize("name", FILES)
def test_windows_line_ends_a_byte_order_mark_and_nul_runs_change_nothing(name: str) -> None:
    _, data, lines = FILES[name]
    plain = read(data)
    for changed in (
        data.replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + data,
        b"\0" * 300 + data,
        data + b"\0" * 300 if not lines else data + b"\0" * 300 + b"\n",
    ):
        again = read(changed)
        assert (said(again), again.bad) == (said(plain), [])
        assert [turn.turn_id for turn in again.turns] == [turn.turn_id for turn in plain.turns]


@pytest.mark.parametrize("name", FILES)
def test_turn_ids_are_unique_and_do_not_depend_on_the_path(name: str) -> None:
    _, data, _ = FILES[name]
    one, two = read(data, path="a/one.json"), read(data, path="b\\two.json")
    ids = [turn.turn_id for turn in one.turns]
    assert len(set(ids)) == len(ids)
    if name != "copilot":  # its folder is the session's name where the first event is lost
        assert ids == [turn.turn_id for turn in two.turns]
    assert [event.key for event in one.events] == [event.key for event in two.events]


@pytest.mark.parametrize("name", FILES)
def test_the_raw_lines_that_are_kept_read_as_the_file_did(name: str) -> None:
    form, data, _ = FILES[name]
    kept: list[tuple[int, bytes]] = []
    found = format_of(data, "x")
    assert found is not None and found.name == form
    found.read([data], path="x/f", start=START, sink=lambda at, block: kept.append((at, block)))
    again = b"".join(block for _, block in kept)
    assert said(read(again)) == said(read(data))
    assert [at for at, _ in kept] == sorted(at for at, _ in kept)


@pytest.mark.parametrize("name", FILES)
def test_every_word_passes_the_redactor_before_it_is_a_turn(name: str) -> None:
    _, data, _ = FILES[name]
    found = format_of(data, "x")
    assert found is not None
    kept: list[bytes] = []
    reading = found.read(
        [data],
        path="x/f",
        start=START,
        redact=lambda line: line.replace(b"words", b"*****"),
        sink=lambda _, block: kept.append(block),
    )
    assert said(reading) and not any("words" in text for text in said(reading))
    assert kept and b"words" not in b"".join(kept)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(LINES), st.sampled_from(MUTILATIONS), st.data())
def test_any_mutilation_of_a_line_keeps_every_other_record(
    name: str, how: str, data: st.DataObject
) -> None:
    whole = FILES[name][1]
    lines = whole.split(b"\n")[:-1]
    first = 1 if name != "events" else 0  # the header names the session; see the next test
    victim = data.draw(st.integers(first, len(lines) - 1))
    hurt = lines[victim]
    place = data.draw(st.integers(1, len(hurt) - 1))
    damaged = {victim}
    if how == "cut":
        lines[victim] = hurt[:place]
    elif how == "splice":
        lines[victim] = hurt[:place] + hurt[data.draw(st.integers(0, len(hurt))) :]
    elif how == "nul":
        lines[victim] = hurt[:place] + b"\0" * 500 + hurt[place:]
        damaged = set()
    elif how == "glue":
        lines[victim] = hurt + lines[data.draw(st.integers(0, len(lines) - 1))]
        damaged = set()
    elif how == "garbage":
        lines[victim] = hurt[:place] + b'\x07}{"' + hurt[place:]
    elif how == "duplicate":
        lines.insert(place % len(lines), hurt)
        damaged = set()
    else:
        lines[victim] = hurt.decode().encode("utf-16")
    reading = read(b"\n".join(lines) + b"\n")
    lost = {text for one in damaged for text in _words_on(whole.split(b"\n")[one])}
    kept = Counter(set(said(read(whole))) - lost)
    assert kept - Counter(said(reading)) == Counter()


def _words_on(line: bytes) -> list[str]:
    return [f"words {n}" for n in (1, 2, 3) if f'"words {n}"'.encode() in line]


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(FILES)), st.data())
def test_no_cut_splice_or_garbage_raises_or_loses_count_of_bytes(
    name: str, data: st.DataObject
) -> None:
    form, whole, _ = FILES[name]
    found = format_of(whole, "x")
    assert found is not None and found.name == form
    one, two = sorted(data.draw(st.tuples(*[st.integers(0, len(whole))] * 2)))
    junk = data.draw(st.binary(max_size=20) | st.sampled_from([b'"', b"}", b"{", b"\\", b"\0"]))
    hurt = whole[:one] + junk + whole[two:]
    block = data.draw(st.sampled_from([13, 1 << 20]))
    blocks = [hurt[place : place + block] for place in range(0, len(hurt), block)]
    reading = found.read(blocks, path="x/f", start=START)
    assert reading.size == len(hurt)
    assert 0 <= reading.complete_offset <= len(hurt)
    json.dumps([turn.text for turn in reading.turns]).encode()


@pytest.mark.parametrize("name", ["chatgpt", "chatgpt indented", "claude-ai"])
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_broken_conversation_costs_only_itself(name: str, data: st.DataObject) -> None:
    _, whole, _ = FILES[name]
    begins = {"chatgpt": b'{"title"', "claude-ai": b'{"uuid":"ca-'}.get(name, b'{\n  "title"')
    second = whole.index(begins, whole.index(begins) + 1)
    third = whole.index(begins, second + 1)
    place = data.draw(st.integers(second + len(begins), third - 8))
    length = data.draw(st.integers(1, third - 7 - place))
    junk = data.draw(st.sampled_from([b"", b'"', b"}", b"{", b'"}', b"]}"]))
    hurt = whole[:place] + junk + whole[place + length :]
    reading = read(hurt)
    assert {"words 1", "words 3"} <= set(said(reading))


def test_an_export_that_breaks_off_is_named_and_what_stood_before_is_read() -> None:
    _, data, _ = FILES["chatgpt"]
    reading = read(data[:-40])
    assert said(reading) == ["words 1", "words 2"]
    assert [bad.reason for bad in reading.bad] == ["torn"]
    assert said(read(data)) == ["words 1", "words 2", "words 3"]


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(LINES), st.lists(st.integers(0, 3000), max_size=4))
def test_reading_lines_as_they_grow_ends_at_the_same_turns(name: str, stops: list[int]) -> None:
    _, data, _ = FILES[name]
    found = format_of(data, "x")
    assert found is not None
    once = found.read([data], path="x/f", start=START)
    known = {turn.turn_id for turn in once.turns} | {event.key for event in once.events}
    offset = 0
    for stop in sorted(stops):
        reading = found.read([data[:stop]], path="x/f", start=START)
        assert reading.bad == []  # a torn tail is no fault
        assert offset <= reading.complete_offset <= min(stop, len(data))
        offset = reading.complete_offset
        now = {turn.turn_id for turn in reading.turns} | {event.key for event in reading.events}
        assert now <= known
    small = [data[place : place + 17] for place in range(0, len(data), 17)]
    assert found.read(small, path="x/f", start=START).turns == once.turns


NAMES = ["type", "text", "id", "content", "role", "parts", "data"]
Json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "id", "content", "role", "parts", "data"]), inner
        )
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(FILES)), st.data())
def test_fields_of_any_shape_never_raise(name: str, data: st.DataObject) -> None:
    _, whole, _ = FILES[name]
    lines = whole.count(b"\n{") > 0 and name not in ("gemini document", "chatgpt indented")
    values = [json.loads(one) for one in whole.split(b"\n") if one] if lines else json.loads(whole)
    spoilt = _spoil(values, data)
    text = lines_of(*spoilt) if lines else json.dumps(spoilt).encode()
    found = format_of(whole, "x")
    assert found is not None
    found.read([text], path="x/f", start=START)


def _spoil(value: object, data: st.DataObject) -> object:
    """One field somewhere, at any depth, has another value."""
    if isinstance(value, list) and value:
        place = data.draw(st.integers(0, len(value) - 1))
        return [*value[:place], _spoil(value[place], data), *value[place + 1 :]]
    if isinstance(value, dict) and value and data.draw(st.integers(0, 3)):
        name = data.draw(st.sampled_from(sorted(value)))
        return value | {name: _spoil(value[name], data)}
    return data.draw(Json)


def test_records_nested_beyond_reason_are_survived() -> None:
    deep = b'{"role":"user","content":' + b"[" * 900 + b"]" * 900 + b"}"
    reading = read(b"[" + chats.dumped({"role": "user", "content": "words 1"}) + b"," + deep + b"]")
    assert "words 1" in said(reading)


def test_a_file_of_no_format_gets_the_nearest_guess_by_its_field_names() -> None:
    drifted = chats.dumped([{"mapping_v2": {}, "current_node": "x", "children": [], "author": 1}])
    assert format_of(drifted, "x") is None
    guess, shared = nearest(drifted)
    assert guess is not None and guess.name == "chatgpt"
    assert shared == ["author", "children", "current_node"]
    assert nearest(b"a;b;c\n1;2;3\n") == (None, [])


EXPECTED = {  # file -> (format, human turns, tool calls)
    "chats/chatgpt/single/conversations.json": ("chatgpt", 4, 1),
    "chats/chatgpt/sharded/conversations-000.json": ("chatgpt", 1, 0),
    "chats/chatgpt/sharded/conversations-001.json": ("chatgpt", 1, 0),
    "chats/claude-ai/conversations.json": ("claude-ai", 3, 1),
    "chats/gemini-takeout/My Activity/Gemini Apps/MyActivity.json": ("gemini-takeout", 2, 0),
    "chats/openai-messages/messages.json": ("openai-messages", 2, 2),
    "chats/openai-messages/finetune.jsonl": ("openai-messages", 2, 0),
    "chats/anthropic-messages/messages.json": ("anthropic-messages", 2, 2),
    "chats/anthropic-messages/bare-array.json": ("anthropic-messages", 1, 0),
}


def test_the_shared_chats_are_read_without_a_fault(shared: Path) -> None:
    for name, (form, humans, calls) in EXPECTED.items():
        data = (shared / "transcripts" / name).read_bytes()
        found = format_of(data[: 64 * 1024], name)
        assert found is not None and found.name == form, name
        reading = found.read([data], path=name, start=START)
        assert (reading.bad, reading.unknown) == ([], {}), name
        assert len(said(reading)) == humans, name
        assert sum(len(turn.tool_calls) for turn in reading.turns) == calls, name


def test_the_shared_copilot_and_gemini_files_hold_what_their_readme_counts(shared: Path) -> None:
    root = shared / "transcripts"
    for agent, humans, calls, errors in (("copilot", 4, 68, 1), ("gemini", 3, 11, 0)):
        readings = []
        for path in sorted((root / agent).rglob("*.json*")):
            data = path.read_bytes()
            found = format_of(data[: 64 * 1024], path.name)
            assert found is not None and found.agent.startswith(agent)
            readings.append(found.read([data], path=str(path), start=START))
        assert all(not one.bad and not one.unknown for one in readings)
        assert sum(len(said(one)) for one in readings) == humans
        made = [call for one in readings for turn in one.turns for call in turn.tool_calls]
        assert (len(made), sum(call.is_error for call in made)) == (calls, errors)
        assert all(call.output is not None for call in made)
