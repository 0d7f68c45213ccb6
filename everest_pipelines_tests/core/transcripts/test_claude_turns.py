"""What records become: the agent's side, results, parents, counts."""

from __future__ import annotations

import hashlib
import json

from everest_pipelines.core.records import Channel, Role
from everest_pipelines.core.transcripts.caps import TEXT_CAP, TOOL_CAP
from everest_pipelines_tests.core.transcripts.shapes import (
    SESSION,
    assistant,
    call,
    file_of,
    line,
    queue,
    read_bytes,
    read_records,
    record,
    result,
    summary,
    text,
    user,
)


def conversation() -> list[dict]:
    return [
        user("u1", 0, "please list the files"),
        assistant("a1", 1, [{"type": "thinking", "thinking": "hm"}], "u1", message_id="m1"),
        assistant("a2", 2, [text("I'll look.")], "a1", message_id="m1"),
        assistant("a3", 3, [call("t1", command="ls")], "a2", message_id="m1"),
        record("progress", "p1", 3.5, "a3", data={"type": "bash_progress"}),
        assistant("a4", 4, [call("t2", command="pwd")], "p1", message_id="m1"),
        result("r2", 5, "t2", "/src", "a4"),
        result("r1", 6, "t1", "one\ntwo", "a3", is_error=False),
        assistant("a5", 7, [text("Two files.")], "r1", message_id="m2"),
        user("u2", 8, "thanks", "a5"),
    ]


def test_lines_of_one_message_are_one_turn_even_when_others_stand_between() -> None:
    reading = read_records(*conversation())
    assert [turn.turn_id for turn in reading.turns] == ["u1", "m1", "m2", "u2"]
    turn = reading.turns[1]
    assert (turn.role, turn.channel, turn.text) == (Role.ASSISTANT, Channel.REPLY, "I'll look.")
    assert [(one.id, one.output) for one in turn.tool_calls] == [("t1", "one\ntwo"), ("t2", "/src")]
    assert json.loads(turn.tool_calls[0].input) == {"command": "ls"}
    assert (turn.line_from, turn.line_to) == (2, 6)
    assert turn.occurred_at == 1_769_940_001_000_000
    assert (turn.model, turn.cwd, turn.git_branch) == ("claude-test", "/src/tidepool", "main")


def test_a_turn_answers_the_nearest_turn_up_the_chain() -> None:
    parents = {turn.turn_id: turn.parent for turn in read_records(*conversation()).turns}
    assert parents == {"u1": "", "m1": "u1", "m2": "m1", "u2": "m2"}


def test_the_reading_tells_the_session_its_times_and_how_far_it_came() -> None:
    data = file_of(*conversation())
    reading = read_bytes(data)
    assert (reading.session_id, reading.first_cwd) == (SESSION, "/src/tidepool")
    assert reading.session_started_at == 1_769_940_000_000_000
    assert reading.last_at == 1_769_940_008_000_000
    assert (reading.lines, reading.records, reading.size) == (10, 10, len(data))
    assert reading.complete_offset == len(data)
    assert not reading.bad and not reading.unknown and not reading.torn_tail


def test_the_hash_is_that_of_the_redacted_records() -> None:
    prompt = user("u1", 0, "hello")
    turn = read_records(prompt).turns[0]
    assert turn.sha256 == hashlib.sha256(line(prompt)).hexdigest()
    changed = read_records(user("u1", 0, "hello!")).turns[0]
    assert changed.sha256 != turn.sha256


def test_a_record_written_twice_counts_once() -> None:
    records = conversation()
    once = read_records(*records)
    twice = read_records(*records, *records)
    assert summary(twice) == summary(once)
    assert [t.sha256 for t in twice.turns] == [t.sha256 for t in once.turns]


def test_two_different_prompts_under_one_id_are_both_kept() -> None:
    reading = read_records(user("u1", 0, "one"), user("u1", 1, "two"), user("u1", 2, "two"))
    assert [turn.text for turn in reading.turns] == ["one", "two"]
    assert len({turn.turn_id for turn in reading.turns}) == 2


def test_a_message_without_an_id_is_known_by_its_record() -> None:
    bare = assistant("a1", 0, [text("hello")])
    del bare["message"]["id"]
    assert [turn.turn_id for turn in read_records(bare).turns] == ["a1"]


def test_a_block_that_grows_over_several_lines_is_kept_once_and_whole() -> None:
    parts = ["The first half of the answer", "The first half of the answer and the second"]
    records = [assistant(f"a{n}", n, [text(p)], message_id="m") for n, p in enumerate(parts)]
    assert [turn.text for turn in read_records(*records).turns] == [parts[1]]


def test_only_thinking_is_no_turn_and_its_followers_answer_what_was_before() -> None:
    reading = read_records(
        user("u1", 0, "hello"),
        assistant("a1", 1, [{"type": "thinking", "thinking": "hm"}], "u1"),
        user("u2", 2, "still there?", "a1"),
    )
    assert [(turn.turn_id, turn.parent) for turn in reading.turns] == [("u1", ""), ("u2", "u1")]


def test_what_the_harness_writes_in_the_agent_s_name_is_no_answer() -> None:
    reading = read_records(
        assistant(
            "a1", 0, [text("API Error: overloaded")], model="<synthetic>", isApiErrorMessage=True
        ),
        assistant("a2", 1, [text("No response requested.")], model="<synthetic>"),
        assistant("a3", 2, [text("A real answer.")]),
    )
    assert [turn.role.value for turn in reading.turns] == ["harness", "harness", "assistant"]
    assert [turn.flags for turn in reading.turns] == [("api_error",), ("synthetic",), ()]


def test_long_inputs_and_outputs_are_cut_with_a_mark_and_keep_their_size() -> None:
    script, output = "x" * 50_000, "begin " + "é" * 50_000 + " end"
    reading = read_records(
        assistant("a1", 0, [call("t1", "Write", file_path="/src/a.py", content=script)]),
        result("r1", 1, "t1", output),
    )
    used = reading.turns[0].tool_calls[0]
    assert len(used.input) <= TOOL_CAP
    assert json.loads(used.input)["file_path"] == "/src/a.py"
    assert "characters cut" in used.input and "characters cut" in (used.output or "")
    assert used.output and used.output.startswith("begin") and used.output.endswith("end")
    assert used.input_bytes > 50_000
    assert used.output_bytes == len(output.encode())


def test_a_long_text_is_cut_and_says_so() -> None:
    long, short = read_records(user("u1", 0, "a" * 100_000), user("u2", 1, "b" * 60_000)).turns
    assert len(long.text) < TEXT_CAP + 100 and "text_cut" in long.flags
    assert short.text == "b" * 60_000 and "text_cut" not in short.flags


def test_an_image_in_a_result_leaves_its_size_and_hash() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "iVBO" * 9000}
    blocks = [text("a picture"), {"type": "image", "source": source}]
    reading = read_records(assistant("a1", 0, [call("t1", "Read")]), result("r1", 1, "t1", blocks))
    output = reading.turns[0].tool_calls[0].output or ""
    digest = hashlib.sha256(("iVBO" * 9000).encode()).hexdigest()[:16]
    assert output == f"a picture\n[image 36000 bytes sha256:{digest}]"


def test_a_result_before_its_call_finds_it() -> None:
    reading = read_records(
        result("r1", 1, "t1", "one", "a1"),
        assistant("a1", 0, [call("t1", command="ls")], message_id="m1"),
        user("u1", 2, "well?", "r1"),
    )
    assert [(turn.turn_id, turn.parent) for turn in reading.turns] == [("m1", ""), ("u1", "m1")]
    assert reading.turns[0].tool_calls[0].output == "one"


def test_a_result_without_a_call_is_not_lost() -> None:
    reading = read_records(result("r1", 0, "t9", "left over"), user("u1", 1, "go on", "r1"))
    lost = reading.turns[0]
    assert (lost.role, lost.tool_calls[0].output) == (Role.HARNESS, "left over")
    assert lost.flags == ("no_call",)
    assert reading.turns[1].parent == lost.turn_id


def test_sub_agents_words_are_theirs_and_their_prompt_is_no_person_s() -> None:
    inner = {"isSidechain": True, "agentId": "ab12"}
    reading = read_records(
        user("u1", 0, "Search for the parser", **inner),
        assistant("a1", 1, [text("Found it.")], "u1", **inner),
        user("u2", 2, "a person's words"),
    )
    assert [(t.role.value, t.channel.value, t.subagent) for t in reading.turns] == [
        ("harness", "subagent_prompt", "ab12"),
        ("assistant", "reply", "ab12"),
        ("human", "prompt", ""),
    ]


def test_a_sub_agent_s_file_is_known_by_its_name_where_the_flag_is_missing() -> None:
    records = [user("u1", 0, "Search"), assistant("a1", 1, [text("Found.")], "u1")]
    for path in ("p/agent-a1b2.jsonl", "p\\s\\subagents\\agent-a1b2.jsonl"):
        reading = read_records(*records, path=path)
        assert reading.subagent and reading.session_id == SESSION
        assert [turn.subagent for turn in reading.turns] == ["a1b2", "a1b2"]
        assert reading.turns[0].channel is Channel.SUBAGENT_PROMPT
    assert not read_records(*records).subagent


def test_sub_agents_inside_the_file_are_told_apart_by_their_first_record() -> None:
    side = {"isSidechain": True}
    reading = read_records(
        user("aaaaaaaa-1", 0, "one", **side),
        user("bbbbbbbb-1", 1, "two", **side),
        assistant("x", 2, [text("1")], "aaaaaaaa-1", **side),
        assistant("y", 3, [text("2")], "bbbbbbbb-1", **side),
    )
    assert [turn.subagent for turn in reading.turns] == ["aaaaaaaa", "bbbbbbbb"] * 2


def test_silent_records_make_no_turns_and_unknown_ones_are_kept_and_counted() -> None:
    novel = record("brain-wave", "x1", 2, content="?")
    reading = read_records(
        user("u1", 0, "hello"),
        {"type": "summary", "summary": "A title", "leafUuid": "zz"},
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
        {"type": "last-prompt", "lastPrompt": "hello", "sessionId": SESSION},
        novel,
        record("attachment", "x2", 3, attachment={"type": "mind_map"}),
        record("attachment", "x3", 3, attachment={"type": "task_reminder"}),
    )
    assert len(reading.turns) == 1 and reading.records == 7
    assert reading.unknown == {"brain-wave": 1, "attachment:mind_map": 1}
    first = reading.bad[0]
    assert (first.line, first.reason, first.content) == (
        5,
        "unknown_type:brain-wave",
        line(novel),
    )


def test_times_before_the_start_or_far_ahead_are_mended_and_flagged() -> None:
    reading = read_records(
        user("u1", 0, "one"),
        user("u2", 1, "two") | {"timestamp": "2031-01-01T00:00:00Z"},
        user("u3", 2, "three") | {"timestamp": "1970-01-01T00:00:01Z"},
        user("u4", 3, "four") | {"timestamp": "soon"},
        user("u5", 4, "five"),
    )
    at = [(turn.occurred_at, "time_corrected" in turn.flags) for turn in reading.turns]
    first = 1_769_940_000_000_000
    assert at == [
        (first, False),
        (first, True),
        (first, True),
        (first, True),
        (first + 4_000_000, False),
    ]


def test_a_record_without_a_time_has_that_of_the_record_before_it() -> None:
    untimed = user("u2", 0, "two")
    del untimed["timestamp"]
    reading = read_records(user("u1", 5, "one"), untimed, user("u3", 9, "three"))
    assert reading.turns[1].occurred_at == reading.turns[0].occurred_at
    assert "time_corrected" not in reading.turns[1].flags


def test_an_empty_file_and_a_file_without_turns_are_no_error() -> None:
    assert read_bytes(b"").turns == []
    silent = read_records({"type": "summary", "summary": "x", "leafUuid": "y"})
    assert (silent.turns, silent.bad, silent.session_started_at) == ([], [], 0)
    assert silent.session_id == SESSION  # from the file's name, nothing else tells


def test_a_record_s_own_session_is_kept_where_a_file_holds_two() -> None:
    other = user("u2", 1, "two") | {"sessionId": "other"}
    reading = read_records(user("u1", 0, "one"), other, queue("enqueue", 2, "three"))
    assert [turn.session_id for turn in reading.turns] == [SESSION, "other", SESSION]
