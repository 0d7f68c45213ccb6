from __future__ import annotations

import pytest

from everest_pipelines.core.detect import detect
from everest_pipelines.core.records import Channel, Episode, EpisodeKind, Turn
from everest_pipelines_tests.core.detect.make import Talk, call, day_of

BARE = "The user doesn't want to proceed with this tool use."


def of_kind(turns: list[Turn], kind: EpisodeKind) -> list[Episode]:
    return [e for e in detect(turns, day_of=day_of) if e.kind == kind]


def test_a_bare_refusal_carries_no_words() -> None:
    talk = Talk()
    talk.agent("", call("Edit", BARE, error=True, refused=True, file_path="/r/a.py"))
    (refusal,) = of_kind(talk.turns, EpisodeKind.REFUSAL)
    assert (refusal.sub, refusal.quote) == ("bare", "")


def test_a_reason_is_the_persons_correction_and_may_stand() -> None:
    talk = Talk()
    asked = talk.agent("", call("Bash", BARE, error=True, refused=True, command="npm i"))
    talk.human("no, use pnpm", Channel.REFUSAL, parent=asked.turn_id)
    (refusal,) = of_kind(talk.turns, EpisodeKind.REFUSAL)
    assert (refusal.sub, refusal.quote, refusal.title) == (
        "with_reason",
        "no, use pnpm",
        "Use pnpm.",
    )
    assert refusal.standing and refusal.sure
    assert not of_kind(talk.turns, EpisodeKind.CORRECTION)  # said once


def test_a_reason_that_only_takes_over_corrects_nothing() -> None:
    talk = Talk()
    asked = talk.agent("", call("Bash", BARE, error=True, refused=True, command="npm i"))
    talk.human("I'll take it from here.", Channel.REFUSAL, parent=asked.turn_id)
    (refusal,) = of_kind(talk.turns, EpisodeKind.REFUSAL)
    assert (refusal.sub, refusal.quote, refusal.sure) == ("with_reason", "", False)


@pytest.mark.parametrize(
    ("tool", "output", "refused", "sub"),
    [
        ("ExitPlanMode", BARE, True, "plan_exit"),
        (
            "Bash",
            "The user doesn't want to take this action right now.",
            False,
            "sibling_of_refused",
        ),
        ("AskUserQuestion", "The user wants to clarify these questions.", True, "question_clarify"),
    ],
)
def test_kinds_of_refusals_are_told_apart(tool: str, output: str, refused: bool, sub: str) -> None:
    talk = Talk()
    talk.agent("", call(tool, output, error=True, refused=refused))
    (refusal,) = of_kind(talk.turns, EpisodeKind.REFUSAL)
    assert refusal.sub == sub


def test_the_phrase_inside_a_file_is_no_refusal() -> None:
    talk = Talk()
    talk.agent("", call("Read", f'1\tBARE = "{BARE}"', file_path="/r/a.py"))
    assert not of_kind(talk.turns, EpisodeKind.REFUSAL)


def test_a_running_call_that_was_stopped_is_told_once() -> None:
    talk = Talk()
    text = "[Request interrupted by user for tool use]"
    asked = talk.agent("", call("Task", text, error=True, prompt="x"))
    talk.harness(text, Channel.INTERRUPTION, parent=asked.turn_id)  # the result
    talk.harness(text, Channel.INTERRUPTION, parent=asked.turn_id)  # the record behind it
    talk.human("go on")
    talk.agent("Working")
    talk.harness("[Request interrupted by user]", Channel.INTERRUPTION)
    stops = of_kind(talk.turns, EpisodeKind.INTERRUPTION)
    assert sorted(stop.sub for stop in stops) == ["during_tool", "for_tool_use", "turn"]
