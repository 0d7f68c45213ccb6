"""Whatever happens to a valid file, every undamaged record is kept and nothing raises.

Both readers of JSON lines go through the same: a line is cut, spliced, glued, recoded, written
twice, moved, or run through with NULs; and a file grows while it is read again and again.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from everest_pipelines.core.records import Turn
from everest_pipelines.core.transcripts import codex_wire
from everest_pipelines.core.transcripts.merge import merge_turn
from everest_pipelines.core.transcripts.reading import Reading
from everest_pipelines_tests.core.transcripts import codex_shapes, shapes
from everest_pipelines_tests.core.transcripts.shapes import Fields, line


class Case(Struct):
    """A reader with valid files, and which records make one turn with their neighbours."""

    name: str
    make: Callable[[random.Random], list[Fields]]
    read: Callable[..., Reading]


def claude_file(chance: random.Random) -> list[Fields]:
    records: list[Fields] = []
    for n in range(chance.randint(2, 8)):
        kind = chance.randrange(5)
        if kind == 0:
            records.append(shapes.user(f"u{n}", n, f'person {n} \u2028 ü {{"x": 1}}'))
        elif kind == 1:
            blocks = [shapes.text(f"agent {n}"), shapes.call(f"t{n}", command="ls")]
            records.append(shapes.assistant(f"a{n}", n, blocks))
            records.append(shapes.result(f"r{n}", n, f"t{n}", f"output {n}", is_error=bool(n % 2)))
        elif kind == 2:
            records.append(shapes.queue("enqueue", n, f"queued {n}"))
        elif kind == 3:
            beside = [shapes.text(f"comment {n}")]
            records.append(shapes.result(f"c{n}", n, f"gone{n}", "ok", beside=beside))
        else:
            records.append(shapes.record("progress", f"p{n}", n, data={"x": n}))
    return records


def codex_file(chance: random.Random) -> list[Fields]:
    if chance.random() < 0.3:
        return codex_shapes.conversation(chance.choice(codex_shapes.SHAPES))
    records = [codex_shapes.meta()]
    for n in range(1, chance.randint(2, 6)):
        words, answer = f'person {n} \u2028 ü {{"x": 1}}', f"agent {n}"
        if chance.random() < 0.7:
            records += codex_shapes.turn(n, codex_shapes.thread_id(n, "b"))
        places = chance.choice(["i", "e", "c", "ie", "ic", "iec"])
        content = [{"type": "text", "text": words}]
        records += [
            {
                "i": codex_shapes.message(n, "user", words),
                "e": codex_shapes.user_event(n, words),
                "c": codex_shapes.completed(n, "UserMessage", content=content),
            }[place]
            for place in places
        ]
        if "i" in places:
            records.append(codex_shapes.message(n, "assistant", answer))
        if "e" in places:
            records.append(codex_shapes.event(n, "agent_message", message=answer))
        records.append(codex_shapes.call(n, f"c{n}", cmd="ls"))
        if chance.random() < 0.9:
            text = codex_shapes.ran(f"output {n}", chance.randrange(2))
            records.append(codex_shapes.output(n, f"c{n}", text))
        if chance.random() < 0.2:
            records.append(codex_shapes.event(n, "turn_aborted", reason="interrupted"))
        if chance.random() < 0.1:
            records.append(codex_shapes.event(n, "thread_rolled_back", num_turns=1))
        records.append(codex_shapes.event(n, "token_count", info=None))
    return records


CASES = [
    Case("claude-code", claude_file, shapes.read_bytes),
    Case("codex", codex_file, codex_shapes.read_bytes),
]
BOTH = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
MUTILATIONS = ["cut", "splice", "nul", "garbage", "glue", "recode", "duplicate", "reorder", "drop"]


def marks(reading: Reading) -> set[str]:
    """The texts and outputs of all turns that have one."""
    found: set[str] = set()
    for turn in reading.turns:
        found.add(turn.text)
        found.update(one.output for one in turn.tool_calls if one.output is not None)
    return found - {""}


def joined(lines: list[bytes]) -> bytes:
    return b"".join(one + b"\n" for one in lines)


def mutilate(lines: list[bytes], how: str, data: st.DataObject) -> tuple[list[bytes], set[int]]:
    """The damaged lines, and the places of those that lost something."""
    lines = list(lines)
    victim = data.draw(st.integers(0, len(lines) - 1))
    hurt = lines[victim]
    place = data.draw(st.integers(1, len(hurt) - 1))
    damaged = {victim}
    if how == "cut":
        lines[victim] = hurt[:place]
    elif how == "splice":
        lines[victim] = hurt[:place] + hurt[data.draw(st.integers(0, len(hurt))) :]
    elif how == "nul":
        lines[victim] = hurt[:place] + b"\0" * data.draw(st.integers(1, 9000)) + hurt[place:]
        damaged = set()
    elif how == "garbage":
        junk = data.draw(st.binary(max_size=40)).replace(b"\n", b"")
        lines[victim] = hurt[:place] + junk + hurt[place:]
    elif how == "glue":
        lines[victim] = hurt + lines[data.draw(st.integers(0, len(lines) - 1))]
        damaged = set()
    elif how == "recode":
        name = data.draw(st.sampled_from(["utf-16", "latin-1", "utf-32-be"]))
        lines[victim] = hurt.decode("utf-8", "replace").encode(name, "replace")
    elif how == "duplicate":
        lines.insert(place % len(lines), hurt)
        damaged = set()
    elif how == "reorder":
        lines = data.draw(st.permutations(lines))
        damaged = set()
    elif how == "drop":
        del lines[victim]
    return lines, damaged


@BOTH
@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10_000), how=st.sampled_from(MUTILATIONS), data=st.data())
def test_any_mutilation_keeps_every_undamaged_record(
    case: Case, seed: int, how: str, data: st.DataObject
) -> None:
    records = case.make(random.Random(seed))
    lines, damaged = mutilate([line(one) for one in records], how, data)
    whole = [line(one) for n, one in enumerate(records) if n not in damaged]
    expected = marks(case.read(joined(whole)))
    assert expected <= marks(case.read(joined(lines)))


@BOTH
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    hows=st.lists(st.sampled_from(MUTILATIONS), min_size=2, max_size=6),
    data=st.data(),
)
def test_damage_upon_damage_never_raises_and_loses_no_count(
    case: Case, seed: int, hows: list[str], data: st.DataObject
) -> None:
    lines = [line(one) for one in case.make(random.Random(seed))]
    for how in hows:
        lines = [one for one in mutilate(lines, how, data)[0] if len(one) > 1]
        if not lines:
            return
    content = joined(lines)
    reading = case.read(content, block=data.draw(st.sampled_from([7, 64, 1 << 20])))
    assert reading.size == reading.complete_offset == len(content)
    assert reading.records + reading.bad_lines >= reading.lines
    assert {turn.parent for turn in reading.turns} - {""} <= {t.turn_id for t in reading.turns}


@BOTH
@settings(max_examples=100, deadline=None)
@given(parts=st.lists(st.binary(max_size=60), max_size=12), seed=st.integers(0, 1000))
def test_no_bytes_at_all_raise(case: Case, parts: list[bytes], seed: int) -> None:
    known = [line(one)[: 40 + seed % 200] for one in case.make(random.Random(seed))]
    content = b"".join(one for pair in zip(parts, known, strict=False) for one in pair)
    reading = case.read(content, block=13)
    assert reading.size == len(content) >= reading.complete_offset
    assert json.dumps([turn.text for turn in reading.turns]).encode()


@BOTH
@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10_000), stops=st.lists(st.floats(0, 1), max_size=6))
def test_reading_a_file_as_it_grows_equals_reading_it_once(
    case: Case, seed: int, stops: list[float]
) -> None:
    content = joined([line(one) for one in case.make(random.Random(seed))])
    once = case.read(content)
    stored: dict[str, Turn] = {}
    offset = 0
    for share in [*sorted(stops), 1.0]:
        reading = case.read(content[: int(len(content) * share)])
        assert reading.bad == []  # a torn tail is no fault
        assert offset <= reading.complete_offset <= len(content)
        offset = reading.complete_offset
        for turn in reading.turns:
            known = stored.get(turn.turn_id)
            stored[turn.turn_id] = turn if known is None else merge_turn(known, turn)
    assert stored == {turn.turn_id: turn for turn in once.turns}
    assert case.read(content, block=17).turns == once.turns


Json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
KINDS = ["session_meta", "turn_context", "response_item", "event_msg", "compacted", "message"]
TYPES = [
    "message",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "local_shell_call",
    "user_message",
    "web_search_call",
    "agent_message",
    "turn_aborted",
    "item_completed",
    "exec_command_end",
    "task_started",
    "patch_apply_end",
    "mcp_tool_call_end",
    "thread_rolled_back",
    "UserMessage",
    "CommandExecution",
    "Plan",
]
FIELDS = [field.name for field in msgspec.structs.fields(codex_wire.Item)]


@settings(max_examples=200, deadline=None)
@given(
    kind=st.sampled_from(KINDS) | Json,
    inner=st.sampled_from(TYPES) | Json,
    fields=st.dictionaries(st.sampled_from(FIELDS), Json, max_size=6),
    item=st.dictionaries(st.sampled_from(FIELDS), Json, max_size=4) | Json,
    before=st.sampled_from([b"", b'{"torn": ', b'{"type": "event_msg", "payl']),
    bare=st.booleans(),
)
def test_lines_of_codex_of_any_shape_never_raise(
    kind: object, inner: object, fields: dict, item: object, before: bytes, bare: bool
) -> None:
    payload = {"type": inner, "item": item} | fields
    odd = payload if bare else {"type": kind, "timestamp": 1, "payload": payload}
    said = [codex_shapes.user_event(n, f"words {n}") for n in (1, 2)]
    content = joined([line(said[0]), before + json.dumps(odd).encode(), line(said[1])])
    reading = codex_shapes.read_bytes(content)
    assert {"words 1", "words 2"} <= {turn.text for turn in reading.turns}
    for turn in reading.turns:
        assert all(isinstance(one, str) for one in (turn.turn_id, turn.session_id, turn.cwd))


@BOTH
def test_the_harness_sees_a_reader_that_stops_at_the_first_bad_line(case: Case) -> None:
    """The control: what the properties above would find in a worse reader."""
    records = case.make(random.Random(4))
    lines = [line(one) for one in records]
    lines[1] = lines[1][:30]
    stopped = case.read(joined(lines[:2]))
    whole = case.read(joined([one for n, one in enumerate(lines) if n != 1]))
    assert not marks(whole) <= marks(stopped)


@BOTH
def test_a_short_fuzz_run_finds_nothing_and_the_long_one_is_the_same_program(case: Case) -> None:
    """Plain random mutations; `make fuzz` is guided by coverage where atheris is installed."""
    program = Path(__file__).parents[3] / "benchmarks" / "fuzz.py"
    command = [sys.executable, str(program), "--reader", case.name, "--seconds", "2", "--plain"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    told = json.loads(done.stdout.splitlines()[-1])
    assert (done.returncode, told["faults"]) == (0, 0), told
    assert told["runs"] > 50
