"""A writing model beside the deterministic text: gated, cached, and never trusted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from everest_pipelines.core.records import LessonKind, LessonRevision, Origin, State
from everest_pipelines.core.sleep import guard, wording
from everest_pipelines.night import wording as stage
from everest_pipelines.night.models.ollama import Server
from everest_pipelines.night.models.writing import OllamaWriter, OpenAIWriter, open_writer
from everest_pipelines.night.run import run
from everest_pipelines.text.errors import ModelError, SettingsError
from everest_pipelines_tests.night.homes import rows, workspace
from everest_pipelines_tests.night.models.bridge import Bridge
from everest_pipelines_tests.night.models.conftest import CHAT_DIGEST, chat_with

SAMPLE = Path(stage.__file__).parents[1] / "sample"
RULES = (
    "we use pnpm here, not npm",
    "never push to main without asking me first",
    "don't mock the database in tests",
    "always run `make lint` before you commit",
    "the preview runs on port 5190, not 5180",
    "use tabs, not spaces, in Makefiles",
    "do not touch the generated files in src/gen/",
    "use UTC in the logs, never local time",
)
GOOD = {
    "we use pnpm here, not npm": "Use pnpm, not npm.",
    "never push to main without asking me first": "Never push to main without asking first.",
    "don't mock the database in tests": "Do not mock the database in tests.",
    "always run `make lint` before you commit": "Always run `make lint` before a commit.",
    "the preview runs on port 5190, not 5180": "Run the preview on port 5190, not 5180.",
}


@pytest.mark.parametrize(("text", "said"), GOOD.items())
def test_a_faithful_wording_passes(text, said):
    assert wording.refused(said, text=text, quotes=(text,)) == ""


@pytest.mark.parametrize(
    ("text", "said", "reason"),
    [
        ("we use pnpm here, not npm", "Use npm, not pnpm.", "polarity"),
        ("we use pnpm here, not npm", "Do not use pnpm.", "polarity"),
        ("never push to main without asking me first", "Always push to main.", "polarity"),
        ("don't mock the database in tests", "Mock the database in tests.", "polarity"),
        ("no need to ask before you run the tests", "Ask before you run the tests.", "polarity"),
        ("the preview runs on port 5190, not 5180", "Run it on port 5180.", "identifiers"),
        ("run `make lint` before you commit", "Run the linter before you commit.", "identifiers"),
        ("use tabs in Makefiles", "Use tabs in Makefiles and in src/app.py.", "identifiers"),
        ("use tabs in Makefiles", "Use tabs.", "polarity"),
        ("use tabs in Makefiles", "Rule: use tabs in Makefiles", "echo"),
        ("use tabs in Makefiles", "Keep every name, number, path and option the same.", "echo"),
        ("use tabs in Makefiles", "use tabs in makefiles", "same"),
        ("use tabs in Makefiles", "Use tabs. In Makefiles, too.", "sentences"),
        ("use tabs in Makefiles", "Tabs", "length"),
        ("use tabs in Makefiles", "Use tabs in Makefiles, " + "always " * 20, "length"),
        ("use tabs in Makefiles", "Nutze Tabulatoren statt Leerzeichen", "language"),
        ("在测试里不要用模拟数据库", "Do not mock the database", "language"),
    ],
)
def test_what_says_something_else_is_refused(text, said, reason):
    assert wording.refused(said, text=text, quotes=(text,)) == reason


@pytest.mark.parametrize("reply", ["", "no json", "[]", '{"rule": 3}', '{"rule": "a", "why": "b"}'])
def test_a_reply_of_another_shape_is_no_rule(reply):
    assert wording.answer_of(reply) == ""
    assert wording.answer_of('{"rule": " Use pnpm. "}') == "Use pnpm."


def test_a_real_small_model_turns_rules_round_and_the_gate_catches_it(chat_server):
    """135M parameters: every reply is valid JSON, many say the opposite, none of those passes."""
    chat = chat_with(chat_server)
    with Bridge(chat=chat, digests={"smollm2:latest": CHAT_DIGEST}) as bridge:
        writer = OllamaWriter("smollm2", Server(bridge.host, timeout=120.0))
        replies = {
            rule: writer.ask(
                wording.INSTRUCTION, wording.question_of(rule, (rule,)), wording.SCHEMA
            )
            for rule in RULES
        }
    said = {rule: wording.answer_of(reply) for rule, reply in replies.items()}
    assert sum(bool(one) for one in said.values()) >= 6  # it does obey the schema
    refused = {rule: wording.refused(one, text=rule) for rule, one in said.items() if one}
    assert any(refused.values())
    for rule, one in said.items():
        if one and not refused[rule]:
            assert guard.rules_apart(guard.stance(rule), guard.stance(one)) is None
            assert guard.stance(rule).forbids == guard.stance(one).forbids


def scripted(messages: list[dict[str, str]], schema: object) -> str:
    """Words a rule faithfully when it knows it, else turns it round."""
    rule = messages[-1]["content"].split("\n")[0].removeprefix("Rule: ").rstrip(".")
    for text, said in GOOD.items():
        if text in rule.lower() or rule.lower() in text:
            return json.dumps({"rule": said})
    return json.dumps({"rule": f"Never {rule}"[:150]})


def memory(home: Path, bridge: Bridge, **variables: str):
    ws = workspace(home, SAMPLE, EVEREST_WRITE_MODEL="writer", **variables)
    ws.model_server = Server(bridge.host, timeout=2.0, tries=2, pause=lambda seconds: None)
    return ws


def test_wordings_stand_beside_the_text_and_a_rerun_asks_nothing(tmp_path):
    with Bridge(chat=scripted, digests={"writer:latest": "e" * 64}) as bridge:
        ws = memory(tmp_path / "home", bridge)
        results, published = run(ws, "2026-05-11")
        counts = next(one.counts for one in results if one.stage == "sleep")
        worded = [one for one in published.visible if one.wording]
        assert worded and counts["worded"] >= len(worded) and counts["wordings_refused"]
        assert all(one.text and one.text != one.wording for one in worded)
        lines = (ws.home.current / "lessons.jsonl").read_text().splitlines()
        assert sum(bool(json.loads(line)["wording"]) for line in lines) == len(worded)
        asked = len(bridge.requests("chat"))
        again = memory(tmp_path / "home", bridge)
        results, published = run(again, "2026-05-11")
        assert len(bridge.requests("chat")) == asked and not published.changed
        before = rows(again)
        bridge.digests.clear()
        for table in ("lessons", "merges", "predictions", "verifications"):
            for path in sorted((ws.home.lake / table).rglob("*.parquet")):
                path.unlink()
        run(memory(tmp_path / "home", bridge), "2026-05-11")
        assert rows(memory(tmp_path / "home", bridge)) == before


def test_a_model_that_dies_and_a_deadline_leave_the_rest_for_the_next_night(tmp_path):
    with Bridge(chat=scripted, digests={"writer:latest": "e" * 64}) as bridge:
        bridge.fail("chat", None, None, 500, 500)
        ws = memory(tmp_path / "home", bridge)
        _, published = run(ws, "2026-05-11")
        assert published.visible and "status 500" in stage.last(ws.home).why
        first = len(stage_answers(ws))
        assert first == 2
        ws = memory(tmp_path / "home", bridge)
        assert stage.ask(ws, published.visible, clock=iter([0.0, 9e9, 9e9]).__next__).why
        run(memory(tmp_path / "home", bridge), "2026-05-12")
        assert len(stage_answers(ws)) > first


def stage_answers(ws) -> list[object]:
    import sqlite3

    with sqlite3.connect(ws.home.models / "answers.sqlite") as db:
        return db.execute("select * from sentences").fetchall()


def test_a_server_with_openais_routes_is_asked_with_the_schema(chat_server):
    address = chat_server.listening_address
    writer = OpenAIWriter("smollm2", f"{address}/v1")
    reply = writer.ask(wording.INSTRUCTION, wording.question_of(RULES[0], ()), wording.SCHEMA)
    assert wording.answer_of(reply)
    with pytest.raises(ModelError, match="did not answer"):
        OpenAIWriter("x", "http://127.0.0.1:9/v1").ask("a", "b", {})


def test_an_openai_model_without_a_url_names_the_variable(tmp_path):
    ws = workspace(tmp_path / "home", SAMPLE, EVEREST_WRITE_MODEL="openai:x")
    with pytest.raises(SettingsError, match="EVEREST_OPENAI_URL"):
        open_writer(ws.settings, "openai:x")


def test_a_candidate_and_an_error_are_never_worded(tmp_path):
    def lesson(**changes):
        return LessonRevision(
            **{
                "lesson_id": "1",
                "revision": 1,
                "text": "we use pnpm here, not npm",
                "lesson_kind": LessonKind.RULE,
                "scope": "p",
                "state": State.STATED,
                "strength": 1.0,
                "seen": 1,
                "first_seen_at": 1,
                "last_seen_at": 1,
                "source_episode_ids": ("e",),
                "valid_from": 1,
                "value_key": "k",
                "origin": Origin.HUMAN,
            }
            | changes
        )

    with Bridge(chat=scripted, digests={"writer:latest": "e" * 64}) as bridge:
        ws = memory(tmp_path / "home", bridge)
        ws.home.ensure()
        asked = stage.ask(
            ws, [lesson(state=State.CANDIDATE), lesson(lesson_kind=LessonKind.ERROR)]
        ).asked
        assert asked == 0
        assert stage.ask(ws, [lesson()]).kept == 1
        assert stage.worded(ws, [lesson()])[0].wording == "Use pnpm, not npm."
