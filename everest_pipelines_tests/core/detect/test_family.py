from __future__ import annotations

import os
import random
import subprocess
import sys

import msgspec
import pytest

from everest_pipelines.core.detect import DETECTORS, detect
from everest_pipelines.core.records import Channel, Episode, EpisodeKind, Role, Turn
from everest_pipelines_tests.core.detect.make import MINUTE, START, Talk, call, day_of


def a_family() -> list[Turn]:
    """A session with every kind of episode, a fork that goes on from it, and a sub-agent."""
    talk = Talk("s1")
    talk.human("Please add a retry to the upload.")
    talk.agent(
        "Wait, that's strange: the file is empty.",
        call("Read", "<tool_use_error>File does not exist.</tool_use_error>", error=True,
             file_path="/r/a.py"),
        call("Read", "1\tx", file_path="/r/src/a.py"),
    )  # fmt: skip
    talk.agent("Done, I stashed your changes and it works.")
    talk.human("No, that is wrong, it still fails. Do not stash anything, read the files you need.")
    talk.agent("You're right, sorry. Let me fix that.", call("Bash", None, command="ls", id="r1"))
    talk.agent(
        "",
        call("Bash", "The user doesn't want to proceed", error=True, refused=True, command="npm i"),
    )
    talk.human("use pnpm", Channel.REFUSAL)
    talk.harness("[Request interrupted by user]", Channel.INTERRUPTION)
    talk.human("In this repo we never commit generated files.")
    talk.agent("", call("Bash", "bash: zsh: command not found", error=True, command="zsh -c x"))
    fork = Talk("s2", start=START + 100 * MINUTE)
    fork.human("why are you still using vale?", parent="s1-3")
    fork.agent("Because the skill says so.")
    helper = Talk("s1", agent="agent-1")
    helper.harness("Never touch the tests, always use make.", Channel.SUBAGENT_PROMPT)
    helper.agent("", call("Grep", "Path does not exist: x", error=True, pattern="a", path="x"))
    return talk.turns + fork.turns + helper.turns


def test_every_detector_finds_something_in_a_family_that_has_everything() -> None:
    found = detect(a_family(), day_of=day_of)
    assert {episode.detector for episode in found} == {one.name for one in DETECTORS}
    assert {episode.kind for episode in found} == set(EpisodeKind)


def test_the_order_of_the_turns_changes_nothing() -> None:
    turns = a_family()
    expected = detect(turns, day_of=day_of)
    for seed in range(5):
        random.Random(seed).shuffle(turns)
        assert detect(turns, day_of=day_of) == expected


def test_the_hash_seed_changes_nothing() -> None:
    code = (
        "import msgspec, hashlib;"
        "from everest_pipelines_tests.core.detect.test_family import a_family, day_of, detect;"
        "print(hashlib.sha256(msgspec.json.encode(detect(a_family(), day_of=day_of))).hexdigest())"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "4242")
    }
    assert len(seen) == 1


def test_episode_ids_are_unique_and_quotes_are_verbatim() -> None:
    turns = {turn.turn_id: turn for turn in a_family()}
    found = detect(list(turns.values()), day_of=day_of)
    assert len({episode.episode_id for episode in found}) == len(found)
    quoted = [episode for episode in found if episode.quote]
    assert quoted
    for episode in quoted:
        assert turns[episode.turn_id].text[episode.quote_from : episode.quote_to] == episode.quote


def test_nothing_settles_before_it_happens_or_after_the_last_turn() -> None:
    turns = a_family()
    last = max(turn.occurred_at for turn in turns)
    for episode in detect(turns, day_of=day_of):
        assert episode.occurred_at <= episode.settled_at <= last


def test_an_episode_does_not_change_when_turns_after_it_settled_are_added() -> None:
    turns = sorted(a_family(), key=lambda turn: turn.occurred_at)
    whole = {e.episode_id: e for e in detect(turns, day_of=day_of)}
    for cut in range(1, len(turns)):
        until = turns[cut - 1].occurred_at
        part = {
            e.episode_id: e
            for e in detect([t for t in turns if t.occurred_at <= until], day_of=day_of)
        }
        for name, episode in whole.items():
            if episode.settled_at <= until and episode.kind in (
                EpisodeKind.ERROR,
                EpisodeKind.REFUSAL,
                EpisodeKind.INTERRUPTION,
                EpisodeKind.SURPRISE,
            ):
                assert part[name] == episode


@pytest.mark.parametrize(
    "change",
    [
        {"withdrawn": True},
        {"duplicate_of": "other"},
        {"role": Role.HARNESS, "channel": Channel.MACHINE},
        {"role": Role.HARNESS, "channel": Channel.PLAN},
        {"subagent": "agent-1"},
        {"flags": ("machine",)},
    ],
)
def test_words_that_are_no_persons_give_no_human_episode(change: dict[str, object]) -> None:
    talk = Talk()
    talk.human("Tidy the build.")
    talk.agent("Done.")
    talk.human("In this repo we never commit generated files.")

    def notes(turns: list[Turn]) -> list[Episode]:
        found = detect(turns, day_of=day_of)
        return [e for e in found if e.kind in (EpisodeKind.NOTE, EpisodeKind.CORRECTION)]

    assert notes(talk.turns)  # positive control
    talk.turns[-1] = msgspec.structs.replace(talk.turns[-1], **change)
    assert not notes(talk.turns)


def test_a_plan_replayed_as_a_prompt_gives_no_human_episode() -> None:
    talk = Talk()
    talk.human("Implement the following plan:\n\nAlways use pnpm. Never commit generated files.")
    found = detect(talk.turns, day_of=day_of)
    assert [e.kind for e in found] == [EpisodeKind.SESSION]


def test_no_turns_give_no_episodes() -> None:
    assert detect([], day_of=day_of) == []
