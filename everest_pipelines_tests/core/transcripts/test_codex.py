"""Rollouts of Codex: in every shape the same words once, and nobody's words put in a mouth."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from everest_pipelines.core.records import Channel, Role
from everest_pipelines.core.transcripts import HEAD_BYTES, format_of
from everest_pipelines.core.transcripts.merge import merge_turn
from everest_pipelines.core.transcripts.reading import Reading
from everest_pipelines_tests.core.transcripts import codex_shapes as shapes
from everest_pipelines_tests.core.transcripts.codex_shapes import (
    AGENTS,
    ENVIRONMENT,
    SESSION,
    SHAPES,
    call,
    completed,
    conversation,
    entry,
    event,
    file_of,
    item,
    message,
    meta,
    output,
    ran,
    read_records,
    thread_id,
    turn,
    user_event,
)
from everest_pipelines_tests.core.transcripts.shapes import START, summary

T1, T2, T3, T4 = (thread_id(second, "c") for second in (1, 9, 20, 50))


def spoken(reading: Reading) -> list[tuple[str, str]]:
    """(role, text) of what a person or the agent said."""
    return [(t.role.value, t.text) for t in reading.turns if t.role is not Role.HARNESS]


def person(reading: Reading) -> list[str]:
    return [one.text for one in reading.turns if one.role is Role.HUMAN]


# -- every shape -------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_gives_the_same_turns_once(shape: str) -> None:
    reading = read_records(*conversation(shape))
    assert spoken(reading) == [
        ("human", "make it build"),
        ("assistant", "I run make first."),
        ("human", "yes"),
        ("assistant", ""),
        ("assistant", "It builds now."),
    ]
    calls = [one for turn_ in reading.turns for one in turn_.tool_calls]
    assert [(one.id, one.is_error, one.refused) for one in calls] == [
        ("c1", True, False),
        ("c2", False, False),
    ]
    assert "no rule" in (calls[0].output or "") and '"make' in calls[0].input
    assert reading.bad == [] and reading.unknown == {} and reading.machine == ""
    assert {one.agent for one in reading.turns} == {"codex"}
    assert {one.session_id for one in reading.turns} == {SESSION} == {reading.session_id}
    assert reading.first_cwd == "/src/tidepool" and reading.turns[-1].cwd == "/src/tidepool"
    assert reading.turns[-1].git_branch == "main"


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_recognised_by_its_content(shape: str) -> None:
    data = file_of(conversation(shape))
    for head in (data, b"\xef\xbb\xbf" + data, b"\0" * 300 + data, b'{"torn": \n' + data):
        found = format_of(head[:HEAD_BYTES], "chats/x.txt")
        assert found is not None and found.name == "codex"


def test_model_version_and_directory_are_those_of_the_moment() -> None:
    moved = entry("turn_context", 20, {"turn_id": T2, "cwd": "D:\\repo\\sub", "model": "gpt-two"})
    reading = read_records(
        meta(),
        *turn(1, T1),
        message(2, "assistant", "one"),
        moved,
        message(21, "assistant", "two"),
    )
    assert [(t.model, t.cwd, t.agent_version) for t in reading.turns] == [
        ("gpt-test", "/src/tidepool", "0.142.0"),
        ("gpt-two", "D:\\repo\\sub", "0.142.0"),
    ]


def test_the_same_words_said_twice_are_two_turns_in_every_shape() -> None:
    for places in (("item",), ("item", "event"), ("event",), ("completed", "item", "event")):
        records = [meta()]
        for n, turn_id in enumerate((T1, T1, T2)):
            copies = {
                "item": message(n, "user", "yes"),
                "event": user_event(n, "yes"),
                "completed": completed(n, "UserMessage", content=[{"type": "text", "text": "yes"}]),
            }
            records += [*turn(n, turn_id), *(copies[place] for place in places)]
        assert person(read_records(*records)) == ["yes"] * 3, places


# -- whose words -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        AGENTS,
        ENVIRONMENT,
        "<user_instructions>\nBe brief.\n</user_instructions>",
        "<skill>\n<name>x</name>\nbody\n</skill>",
        "<turn_aborted>\nThe user interrupted the previous turn on purpose.\n</turn_aborted>",
        '<subagent_notification>{"agent_id":"x","status":"done"}</subagent_notification>',
        "<permissions instructions>\nx\n</permissions instructions>",
        '<hook_prompt hook_run_id="1">do it again</hook_prompt>',
        "<some_new_wrapper>\nnobody typed this\n</some_new_wrapper>",
        "Another language model started to solve this problem and produced a summary of it.",
    ],
)
def test_what_codex_writes_in_the_user_s_role_is_no_person_s(text: str) -> None:
    for with_event in (True, False):
        told = [user_event(3, "fix it")] if with_event else []
        reading = read_records(
            meta(), *turn(1, T1), message(2, "user", text), message(3, "user", "fix it"), *told
        )
        assert person(reading) == ["fix it"]
        assert any(one.role is Role.HARNESS and text[:20] in one.text for one in reading.turns)


def test_where_an_event_tells_the_person_s_words_other_texts_in_that_turn_are_codex_s() -> None:
    warning = "Warning: the maximum number of processes is open."
    reading = read_records(
        meta(),
        *turn(1, T1),
        message(2, "user", "fix it"),
        user_event(2, "fix it"),
        message(3, "user", warning),
        *turn(10, T2),
        message(11, "user", "no event tells this one"),
    )
    assert person(reading) == ["fix it", "no event tells this one"]
    assert [t.text for t in reading.turns if "unconfirmed" in t.flags] == [warning]


def test_agents_file_environment_and_words_in_one_message_leave_the_words() -> None:
    reading = read_records(meta(), message(1, "user", AGENTS, ENVIRONMENT, "fix <b>it</b>"))
    assert person(reading) == ["fix <b>it</b>"]


@pytest.mark.parametrize(
    "head",
    [
        "# Context from my IDE setup:\n\n## Active file: a.py\n\n## Open tabs:\n- a.py\n\n",
        "# Files mentioned by the user:\n\n## a.png: /tmp/a.png\n\n",
    ],
)
def test_what_an_editor_says_before_the_request_is_cut_away(head: str) -> None:
    text = head + "## My request for Codex:\nmake it blue\n\n## and green"
    for records in ([user_event(1, text)], [message(1, "user", text)]):
        assert person(read_records(meta(), *records)) == ["make it blue\n\n## and green"]


def test_a_picture_s_tags_are_no_words_and_a_picture_alone_is_a_turn() -> None:
    content = [
        {"type": "input_text", "text": "<image name=[Image #1]>"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
        {"type": "input_text", "text": "</image>"},
        {"type": "input_text", "text": "[Image #1] is wrong"},
    ]
    both = item(1, "message", role="user", content=content)
    told = event(1, "user_message", message="[Image #1] is wrong", local_images=["/tmp/a.png"])
    reading = read_records(meta(), both, told)
    assert person(reading) == ["[Image #1] is wrong"] and "image" in reading.turns[0].flags
    alone = read_records(meta(), item(1, "message", role="user", content=content[:3]))
    assert [(t.role, t.text, t.flags[:1]) for t in alone.turns] == [(Role.HUMAN, "", ("image",))]


def test_a_command_that_the_person_ran_is_theirs() -> None:
    inner = "<command>\ngit log\n</command>\n<result>\nx\n</result>"
    text = f"<user_shell_command>\n{inner}\n</user_shell_command>"
    reading = read_records(meta(), message(1, "user", text))
    assert summary(reading) == [("human", "bash", "git log")]


def test_words_typed_while_the_agent_worked_are_told_from_prompts() -> None:
    reading = read_records(
        meta(),
        *turn(1, T1),
        user_event(2, "first"),
        call(3, "c1", cmd="ls"),
        user_event(4, "not there"),
        *turn(9, T2),
        user_event(10, "next"),
    )
    said = [(t.channel, t.text) for t in reading.turns if t.role is Role.HUMAN]
    assert said == [
        (Channel.PROMPT, "first"),
        (Channel.QUEUED, "not there"),
        (Channel.PROMPT, "next"),
    ]
    assert [t.text for t in reading.turns if "first_prompt" in t.flags] == ["first"]


def test_words_rolled_back_are_withdrawn_with_what_came_of_them() -> None:
    records = [meta()]
    for n, turn_id in enumerate((T1, T2, T3)):
        records += [*turn(n * 10, turn_id), user_event(n * 10, f"say {n}")]
        records += [call(n * 10 + 1, f"c{n}", cmd="ls"), message(n * 10 + 2, "assistant", f"a {n}")]
    back = event(40, "thread_rolled_back", num_turns=2)
    reading = read_records(*records, back, *turn(50, T4), user_event(50, "anew"))
    kept = [t.text for t in reading.turns if not t.withdrawn]
    assert kept == ["say 0", "", "a 0", "anew"]
    assert sum(t.withdrawn for t in reading.turns) == 6


# -- stops -------------------------------------------------------------------------------------

ABORTED = "<turn_aborted>\nThe user interrupted the previous turn on purpose.\n</turn_aborted>"


@pytest.mark.parametrize("places", ["i", "e", "ie", "ei", "oie", "oe", "o"])
def test_an_interruption_is_one_turn_wherever_it_is_told(places: str) -> None:
    told = {
        "i": message(5, "user", ABORTED),
        "e": event(5, "turn_aborted", turn_id=T1, reason="interrupted"),
        "o": output(4, "c1", "aborted by user after 3.1s"),
    }
    reading = read_records(
        meta(),
        *turn(1, T1),
        user_event(2, "go"),
        call(3, "c1", cmd="sleep 9"),
        *(told[place] for place in places),
    )
    stops = [t for t in reading.turns if t.channel is Channel.INTERRUPTION]
    assert len(stops) == 1 and stops[0].role is Role.HARNESS
    worked = next(t for t in reading.turns if t.tool_calls)
    assert stops[0].parent == worked.turn_id
    assert not worked.tool_calls[0].is_error and not worked.tool_calls[0].refused


def test_two_stops_of_two_prompts_are_two_and_a_replaced_turn_is_no_person_s_stop() -> None:
    stop = event(5, "turn_aborted", reason="interrupted")
    records = [meta(), *turn(1, T1), user_event(2, "go"), stop, *turn(6, T2), user_event(7, "no")]
    reading = read_records(*records, stop)
    assert sum(t.channel is Channel.INTERRUPTION for t in reading.turns) == 2
    replaced = read_records(*records[:-3], event(8, "turn_aborted", turn_id=T1, reason="replaced"))
    assert [t.channel for t in replaced.turns if t.role is Role.HARNESS] != [Channel.INTERRUPTION]


def test_files_without_turn_ids_still_tell_two_stops_apart() -> None:
    stop = event(5, "turn_aborted", reason="interrupted")
    reading = read_records(meta(), user_event(2, "go"), stop, user_event(7, "no"), stop)
    assert sum(t.channel is Channel.INTERRUPTION for t in reading.turns) == 2


# -- calls -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "failed"),
    [
        (ran("fine"), False),
        (ran("Process exited with code 1\nExit code: 1"), False),  # quoted by the output
        (ran("bad", 1), True),
        ("Exit code: 1\nWall time: 0.1 seconds\nOutput:\nboom", True),
        ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nSuccess. Updated:\nA x.py", False),
        ("Chunk ID: 1\nWall time: 1 seconds\nProcess running with session ID 7\nOutput:\n", False),
        (json.dumps({"output": "x", "metadata": {"exit_code": 101}}), True),
        (json.dumps({"output": "x", "metadata": {"exit_code": 0}}), False),
        ({"content": "x", "success": False}, True),
        ({"content": "x", "success": True}, False),
        ([{"type": "input_text", "text": ran("bad", 3)}], True),
        ("apply_patch verification failed: Failed to find expected lines in a.py", True),
        ("failed to parse function arguments: missing field `cmd`", True),
        ("unsupported call: foo", True),
        ('Wall time: 0.2 seconds\nOutput:\n{"error":"GitHub API error: 404"}', True),
        ("Plan updated", False),
        ("", False),
    ],
)
def test_whether_a_call_failed_is_told_in_every_version(result: Any, failed: bool) -> None:
    reading = read_records(meta(), call(1, "c1", cmd="x"), output(2, "c1", result))
    (made,) = reading.turns[0].tool_calls
    assert (made.is_error, made.refused) == (failed, False)
    assert made.output is not None


@pytest.mark.parametrize(
    "result",
    [
        "exec command rejected by user",
        'exec_command failed for `rm -rf x`: Rejected("rejected by user")',
        "patch rejected by user",
        "user rejected MCP tool call",
        "rejected by user",
    ],
)
def test_a_call_that_the_person_refused_is_refused(result: str) -> None:
    reading = read_records(meta(), call(1, "c1", cmd="rm -rf x"), output(2, "c1", result))
    assert reading.turns[0].tool_calls[0].refused
    quoted = read_records(meta(), call(1, "c1", cmd="cat log"), output(2, "c1", ran(result)))
    assert not quoted.turns[0].tool_calls[0].refused


def test_a_policy_that_refuses_is_no_person() -> None:
    said = "approval policy is Never; reject command — you should not ask for escalated permissions"
    reading = read_records(meta(), call(1, "c1", cmd="x"), output(2, "c1", said))
    (made,) = reading.turns[0].tool_calls
    assert made.is_error and not made.refused


def test_patches_shells_and_searches_are_calls() -> None:
    patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** End Patch"
    action = {"type": "exec", "command": ["ls", "-l"], "working_directory": "/src"}
    reading = read_records(
        meta(),
        item(1, "custom_tool_call", name="apply_patch", call_id="p1", input=patch),
        item(2, "custom_tool_call_output", call_id="p1", output="Exit code: 0\nOutput:\nSuccess"),
        item(3, "local_shell_call", call_id="s1", status="completed", action=action),
        output(4, "s1", json.dumps({"output": "a", "metadata": {"exit_code": 0}})),
        item(5, "web_search_call", status="completed", action={"type": "search", "query": "q"}),
        event(5, "web_search_end", call_id="ws", query="q", action={}),
    )
    calls = [one for turn_ in reading.turns for one in turn_.tool_calls]
    assert [one.name for one in calls] == ["apply_patch", "local_shell", "web_search"]
    assert json.loads(calls[0].input)["path"] == "src/a.py"
    assert json.loads(calls[1].input)["command"] == ["ls", "-l"]
    assert calls[1].output == "a"


@pytest.mark.parametrize("order", ["call event output", "call output event", "event"])
def test_the_event_that_ends_a_call_knows_how_it_went(order: str) -> None:
    parts = {
        "call": call(1, "c1", cmd="make"),
        "output": output(2, "c1", "no rule"),
        "event": event(
            2,
            "exec_command_end",
            call_id="c1",
            command=["make"],
            exit_code=2,
            aggregated_output="no rule",
        ),
    }
    reading = read_records(meta(), *(parts[one] for one in order.split()))
    calls = [one for turn_ in reading.turns for one in turn_.tool_calls]
    assert [(c.name, c.output, c.is_error) for c in calls] == [("exec_command", "no rule", True)]
    assert '"make"' in calls[0].input


@pytest.mark.parametrize(
    ("fields", "name", "failed", "refused"),
    [
        (
            {"type": "CommandExecution", "command": ["ls"], "exit_code": 1, "status": "failed"},
            "exec_command",
            True,
            False,
        ),
        ({"type": "CommandExecution", "status": "declined"}, "exec_command", True, True),
        (
            {"type": "FileChange", "changes": {"a.py": {}}, "status": "completed"},
            "apply_patch",
            False,
            False,
        ),
        (
            {"type": "McpToolCall", "server": "s", "tool": "t", "result": {"isError": True}},
            "mcp__s__t",
            True,
            False,
        ),
        ({"type": "mcpToolCall", "server": "s", "tool": "t"}, "mcp__s__t", False, False),
        ({"type": "DynamicToolCall", "tool": "t", "success": False}, "t", True, False),
    ],
)
def test_completed_items_that_stand_alone_are_calls(fields, name, failed, refused) -> None:
    done = event(1, "item_completed", item={"id": "k1"} | fields)
    (made,) = read_records(meta(), done).turns[0].tool_calls
    assert (made.name, made.is_error, made.refused) == (name, failed, refused)


def test_mcp_results_of_the_older_events_are_read() -> None:
    for result, failed in (({"Ok": {"content": []}}, False), ({"Err": "gone"}, True)):
        done = event(
            1,
            "mcp_tool_call_end",
            call_id="m1",
            invocation={"server": "s", "tool": "t", "arguments": {"a": 1}},
            result=result,
        )
        (made,) = read_records(meta(), done).turns[0].tool_calls
        assert (made.name, made.is_error, made.input) == ("mcp__s__t", failed, '{"a":1}')


def test_a_result_before_its_call_finds_it_and_one_without_is_not_lost() -> None:
    reading = read_records(
        meta(), output(1, "c1", ran("late", 1)), call(2, "c1", cmd="x"), output(3, "c9", "alone")
    )
    assert [(t.role.value, [c.id for c in t.tool_calls], t.flags) for t in reading.turns] == [
        ("assistant", ["c1"], ()),
        ("harness", ["c9"], ("no_call",)),
    ]
    assert reading.turns[0].tool_calls[0].is_error


def test_calls_belong_to_the_answer_that_they_follow() -> None:
    reading = read_records(
        meta(),
        *turn(1, T1),
        message(2, "assistant", "I look at both."),
        call(3, "c1", cmd="a"),
        call(3, "c2", cmd="b"),
        output(4, "c1", ran("")),
        output(4, "c2", ran("")),
        call(5, "c3", cmd="c"),
        message(6, "assistant", "Done."),
    )
    assert [(t.text, [c.id for c in t.tool_calls]) for t in reading.turns] == [
        ("I look at both.", ["c1", "c2"]),
        ("", ["c3"]),
        ("Done.", []),
    ]


# -- compaction, forks, sub-agents, machines ---------------------------------------------------


def test_a_compaction_s_retelling_is_no_dialogue_and_its_history_is_not_read_again() -> None:
    retold = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}
    reading = read_records(
        meta(),
        *turn(1, T1),
        user_event(2, "go"),
        entry("compacted", 3, {"message": "We did this.", "replacement_history": [retold]}),
        event(3, "context_compacted"),
        item(3, "compaction", encrypted_content="x"),
    )
    assert summary(reading) == [
        ("human", "prompt", "go"),
        ("harness", "compaction", "We did this."),
    ]


LATER = 86_400.0
OTHER = thread_id(LATER, "f")


def family(*, named: bool = True, source: Any = "cli", **more: Any) -> tuple[Reading, Reading]:
    """A session, and a fork that copies it a day later and goes on.

    ``named``: the version names its turns; the oldest that fork do not.
    """
    history = [
        *turn(10, T1 if named else "", started=named),
        user_event(10, "yes"),
        message(11, "assistant", "Done."),
        call(12, "c1", cmd="ls"),
        output(13, "c1", ran("a")),
    ]
    parent = read_records(meta(), *history)
    copied = [one | {"timestamp": day_later(0)} for one in (meta(), *history)]
    begun = meta(0, OTHER, source=source, forked_from_id=SESSION, **more)
    begun["timestamp"] = begun["payload"]["timestamp"] = day_later(0)
    own = thread_id(LATER + 60) if named else ""
    after = [
        *turn(60, own, started=named),
        user_event(60, "yes"),
        message(61, "assistant", "Done too."),
    ]
    after = [one | {"timestamp": day_later(60)} for one in after]
    path = f"sessions/rollout-2026-02-02T10-00-00-{OTHER}.jsonl"
    return parent, read_records(begun, *copied, *after, path=path)


def day_later(second: float) -> str:
    return shapes.stamp(second).replace("02-01", "02-02")


@pytest.mark.parametrize("named", [True, False])
def test_a_fork_s_copied_turns_are_the_parent_s_own(named: bool) -> None:
    parent, fork = family(named=named)
    known = {one.turn_id: one for one in parent.turns}
    assert [one.turn_id in known for one in fork.turns] == [True, True, False, False]
    assert fork.session_id == OTHER
    for copy in fork.turns[:2]:
        both = {merge_turn(known[copy.turn_id], copy), merge_turn(copy, known[copy.turn_id])}
        assert both == {known[copy.turn_id]}


def test_a_copied_turn_keeps_the_time_at_which_it_happened() -> None:
    parent, fork = family()
    assert abs(fork.turns[0].occurred_at - parent.turns[0].occurred_at) < 10_000_000
    assert fork.turns[2].occurred_at - fork.turns[0].occurred_at > 80_000_000_000


SPAWNED = {"subagent": {"thread_spawn": {"parent_thread_id": SESSION, "depth": 1}}}


@pytest.mark.parametrize("named", [True, False])
def test_a_sub_agent_s_file_holds_its_own_turns_and_no_person_s(named: bool) -> None:
    _, child = family(named=named, source=SPAWNED, thread_source="subagent")
    assert child.subagent and child.session_id == SESSION and child.machine == ""
    assert summary(child) == [
        ("harness", "subagent_prompt", "yes"),
        ("assistant", "reply", "Done too."),
    ]
    assert {one.subagent for one in child.turns} == {OTHER}
    assert {one.session_id for one in child.turns} == {SESSION}


def test_words_of_other_agents_are_no_person_s() -> None:
    said = {"author": "main/a", "recipient": "main", "content": [{"type": "text", "text": "hi"}]}
    reading = read_records(
        meta(), item(1, "agent_message", **said), entry("inter_agent_communication", 1, said)
    )
    assert summary(reading) == [("harness", "notification", "hi")]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"source": "exec", "originator": "codex_exec"}, "sdk"),
        ({"originator": "codex_sdk_ts"}, "sdk"),
        ({"source": "mcp"}, "mcp"),
        ({"source": {"internal": "memory_consolidation"}}, "internal"),
        ({"thread_source": "automation"}, "internal"),
        ({"cwd": "/home/dev/.everest/work"}, "own"),
    ],
)
def test_a_machine_s_session_has_no_person_in_it(fields: dict, reason: str) -> None:
    reading = read_records(meta(**fields), *turn(1, T1)[:1], user_event(2, "Review this."))
    assert (reading.machine, person(reading)) == (reason, [])
    assert reading.turns[0].channel is Channel.MACHINE


def test_a_schedule_s_prompt_is_no_person_s() -> None:
    prompt = "Automation: Nightly scan\nAutomation ID: nightly\nLast run: never\n\nScan."
    reading = read_records(meta(), user_event(1, prompt), message(2, "assistant", "Clean."))
    assert (reading.machine, person(reading)) == ("scheduled", [])
    joined = read_records(meta(), user_event(1, prompt), user_event(3, "look again"))
    assert (joined.machine, person(joined)) == ("", ["look again"])


@pytest.mark.parametrize("fields", [{}, {"source": "vscode", "originator": "codex_vscode"}])
def test_a_person_s_session_is_not_taken_for_a_machine_s(fields: dict) -> None:
    reading = read_records(meta(**fields), user_event(2, "Review this."))
    assert (reading.machine, person(reading)) == ("", ["Review this."])


def test_unknown_types_are_counted_and_kept() -> None:
    reading = read_records(
        meta(),
        entry("brand_new", 1, {"x": 1}),
        event(1, "shiny", x=1),
        item(1, "gadget"),
        event(1, "item_completed", item={"type": "Gizmo"}),
        user_event(2, "hello"),
    )
    assert reading.unknown == {
        "brand_new": 1,
        "event_msg:shiny": 1,
        "response_item:gadget": 1,
        "item:Gizmo": 1,
    }
    assert len(reading.bad) == 4 and person(reading) == ["hello"]


# -- the shared real files ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def readings(shared: Path) -> dict[str, Reading]:
    root = shared / "transcripts"
    found: dict[str, Reading] = {}
    for path in sorted((root / "codex").rglob("*.jsonl")):
        data = path.read_bytes()
        name = path.relative_to(root).as_posix()
        form = format_of(data[:HEAD_BYTES], name)
        assert form is not None and form.name == "codex"
        found[name] = form.read([data], path=name, start=START)
    return found


def test_the_real_rollouts_give_the_counts_of_their_readme(readings: dict[str, Reading]) -> None:
    turns = [one for reading in readings.values() for one in reading.turns]
    calls = [one for turn_ in turns for one in turn_.tool_calls]
    named = Counter(one.name in ("web_search", "tool_search") for one in calls)
    assert len(readings) == 10
    assert sum(one.role is Role.HUMAN for one in turns) == 75
    assert named[False] == 941
    assert sum("exited with code 0" not in (c.output or "") and c.is_error for c in calls) == 42
    assert sum(one.channel is Channel.INTERRUPTION for one in turns) == 2
    assert all(not one.bad and not one.unknown and not one.machine for one in readings.values())
    for reading in readings.values():
        ids = {one.turn_id for one in reading.turns}
        assert len(ids) == len(reading.turns)
        assert {one.parent for one in reading.turns} - {""} <= ids


def test_every_labelled_word_and_stop_is_a_turn(shared: Path, readings) -> None:
    text = (shared / "transcripts" / "gold.jsonl").read_text(encoding="utf-8")
    labels = [json.loads(row) for row in text.split("\n") if row]
    checked = 0
    for label in labels:
        if not label["file"].startswith("codex/"):
            continue
        checked += 1
        at = [
            one
            for one in readings[label["file"]].turns
            if one.line_from <= label["line"] <= one.line_to
        ]
        if label["kind"] == "interruption":
            assert [one.channel for one in at] == [Channel.INTERRUPTION]
        else:
            assert [one.role for one in at] == [Role.HUMAN], label
            assert " ".join(label["quote"].split())[:40] in " ".join(at[0].text.split())
    assert checked == 77
