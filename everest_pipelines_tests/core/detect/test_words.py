"""Corrections, standing statements, surprises and facts, on words written for these tests."""

from __future__ import annotations

import pytest

from everest_pipelines.core.detect import detect, model
from everest_pipelines.core.detect.rule_cues import is_direct
from everest_pipelines.core.records import Channel, Episode, EpisodeKind, Origin, Turn
from everest_pipelines_tests.core.detect.make import Talk, call, day_of


def of_kind(turns: list[Turn], *kinds: EpisodeKind) -> list[Episode]:
    return [e for e in detect(turns, day_of=day_of) if e.kind in kinds]


def answered(
    words: str, reply: str = "I'll look.", channel: Channel = Channel.PROMPT
) -> list[Turn]:
    talk = Talk()
    talk.human("Please speed up the importer.")
    talk.agent("", call("Edit", "ok", file_path="/r/importer.py"))
    talk.agent("Done! The importer is now fast and all tests are passing.")
    talk.human(words, channel)
    talk.agent(reply)
    return talk.turns


@pytest.mark.parametrize(
    "words",
    [
        "that's wrong, it still doesn't work",
        "but the importer still fails, why did you remove the cache?",
        "no, that is not correct. the bug is in the parser",
    ],
)
def test_words_against_what_was_done_are_a_correction(words: str) -> None:
    (found,) = of_kind(answered(words, "You're right, I missed that."), EpisodeKind.CORRECTION)
    assert found.origin == Origin.HUMAN and found.quote


@pytest.mark.parametrize("words", ["commit", "thanks, looks good", "what does the parser do?"])
def test_orders_thanks_and_questions_are_none(words: str) -> None:
    assert not of_kind(answered(words), EpisodeKind.CORRECTION)


def test_a_concession_settles_a_correction_later() -> None:
    turns = answered("hmm, the importer skips the last row?", "You're right, I missed that.")
    (found,) = of_kind(turns, EpisodeKind.CORRECTION)
    assert found.settled_at == turns[-1].occurred_at > found.occurred_at


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        ("no, do not edit generated files, run the generator", None),
        ("ok, use uv", "Use uv."),
        ("We never push to main.", "We never push to main."),
        ("In this repo we don't mock the database.", "In this repo we don't mock the database."),
        ("looks good. I prefer small commits.", "I prefer small commits."),
        ("why are you using npm?", "Why are you using npm?"),
    ],
)
def test_a_standing_sentence_makes_a_sure_episode_with_its_rule(
    words: str, rule: str | None
) -> None:
    (found,) = of_kind(answered(words), EpisodeKind.CORRECTION, EpisodeKind.NOTE)
    assert found.standing and found.sure
    assert rule is None or found.title == rule


@pytest.mark.parametrize(
    "words",
    [
        "add a test for the parser",
        "the badge is still below the table",
        "don't touch that one for now",
        "if the list is empty, do not print anything",
        "could we use a regexp here?",
        "never mind!",
        "```\nalways use pnpm\n```",
        "> never commit to main",
        "we don't need to check it again",
    ],
)
def test_words_about_the_task_at_hand_are_never_sure_to_stand(words: str) -> None:
    found = of_kind(answered(words), EpisodeKind.CORRECTION, EpisodeKind.NOTE)
    assert not [e for e in found if e.standing and e.sure]
    assert [e for e in of_kind(answered("use pnpm"), EpisodeKind.CORRECTION, EpisodeKind.NOTE)
            if e.sure]  # positive control  # fmt: skip


def test_a_line_that_breaks_off_is_no_rule() -> None:
    assert not is_direct("ensure it exists, and avoid returning a promise from the")
    assert is_direct("avoid returning a promise from the handler")


def test_without_coefficients_the_other_detectors_still_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model.load.cache_clear()
    monkeypatch.setattr(model.resources, "files", lambda package: _Nowhere())
    try:
        turns = answered("no, use pnpm, that is wrong")
        assert [e.kind for e in detect(turns, day_of=day_of)] == [EpisodeKind.SESSION]
    finally:
        model.load.cache_clear()


class _Nowhere:
    def joinpath(self, name: str) -> _Nowhere:
        return self

    def is_file(self) -> bool:
        return False


def test_the_shipped_models_carry_a_card_and_ordered_cuts() -> None:
    for name in ("correction", "standing"):
        shipped = model.load(name)
        assert shipped is not None and shipped.card["limits"]
        assert shipped.likely <= shipped.best and 0.5 <= shipped.sure <= 1


def test_a_stated_surprise_is_the_agents_own_claim() -> None:
    talk = Talk()
    talk.human("go")
    talk.agent("Wait, that's strange: the config lists it twice. Let me look.")
    talk.agent("You're right, that's strange.")  # a concession is none
    talk.agent("I'll wait for the build.")
    talk.agent("This lint error is pre-existing and unrelated to my changes.")
    found = of_kind(talk.turns, EpisodeKind.SURPRISE)
    assert [(e.sub, e.origin) for e in found] == [
        ("self_correction", Origin.ASSISTANT),
        ("preexisting_problem", Origin.ASSISTANT),
    ]
    assert found[0].quote == "Wait, that's strange: the config lists it twice."


def test_facts_about_the_machine_come_from_exact_sentences() -> None:
    talk = Talk()
    talk.agent("", call("Bash", "Exit code 127\nbash: line 1: zsh: command not found", error=True,
                        command="zsh -c x"))  # fmt: skip
    talk.agent("", call("Bash", "Python 3.12.7", command="python3 --version"))
    talk.agent("", call("Bash", "version 2 of the plan", command="cat plan.md"))
    talk.agent("", call("Read", "zsh: command not found: foo", file_path="/r/log.txt"))
    found = of_kind(talk.turns, EpisodeKind.ENVIRONMENT)
    assert [e.title for e in found] == [
        "`zsh` is not installed here", "`python3` is version 3.12.7 here",
    ]  # fmt: skip
