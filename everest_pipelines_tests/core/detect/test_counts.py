from __future__ import annotations

import msgspec
import pytest

from everest_pipelines.core.detect import detect, offers, session_days
from everest_pipelines.core.records import Channel, EpisodeKind
from everest_pipelines_tests.core.detect.make import MINUTE, START, Talk, call, day_of

DAY = 24 * 60 * MINUTE


def two_days() -> Talk:
    talk = Talk()
    talk.human("ok, fix the login page. It hangs.")
    talk.agent(
        "",
        call("Read", "File does not exist.", error=True, file_path="/a"),
        call("Bash", "no", error=True, refused=True, command="rm x"),
    )
    talk.harness("[Request interrupted by user for tool use]", Channel.INTERRUPTION)
    talk.human("Go on.", occurred_at=START + DAY)
    talk.agent("Fixed. Do you want me to commit this?", occurred_at=START + DAY + MINUTE)
    talk.human("yes please", occurred_at=START + DAY + 2 * MINUTE)
    return talk


def test_a_session_has_one_row_and_one_episode_a_day() -> None:
    turns = two_days().turns
    rows = session_days(turns, day_of=day_of)
    assert [day for day, _ in rows] == [day_of(START), day_of(START + DAY)]
    first, second = (row for _, row in rows)
    assert (first.human_turns, first.assistant_turns, first.tool_calls) == (1, 1, 2)
    assert (first.tool_errors, first.refused, first.interruptions, first.waited) == (1, 1, 1, 0)
    assert (second.human_turns, second.waited, second.first_at) == (2, 1, START + DAY)
    found = [e for e in detect(turns, day_of=day_of) if e.kind == EpisodeKind.SESSION]
    assert [e.title for e in found] == ["Fix the login page.", "Go on."]
    assert found[0].gist == (
        "Fix the login page (1 prompt, 2 tool calls, 1 error, 1 refusal, 1 interruption)"
    )


def test_a_session_of_a_machine_is_marked_and_titled_so() -> None:
    talk = Talk()
    talk.harness("Summarize this part of a conversation", Channel.MACHINE)
    talk.agent("A summary.")
    ((_, row),) = session_days(talk.turns, day_of=day_of)
    assert row.machine and row.human_turns == 0
    (episode,) = detect(talk.turns, day_of=day_of)
    assert episode.title == "A machine's session"


def test_what_was_taken_back_or_repeated_is_not_counted() -> None:
    talk = two_days()
    before = dict(session_days(talk.turns, day_of=day_of))
    again = msgspec.structs.replace(talk.turns[0], turn_id="x", duplicate_of="y", line_from=90)
    gone = msgspec.structs.replace(talk.turns[0], turn_id="z", withdrawn=True, line_from=91)
    assert dict(session_days([*talk.turns, again, gone], day_of=day_of)) == before


def test_an_offer_has_its_action_and_the_persons_answer() -> None:
    for answer, kind in (
        ("yes please", "approved"),
        ("no", "declined"),
        ("no, push it to a branch first", "corrected"),
        ("yes, but use rebase", "corrected"),
        ("what is the diff?", "other"),
    ):
        talk = Talk()
        talk.agent("All done. Would you like me to commit the change?")
        said = talk.human(answer)
        (offer,) = offers(talk.turns)
        assert (offer.action, offer.answer, offer.answer_turn_id) == ("commit", kind, said.turn_id)


def test_a_question_that_offers_nothing_and_a_working_turn_are_no_offers() -> None:
    talk = Talk()
    talk.agent("Which of the two files do you mean?")
    talk.human("the first")
    talk.agent("Do you want me to run it?", call("Bash", "ok", command="ls"))
    assert offers(talk.turns) == []


@pytest.mark.parametrize(
    ("said", "action"),
    [
        ("Want me to create the actual PR using `gh pr create`?", "publish"),
        ("Would you like me to fix the naming before you merge?", "edit"),
        ("Should I continue with the rebase?", "commit"),
        ("If you want, I can also remove `runs/` or leave it for now.", "delete"),
        ("Two steps are left; say the word and I'll strip it.", "edit"),
        ("Let me know if you'd like me to run the suite again.", "run"),
        ("Ready to proceed?", "edit"),
    ],
)
def test_the_first_verb_of_an_offer_is_its_action(said: str, action: str) -> None:
    talk = Talk()
    talk.agent(f"The parser is done. {said}")
    assert [one.action for one in offers(talk.turns)] == [action]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("Implement 1,2 and 3.", "approved"),
        ("Create a plan and implement it with a subagent.", "approved"),
        ("add another option to the form", "other"),
        ("can you implement it without the cache?", "other"),
    ],
)
def test_an_order_in_the_offer_s_own_verb_approves_it(answer: str, kind: str) -> None:
    talk = Talk()
    talk.agent("Would you like me to implement these changes?")
    talk.human(answer)
    assert [one.answer for one in offers(talk.turns)] == [kind]
