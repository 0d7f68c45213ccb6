"""The reader on the shared real files, against the counts and the hand labels beside them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from everest_pipelines.core.records import Channel, Role, ToolCall, Turn
from everest_pipelines.core.transcripts import format_of
from everest_pipelines.core.transcripts.reading import Reading
from everest_pipelines_tests.core.transcripts.shapes import START

# Lines that the gold set counts as a person's and that hold none of a person's words here.
BARE_QUEUED_COMMANDS = {"/exit", "/plan", "/init"}


@pytest.fixture(scope="module")
def readings(shared: Path) -> dict[str, Reading]:
    root = shared / "transcripts"
    found: dict[str, Reading] = {}
    for path in sorted((root / "claude").rglob("*.jsonl")):
        data = path.read_bytes()
        name = path.relative_to(root).as_posix()
        form = format_of(data[: 64 * 1024], name)
        assert (form is None) == (not data), name
        if form is not None:
            found[name] = form.read([data], path=name, start=START)
            assert found[name].complete_offset == found[name].size == len(data)
    return found


@pytest.fixture(scope="module")
def gold(shared: Path) -> list[dict[str, Any]]:
    text = (shared / "transcripts" / "gold.jsonl").read_text(encoding="utf-8")
    labels = [json.loads(line) for line in text.split("\n") if line]
    return [one for one in labels if one["file"].startswith("claude/")]


@pytest.fixture(scope="module")
def turns(readings: dict[str, Reading]) -> dict[tuple[str, str], Turn]:
    return {(name, t.turn_id): t for name, one in readings.items() for t in one.turns}


@pytest.fixture(scope="module")
def calls(readings: dict[str, Reading]) -> dict[tuple[str, str], ToolCall]:
    return {
        (name, call.id): call
        for name, one in readings.items()
        for turn in one.turns
        for call in turn.tool_calls
    }


def test_the_counts_are_those_of_the_set_s_readme(readings: dict[str, Reading], calls) -> None:
    assert len(readings) == 138  # and 8 empty files
    assert sum(one.lines for one in readings.values()) == 17_190
    assert sum(one.records for one in readings.values()) == 17_192  # two lines hold two records
    assert all(not one.bad and not one.unknown for one in readings.values())
    assert sum(one.subagent for one in readings.values()) == 23
    made = [call for call in calls.values() if call.name]
    assert len(made) == 4_023
    assert sum(call.is_error for call in calls.values()) == 326
    assert sum(call.refused for call in calls.values()) == 59


def test_turn_ids_are_unique_in_a_file_and_parents_are_turns_of_it(readings) -> None:
    for one in readings.values():
        ids = {turn.turn_id for turn in one.turns}
        assert len(ids) == len(one.turns)
        assert {turn.parent for turn in one.turns} - {""} <= ids


def test_every_labelled_word_of_a_person_is_a_turn_of_a_person(gold, turns, readings) -> None:
    missed: Counter[str] = Counter()
    checked = 0
    for label in gold:
        if label["kind"] not in {"correction", "not_correction"}:
            continue
        checked += 1
        if label["uuid"]:
            turn = turns.get((label["file"], label["uuid"]))
        else:
            places = [t for t in readings[label["file"]].turns if t.line_from == label["line"]]
            turn = places[0] if len(places) == 1 else None
        assert turn is not None, label
        if turn.role is Role.HUMAN:
            continue
        if label["sub"] in {"plan", "machine_prompt"}:
            assert turn.channel is (Channel.PLAN if label["sub"] == "plan" else Channel.MACHINE)
        else:
            assert label["quote"].strip() in BARE_QUEUED_COMMANDS, label
        missed[label["sub"]] += 1
    assert checked > 450
    assert missed == {"plan": 33, "machine_prompt": 1, "command": 4}


def test_every_labelled_refusal_is_one_and_its_words_are_a_turn(gold, turns, calls) -> None:
    for label in gold:
        if label["kind"] == "refusal":
            call = calls[label["file"], label["tool_use_id"]]
            assert call.refused == (label["sub"] != "sibling_of_refused"), label
            if label["quote"] and label["sub"] != "question_clarify":
                turn = turns[label["file"], label["uuid"]]
                assert (turn.role, turn.channel) == (Role.HUMAN, Channel.REFUSAL)
        elif label["kind"] in {"not_refusal", "tool_error"}:
            assert not calls[label["file"], label["tool_use_id"]].refused, label


def test_every_labelled_interruption_hook_and_error_is_found(gold, turns, calls) -> None:
    for label in gold:
        if label["kind"] == "interruption":
            turn = turns[label["file"], label["uuid"]]
            assert (turn.role, turn.channel) == (Role.HARNESS, Channel.INTERRUPTION)
        elif label["kind"] == "harness":
            assert turns[label["file"], label["uuid"]].channel is Channel.HOOK
        elif label["kind"] == "tool_error":
            assert calls[label["file"], label["tool_use_id"]].is_error


def test_stored_text_is_a_small_part_of_the_raw_bytes(readings: dict[str, Reading]) -> None:
    raw = sum(one.size for one in readings.values())
    stored = sum(
        len(t.text) + sum(len(c.input) + len(c.output or "") for c in t.tool_calls)
        for one in readings.values()
        for t in one.turns
    )
    assert stored < 0.25 * raw  # before compression
