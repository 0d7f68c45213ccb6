"""Faults that others reported on readers of transcripts: each kind has a test.

The numbers are those of a collection of 58 public bug reports. ``WHERE`` names the tests of each;
those that no other module had are here, on small inputs made by hand.
"""

from __future__ import annotations

import importlib
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from everest_pipelines.core.detect import correction
from everest_pipelines.core.detect.counts import session_days
from everest_pipelines.core.detect.scene import Scene
from everest_pipelines.core.records import Channel, EpisodeKind, Role, Turn
from everest_pipelines.core.transcripts import FORMATS
from everest_pipelines.night.derive import episodes, sessions
from everest_pipelines.night.ingest import ingest
from everest_pipelines.night.look import look
from everest_pipelines.night.workspace import Workspace
from everest_pipelines_tests.core.detect.make import Talk, call, day_of
from everest_pipelines_tests.core.transcripts import codex_shapes, shapes
from everest_pipelines_tests.core.transcripts.shapes import (
    SESSION,
    START,
    assistant,
    file_of,
    line,
    read_bytes,
    read_records,
    record,
    result,
    text,
    user,
)
from everest_pipelines_tests.night.homes import workspace

READERS = "core.transcripts."
WORDS = READERS + "test_claude_words:"
TURNS = READERS + "test_claude_turns:"
DAMAGE = READERS + "test_damage:"
CODEX = READERS + "test_codex:"
MUTILATION = READERS + "test_mutilation:"
BAD_INPUT = "night.test_bad_input:"
HERE = "test_reported_faults:"

# Report -> its tests. A report that does not apply names no test but the reason.
WHERE: dict[int, tuple[str, ...] | str] = {
    1: (TURNS + "test_lines_of_one_message_are_one_turn_even_when_others_stand_between",),
    2: (HERE + "test_every_line_of_an_answer_adds_its_tools_to_one_turn",),
    3: (
        HERE + "test_an_answer_is_known_without_its_request",
        TURNS + "test_a_message_without_an_id_is_known_by_its_record",
    ),
    4: (TURNS + "test_lines_of_one_message_are_one_turn_even_when_others_stand_between",),
    5: (HERE + "test_ids_hold_neither_path_nor_place_in_the_file",),
    6: ("night.test_forks:test_forks_in_every_order_give_the_same_turns",),
    # Tokens are not stored; the kind: a first line that knows less than the last.
    7: (TURNS + "test_a_block_that_grows_over_several_lines_is_kept_once_and_whole",),
    8: (
        DAMAGE + "test_a_cut_record_costs_only_itself_and_the_whole_one_behind_it_is_read",
        MUTILATION + "test_any_mutilation_keeps_every_undamaged_record",
    ),
    9: (
        DAMAGE + "test_nul_bytes_are_stripped_wherever_they_stand",
        HERE + "test_a_crash_s_block_of_nul_bytes_costs_nothing",
    ),
    10: (DAMAGE + "test_empty_cut_and_foreign_lines_are_survived_and_told_apart",),
    11: (
        DAMAGE + "test_line_separators_inside_a_text_split_nothing",
        HERE + "test_a_file_that_could_not_be_read_is_tried_again",
    ),
    12: (
        DAMAGE + "test_lone_surrogates_become_replacement_characters",
        BAD_INPUT + "test_bytes_and_surrogates_in_the_words_become_the_sign_for_them",
    ),
    13: (HERE + "test_two_writers_in_one_file_keep_their_chains",),
    14: (
        READERS + "test_lines:test_an_image_is_replaced_by_its_size_and_hash_in_both_places",
        HERE + "test_pictures_in_data_urls_are_dropped_before_anything_else",
    ),
    15: (HERE + "test_memory_stays_bounded_whatever_a_file_s_size",),
    16: (READERS + "test_lines:test_a_line_above_the_cap_is_named_and_costs_only_itself",),
    17: (HERE + "test_a_file_is_read_once_and_not_again_until_it_changes",),
    18: (BAD_INPUT + "test_a_file_rewritten_to_the_same_size_is_read_again",),
    19: (
        DAMAGE + "test_a_torn_last_line_is_no_fault_and_the_bookmark_stays_before_it",
        READERS + "test_lines:test_numbers_and_offsets_count_the_bytes_of_the_file",
    ),
    20: (
        MUTILATION + "test_reading_a_file_as_it_grows_equals_reading_it_once",
        HERE + "test_an_answer_that_was_read_half_is_completed",
    ),
    21: (BAD_INPUT + "test_a_torn_end_is_no_fault_and_is_read_when_it_is_whole",),
    22: (READERS + "test_projects:test_a_key_is_readable_and_tells_look_alikes_apart",),
    23: (HERE + "test_one_directory_is_one_project_for_all_agents",),
    24: (HERE + "test_whatever_an_agent_calls_its_folders_they_are_read",),
    25: (READERS + "test_projects:test_a_worktree_names_its_repository",),
    26: (HERE + "test_sub_agents_files_are_no_sessions",),
    27: (HERE + "test_sub_agents_files_are_no_sessions",),
    28: (HERE + "test_two_children_of_one_parent_are_told_apart",),
    29: (TURNS + "test_a_sub_agent_s_file_is_known_by_its_name_where_the_flag_is_missing",),
    30: (HERE + "test_sub_agents_in_deeper_folders_are_found_and_counted_with_their_parent",),
    31: (HERE + "test_a_memory_tool_s_own_calls_leave_no_human_word",),
    32: (
        HERE + "test_a_memory_tool_s_own_calls_leave_no_human_word",
        "defs.test_checks:test_a_share_of_machines_above_half_is_told",
    ),
    33: (HERE + "test_a_memory_tool_s_own_calls_leave_no_human_word",),
    34: (HERE + "test_two_children_of_one_parent_are_told_apart",),
    35: (HERE + "test_no_first_word_makes_a_sure_correction",),
    36: (HERE + "test_no_first_word_makes_a_sure_correction",),
    37: (HERE + "test_an_answer_to_the_agent_s_question_is_no_correction",),
    38: (HERE + "test_no_first_word_makes_a_sure_correction",),
    39: (HERE + "test_what_the_agent_says_of_itself_is_no_person_s_correction",),
    40: (
        WORDS + "test_queued_words_that_no_record_repeats_are_the_person_s_own_turn",
        WORDS + "test_queued_words_that_a_record_delivers_are_marked_as_its_copy",
        WORDS + "test_an_attachment_delivers_queued_words",
    ),
    41: (HERE + "test_a_command_behind_reminders_is_a_command",),
    42: (WORDS + "test_the_harness_s_texts_are_not_the_person_s",),
    43: (HERE + "test_a_session_s_first_prompt_is_the_first_that_a_person_typed",),
    44: (
        CODEX + "test_every_shape_gives_the_same_turns_once",
        "defs.test_checks:test_a_large_file_without_turns_is_red",
        "defs.test_checks:test_a_share_of_unknown_records_is_red",
    ),
    45: (CODEX + "test_every_shape_gives_the_same_turns_once",),
    46: (CODEX + "test_every_shape_gives_the_same_turns_once",),
    47: (
        CODEX + "test_every_shape_gives_the_same_turns_once",
        CODEX + "test_completed_items_that_stand_alone_are_calls",
    ),
    48: "Gemini's files are not read yet.",
    49: "Gemini's files are not read yet.",
    50: "ChatGPT's exports are not read yet.",
    51: "Claude.ai's exports are not read yet.",
    52: ("lake.test_calendar:test_the_day_is_the_date_on_the_wall",),
    53: (
        "lake.test_calendar:test_an_instant_lies_in_its_day_and_days_touch",
        HERE + "test_a_late_record_reopens_its_own_day",
    ),
    54: (
        BAD_INPUT + "test_a_source_that_goes_deletes_nothing",
        HERE + "test_the_time_of_a_file_is_no_time_of_its_words",
    ),
    55: (
        "night.test_rebuild_equals_incremental:"
        "test_without_anything_derived_and_without_the_sources",
    ),
    56: (
        "text.test_redact:test_a_planted_secret_is_cut_wherever_it_stands",
        "night.test_private:test_a_secret_is_in_no_byte_below_the_home",
    ),
    57: ("night.test_private:test_a_secret_is_in_no_byte_below_the_home",),
    58: "Nothing can be forgotten by command yet.",
}


def test_every_report_has_its_tests() -> None:
    assert sorted(WHERE) == list(range(1, 59))
    for number, places in WHERE.items():
        if isinstance(places, str):
            assert len(places.split()) >= 4, f"{number} needs a reason"
            continue
        assert places
        for place in places:
            module, name = place.split(":")
            found = importlib.import_module(f"everest_pipelines_tests.{module}")
            assert callable(getattr(found, name, None)), place


def feed(root: Path, files: dict[str, bytes]) -> Workspace:
    """A memory into which the files were read: ``claude/…`` and ``codex/…`` below the root."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    ws = workspace(root / "home", root / "claude", EVEREST_CODEX_DIR=str(root / "codex"))
    assert not ingest(ws).failures
    return ws


def turns(ws: Workspace) -> list[Turn]:
    return [row for _, _, row in ws.lake.read("transcripts")]


def said(ws: Workspace) -> list[str]:
    return sorted(row.text for row in turns(ws) if row.role is Role.HUMAN)


# -- counting ----------------------------------------------------------------------------------


def test_every_line_of_an_answer_adds_its_tools_to_one_turn() -> None:
    blocks = [text("I look."), *(shapes.call(f"t{n}", f"mcp__x__{n}") for n in range(4))]
    lines = [assistant(f"a{n}", n, [one], message_id="m") for n, one in enumerate(blocks)]
    (turn,) = read_records(*lines).turns
    assert [one.name for one in turn.tool_calls] == [f"mcp__x__{n}" for n in range(4)]
    assert (
        turn.text == "I look." and turn.occurred_at == read_records(lines[0]).turns[0].occurred_at
    )


def test_an_answer_is_known_without_its_request() -> None:
    lines = [assistant(f"a{n}", n, [text(f"part {n}")], message_id="m") for n in range(3)]
    with_id = [one | {"requestId": f"r{n}"} for n, one in enumerate(lines)]
    assert len(read_records(*lines).turns) == len(read_records(*with_id).turns) == 1


def test_ids_hold_neither_path_nor_place_in_the_file() -> None:
    claude = [
        user("u1", 1, "hi"),
        shapes.queue("enqueue", 2, "more"),
        assistant("a1", 3, [text("x")]),
    ]
    codex = codex_shapes.conversation("current")
    for read, records, first in (
        (shapes.read_bytes, claude, record("progress", "p", 0)),
        (codex_shapes.read_bytes, codex, codex_shapes.event(0, "token_count")),
    ):
        here = read(file_of(*records), path="a/one.jsonl")
        there = read(file_of(first, *records), path="b/two.jsonl")
        assert [one.turn_id for one in here.turns] == [one.turn_id for one in there.turns]
        assert here.turns[0].line_from + 1 == there.turns[0].line_from


# -- bytes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [200, 9_000, 143_000])
def test_a_crash_s_block_of_nul_bytes_costs_nothing(size: int) -> None:
    nul = b"\0" * size
    one, two = line(user("u1", 1, "one")), line(user("u2", 2, "two"))
    for content in (
        one + b"\n" + nul + two + b"\n",
        one + nul + b"\n" + two + b"\n",
        one + b"\n" + nul + b"\n" + two + b"\n",
        one + nul + two + b"\n",
        nul + one + b"\n" + two + nul,
    ):
        reading = read_bytes(content)
        assert [turn.text for turn in reading.turns] == ["one", "two"]
        assert reading.bad == []


def test_a_file_that_could_not_be_read_is_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "claude" / "projects" / "p" / "s.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no transcript at all\n" * 9)
    ws = workspace(tmp_path / "home", tmp_path / "claude")
    assert ingest(ws).failures and look(ws).pending, "the control: it stays pending"
    path.write_bytes(file_of(user("u1", 1, "hello\u2028there")))
    assert not ingest(ws).failures
    assert said(ws) == ["hello\u2028there"] and not look(ws).pending


def test_two_writers_in_one_file_keep_their_chains() -> None:
    one = [user("u1", 1, "one"), assistant("a1", 4, [text("first")], "u1")]
    two = [user("u2", 2, "two"), assistant("a2", 3, [text("second")], "u2")]
    reading = read_records(one[0], two[0], two[1], one[1])
    parents = {turn.turn_id: turn.parent for turn in reading.turns}
    assert parents == {"u1": "", "u2": "", "msg_a2": "u2", "msg_a1": "u1"}
    assert [turn.line_from for turn in reading.turns] == [1, 2, 3, 4]


def test_pictures_in_data_urls_are_dropped_before_anything_else() -> None:
    url = "data:image/png;base64," + "iVBORw0KGgo" * 20_000
    block = {"type": "input_image", "image_url": url}
    shown = codex_shapes.item(
        1, "message", role="user", content=[{"type": "input_text", "text": "see"}, block]
    )
    called = codex_shapes.call(2, "c1", "view_image", path="a.png")
    returned = codex_shapes.output(3, "c1", [block])
    nested = codex_shapes.output(3, "c2", f'[{{"image_url":"{url}"}}]')
    kept: list[bytes] = []
    codex = next(one for one in FORMATS if one.name.startswith("codex"))
    reading = codex.read(
        [codex_shapes.file_of([codex_shapes.meta(), shown, called, returned, nested])],
        path="x.jsonl",
        start=START,
        sink=lambda _, data: kept.append(data),
    )
    assert len(b"".join(kept)) < 5_000
    assert [turn.text for turn in reading.turns if turn.role is Role.HUMAN] == ["see"]
    assert reading.bad == []


def test_memory_stays_bounded_whatever_a_file_s_size() -> None:
    picture = shapes.user(
        "u", 1, [{"type": "image", "source": {"type": "base64", "data": "A" * (1 << 20)}}]
    )
    output = shapes.result("r", 2, "t", "line of output\n" * 20_000)

    def blocks(count: int) -> Iterator[bytes]:
        for n in range(count):
            for one in (picture | {"uuid": f"u{n}"}, output | {"uuid": f"r{n}"}):
                yield line(one) + b"\n"

    peaks: list[int] = []
    for count in (8, 40):
        tracemalloc.start()
        shapes.read(blocks(count), path="x.jsonl", start=START)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 8 * (1 << 20)  # 43 MB more were read


# -- reading again -----------------------------------------------------------------------------


def test_a_file_is_read_once_and_not_again_until_it_changes(tmp_path: Path) -> None:
    name = "claude/projects/p/s.jsonl"
    ws = feed(tmp_path, {name: file_of(user("u1", 1, "one"))})
    assert not look(ws).pending
    content = file_of(user("u1", 1, "one"), user("u2", 2, "two"))
    ws = feed(tmp_path, {name: content})
    assert said(ws) == ["one", "two"] and not look(ws).pending


def test_an_answer_that_was_read_half_is_completed(tmp_path: Path) -> None:
    parts = [
        assistant("a1", 1, [text("I begin")], message_id="m"),
        assistant("a2", 2, [shapes.call("t1", command="ls")], message_id="m"),
        result("r1", 3, "t1", "a.py"),
    ]
    name = "claude/projects/p/s.jsonl"
    for count in (1, 2, 3):
        ws = feed(tmp_path, {name: file_of(user("u0", 0, "go"), *parts[:count])})
    (turn,) = [row for row in turns(ws) if row.role is Role.ASSISTANT]
    assert turn.text == "I begin" and [one.output for one in turn.tool_calls] == ["a.py"]


def test_a_late_record_reopens_its_own_day(tmp_path: Path) -> None:
    name = "claude/projects/p/s.jsonl"
    evening = user("u1", 0, "evening") | {"timestamp": "2026-02-01T23:59:59.900Z"}
    night = user("u2", 0, "night") | {"timestamp": "2026-02-02T00:00:00.100Z"}
    late = user("u3", 0, "late") | {"timestamp": "2026-02-01T23:59:59.950Z"}
    ws = feed(tmp_path, {name: file_of(evening, night)})
    ws = feed(tmp_path, {name: file_of(evening, night, late)})
    days = {row.text: day for day, _, row in ws.lake.read("transcripts")}
    assert days == {"evening": "2026-02-01", "night": "2026-02-02", "late": "2026-02-01"}


def test_the_time_of_a_file_is_no_time_of_its_words(tmp_path: Path) -> None:
    name = "claude/projects/p/s.jsonl"
    ws = feed(tmp_path, {name: file_of(user("u1", 1, "one"))})
    before = list(ws.lake.read("transcripts"))
    os.utime(tmp_path / name, (1_000_000_000, 1_000_000_000))
    assert look(ws).pending, "the control: it is read again"
    assert not ingest(ws).failures
    assert list(ws.lake.read("transcripts")) == before


# -- projects, sub-agents, machines ------------------------------------------------------------


def test_one_directory_is_one_project_for_all_agents(tmp_path: Path) -> None:
    ws = feed(
        tmp_path,
        {
            "claude/projects/-src-tidepool/s.jsonl": file_of(user("u1", 1, "one")),
            f"codex/{codex_shapes.PATH}": codex_shapes.file_of(
                codex_shapes.conversation("current")
            ),
            "codex/archived_sessions/rollout-old.jsonl": codex_shapes.file_of(
                codex_shapes.conversation("2025")
            ),
        },
    )
    rows = list(ws.lake.read("transcripts"))
    assert {row.agent for _, _, row in rows} == {"claude-code", "codex"}
    assert len({project for _, project, _ in rows}) == 1


def test_a_rollout_that_was_compressed_is_the_same_rollout(tmp_path: Path) -> None:
    content = codex_shapes.file_of(codex_shapes.conversation("current"))
    ws = feed(tmp_path, {f"codex/{codex_shapes.PATH}": content})
    before = list(ws.lake.read("transcripts"))
    packed = pa.compress(content, codec="zstd", asbytes=True)
    (tmp_path / "codex" / codex_shapes.PATH).unlink()
    ws = feed(tmp_path, {f"codex/{codex_shapes.PATH}.zst": packed})
    assert list(ws.lake.read("transcripts")) == before
    fresh = feed(tmp_path / "fresh", {f"codex/{codex_shapes.PATH}.zst": packed})
    assert [row.turn_id for row in turns(fresh)] == [row.turn_id for _, _, row in before]
    damaged = tmp_path / "fresh" / "codex" / f"{codex_shapes.PATH}.zst"
    damaged.write_bytes(packed[:50])
    assert [one.where for one in ingest(fresh).failures] == [str(damaged)]
    assert turns(fresh), "what was read stays"


@pytest.mark.parametrize(
    "folder", ["-src-tidepool", "_src_tidepool", "x y.ü", "-src--tidepool-0f3a"]
)
def test_whatever_an_agent_calls_its_folders_they_are_read(tmp_path: Path, folder: str) -> None:
    ws = feed(tmp_path, {f"claude/projects/{folder}/s.jsonl": file_of(user("u1", 1, "one"))})
    assert {project for _, project, _ in ws.lake.read("transcripts")} == {
        next(iter(ws.lake.read_table("projects"))).project
    }
    assert said(ws) == ["one"]


def side(uuid: str, agent: str, words: str) -> bytes:
    """A sub-agent's file."""
    return file_of(
        user(uuid, 1, words, isSidechain=True, agentId=agent),
        assistant(f"{uuid}a", 2, [text(f"done {agent}")], uuid, isSidechain=True, agentId=agent),
    )


FAMILY = {
    f"claude/projects/p/{SESSION}.jsonl": file_of(user("u1", 1, "the person")),
    "claude/projects/p/agent-0a1b2c3d.jsonl": side("s1", "0a1b2c3d", "old layout"),
    f"claude/projects/p/{SESSION}/subagents/agent-a2.jsonl": side("s2", "a2", "new layout"),
    f"claude/projects/p/{SESSION}/subagents/workflows/w/agent-a3.jsonl": side("s3", "a3", "deep"),
    f"claude/projects/p/{SESSION}/subagents/agent-a2.meta.json": b'{"agentType":"x"}',
}


def test_sub_agents_files_are_no_sessions(tmp_path: Path) -> None:
    ws = feed(tmp_path, FAMILY)
    assert len(turns(ws)) == 7, "the control: all were read"
    sessions(ws)
    rows = [row for _, _, row in ws.lake.read("sessions")]
    assert [(row.session_id, row.human_turns, row.subagent_turns) for row in rows] == [
        (SESSION, 1, 6)
    ]


def test_sub_agents_in_deeper_folders_are_found_and_counted_with_their_parent(
    tmp_path: Path,
) -> None:
    ws = feed(tmp_path, FAMILY)
    assert {row.subagent for row in turns(ws)} == {"", "0a1b2c3d", "a2", "a3"}
    assert said(ws) == ["the person"]


def test_two_children_of_one_parent_are_told_apart(tmp_path: Path) -> None:
    ws = feed(tmp_path, FAMILY)
    scene = Scene(turns(ws))
    assert sorted(scene.streams) == [(SESSION, one) for one in ("", "0a1b2c3d", "a2", "a3")]
    (day,) = session_days(turns(ws), day_of=day_of)
    assert day[1].session_id == SESSION


def test_a_memory_tool_s_own_calls_leave_no_human_word(tmp_path: Path) -> None:
    prompt = "Summarize this part of a conversation. The person said: no, always use pnpm here."
    own = user("m1", 1, prompt, sessionId="m", cwd="/home/dev/.everest/work")
    observer = user("m2", 1, "no, use pnpm", sessionId="o", cwd="/home/dev/.claude-mem/x")
    ws = feed(
        tmp_path,
        {
            "claude/projects/p/s.jsonl": file_of(
                user("u1", 1, "Never push to main. Always use pnpm in this repo.")
            ),
            "claude/projects/p/m.jsonl": file_of(user("m0", 1, prompt, sessionId="m0")),
            "claude/projects/e/m.jsonl": file_of(own),
            "claude/projects/o/m.jsonl": file_of(observer),
            "codex/sessions/rollout-x.jsonl": codex_shapes.file_of(
                [
                    codex_shapes.meta(source="exec", originator="codex_exec"),
                    codex_shapes.user_event(1, "Never push to main. Always use pnpm."),
                ]
            ),
        },
    )
    assert len(turns(ws)) == 5
    assert said(ws) == ["Never push to main. Always use pnpm in this repo."]
    sessions(ws)
    counted = {row.session_id: row.machine for _, _, row in ws.lake.read("sessions")}
    assert sum(counted.values()) == 4 and len(counted) == 5
    episodes(ws)
    quotes = [row for _, _, row in ws.lake.read("episodes") if row.kind is not EpisodeKind.SESSION]
    assert {row.turn_id for row in quotes} == {"u1"}


# -- words -------------------------------------------------------------------------------------


def corrections(words: str, before: str = "I added the parser and all tests pass.") -> list[bool]:
    """Whether each correction found in a person's words is a sure one."""
    talk = Talk()
    talk.human("Add a parser for the config file.")
    talk.agent("", call("Edit", file_path="/r/a.py"))
    talk.agent(before)
    talk.human(words)
    talk.agent("Okay.")
    return [one.sure for one in correction.detect(Scene(talk.turns))]


@pytest.mark.parametrize(
    "words",
    [
        "Actually, let's also add tests",
        "Revert the last commit",
        "no rush, take your time",
        "No, thanks",
        "I was wrong, the old name was fine",
        "oops, I meant the other file",
    ],
)
def test_no_first_word_makes_a_sure_correction(words: str) -> None:
    assert not any(corrections(words))


@pytest.mark.parametrize(
    "words", ["You missed the null case", "That badge is wrong, it belongs above the table"]
)
def test_corrections_without_a_first_word_are_found(words: str) -> None:
    assert corrections(words)


def test_an_answer_to_the_agent_s_question_is_no_correction() -> None:
    assert not any(corrections("no dialog appeared", "Did a dialog appear when you clicked?"))


def test_what_the_agent_says_of_itself_is_no_person_s_correction() -> None:
    words = "No, that is wrong: the port is 8081 and not 8080."
    talk = Talk()
    talk.human("start the server")
    talk.agent(words)
    talk.agent(words)
    assert not list(correction.detect(Scene(talk.turns)))
    assert corrections(words, "The server runs on 8080."), "the control: the person's are one"


def test_a_command_behind_reminders_is_a_command() -> None:
    reminder = "<system-reminder>\nx\n</system-reminder>\n"
    words = (
        "<command-message>fix</command-message>\n<command-name>/fix</command-name>\n"
        "<command-args>the parser</command-args>"
    )
    for content in (reminder + words, reminder * 2 + words, [text(reminder), text(words)]):
        (turn,) = read_records(user("u1", 1, content)).turns
        assert (turn.channel, turn.text) == (Channel.COMMAND, "the parser")


def test_a_session_s_first_prompt_is_the_first_that_a_person_typed() -> None:
    caveat = "Caveat: The messages below were generated by the user while running local commands."
    reading = read_records(
        user("u0", 0, caveat, isMeta=True),
        user("u1", 1, "<command-name>/clear</command-name>"),
        user("u2", 2, "<local-command-stdout></local-command-stdout>"),
        user("u3", 3, "fix the parser"),
        user("u4", 4, "and the tests"),
    )
    assert [turn.text for turn in reading.turns if "first_prompt" in turn.flags] == [
        "fix the parser"
    ]
