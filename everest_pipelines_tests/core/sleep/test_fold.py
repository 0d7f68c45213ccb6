"""What becomes of episodes over days."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everest_pipelines.core.records import EpisodeKind, LessonKind, State
from everest_pipelines.core.sleep import predict
from everest_pipelines.core.sleep.fold import Folded
from everest_pipelines_tests.core.sleep import making
from everest_pipelines_tests.core.sleep.making import (
    Row,
    claimed,
    day_end,
    day_of,
    failed,
    folded,
    last,
    review,
    said,
    states,
)

TABLES = "Use table-driven tests."
PR_LINK = "Put a link to the pull request into the changelog entry."
MISSING = "Missing dependency: ModuleNotFoundError: No module named 'polars'"


def test_a_standing_statement_of_the_person_is_a_lesson_at_once() -> None:
    done = folded([said(TABLES, 0, "a")], 0)
    (day, row), *rest = done.lessons
    assert (day, row.state, row.text, rest) == (day_of(0), State.STATED, TABLES, [])
    assert row.quote == TABLES
    assert row.strength == 1.0
    assert row.valid_from == day_end(day_of(0))


def test_a_correction_waits_until_another_session_repeats_it() -> None:
    once = [said(PR_LINK, 0, "a", standing=False)]
    assert folded(once, 3).lessons == []
    assert folded(once, 3).waiting == 1
    same_family = [*once, said(PR_LINK, 1, "a", standing=False)]
    assert folded(same_family, 3).lessons == []
    twice = [*once, said(PR_LINK, 1, "b", standing=False)]
    assert states(folded(twice, 3)) == {PR_LINK: "corroborated"}


def test_two_sessions_on_one_day_do_not_corroborate_and_a_second_day_does() -> None:
    day = [said(TABLES, 0, "a", standing=False), said(TABLES, 0, "b", standing=False)]
    assert states(folded(day, 0)) == {TABLES: "candidate"}
    assert states(folded([*day, said(TABLES, 1, "c", standing=False)], 1)) == {
        TABLES: "corroborated"
    }


def test_a_restated_rule_joins_and_raises_the_count_and_not_a_second_lesson() -> None:
    done = folded([said(TABLES, 0, "a"), said("Always use table-driven tests!", 4, "b")], 4)
    (row,) = last(done).values()
    assert (row.seen, row.families, row.days, row.revision) == (2, 2, 2, 2)
    assert row.text == "Always use table-driven tests!"  # the newest sure statement


def test_one_passage_found_by_two_detectors_is_one_source() -> None:
    note = said(TABLES, 0, "a", turn_id="t", quote_to=20)
    correction = said(TABLES, 0, "a", standing=False, turn_id="t", quote_to=20)
    (row,) = last(folded([note, correction], 0)).values()
    assert row.seen == 1
    apart = said(TABLES, 0, "a", standing=False, turn_id="u", quote_to=20)
    assert len(folded([note, apart], 0).lessons[0][1].source_episode_ids) == 2


def test_environment_sessions_and_bare_refusals_never_make_a_lesson() -> None:
    rows = [
        making._row("`jq` is not installed", day, family, kind, origin, "")
        for day, family in ((0, "a"), (1, "b"))
        for kind, origin in (
            (EpisodeKind.ENVIRONMENT, "tool"),
            (EpisodeKind.SESSION, "harness"),
            (EpisodeKind.REFUSAL, "human"),
            (EpisodeKind.INTERRUPTION, "human"),
        )
    ]
    assert folded(rows, 1).lessons == []
    assert folded([*rows, said(TABLES, 1, "b")], 1).lessons  # the control


def test_an_agents_own_claims_stay_candidates_until_the_person_approves() -> None:
    text = "Wait, the cache is shared between all workers"
    rows = [claimed(text, day, family) for day, family in ((0, "a"), (1, "b"), (2, "c"))]
    notes = [claimed(text, day, f, EpisodeKind.NOTE) for day, f in ((0, "a"), (1, "b"))]
    done = folded([*rows, *notes], 2)
    assert {row.state for _, row in done.lessons} == {State.CANDIDATE}
    surprise = next(r for _, r in done.lessons if r.lesson_kind == LessonKind.SURPRISE)
    approve = review(1, "approve", 3, lesson_id=surprise.lesson_id)
    after = {row.lesson_id: row for _, row in folded([*rows, *notes], 3, [approve]).lessons}
    assert after[surprise.lesson_id].state == State.APPROVED
    assert after[surprise.lesson_id].decided_by == "human"


def test_a_repeated_error_is_worth_showing_only_with_substance() -> None:
    bare = "Runtime error: KeyError: 'invoice' in the loader of the shop"
    rows = [failed(bare, 0, "a", sub="runtime_error"), failed(bare, 1, "b", sub="runtime_error")]
    assert states(folded(rows, 1)) == {bare: "candidate"}
    mended = [*rows, failed(bare, 2, "c", sub="runtime_error", fix="`make seed` worked")]
    (row,) = last(folded(mended, 2)).values()
    assert row.state == State.CORROBORATED
    assert row.text == f"{bare}. Then `make seed` worked"
    noise = "Edit without reading first: File has not been read yet"
    twice = [
        failed(noise, d, f, sub="edit_without_read", fix="read it") for d, f in ((0, "a"), (1, "b"))
    ]
    assert set(states(folded(twice, 1)).values()) == {"candidate"}


def test_a_fix_seen_on_a_later_day_changes_the_text_and_is_no_further_source() -> None:
    first = [failed(MISSING, 0, "a", name="x"), failed(MISSING, 1, "b", name="y")]
    day, episode = first[1]
    fixed = (day_of(3), msgspec.structs.replace(episode, fix="uv add polars", settled_at=9**17))
    done = folded([*first, fixed], 3)
    assert [(d, r.revision, r.seen) for d, r in done.lessons] == [(day, 1, 2), (day_of(3), 2, 2)]
    assert done.lessons[-1][1].text.endswith("Then uv add polars")
    assert "uv add" not in done.lessons[0][1].text


def test_a_waiting_episode_whose_later_row_is_standing_becomes_a_lesson_that_day() -> None:
    day, episode = said(TABLES, 0, "a", standing=False)
    later = (day_of(2), msgspec.structs.replace(episode, standing=True))
    done = folded([(day, episode), later], 3)
    assert [(d, row.state) for d, row in done.lessons] == [(day_of(2), State.STATED)]


def test_decay_alone_writes_nothing_and_old_episodes_stop_waiting() -> None:
    rows = [said(TABLES, 0, "a")]
    assert [d for d, _ in folded(rows, 400).lessons] == [day_of(0)]
    apart = [said(PR_LINK, 0, "a", standing=False), said(PR_LINK, 130, "b", standing=False)]
    assert folded(apart, 130).lessons == []
    near = [said(PR_LINK, 0, "a", standing=False), said(PR_LINK, 120, "b", standing=False)]
    assert len(folded(near, 130).lessons) == 1


def test_an_explicit_swap_supersedes_and_the_earlier_keeps_its_interval() -> None:
    rows = [said("Use pnpm, not npm.", 0, "a"), said("Use npm, not pnpm.", 5, "b")]
    done = folded(rows, 5)
    assert states(done) == {"Use pnpm, not npm.": "superseded", "Use npm, not pnpm.": "stated"}
    old = last(done)["Use pnpm, not npm."]
    assert old.valid_to == rows[1][1].occurred_at
    assert old.reason == f"superseded by {last(done)['Use npm, not pnpm.'].lesson_id}"
    again = folded([*rows, said("Use pnpm, not npm.", 9, "c")], 9)
    assert states(again) == {
        "Use pnpm, not npm.": "corroborated",
        "Use npm, not pnpm.": "superseded",
    }


def test_a_swapped_port_supersedes_the_rule_that_rests_on_it() -> None:
    first = "Use port 5180 for the preview from now on."
    second = "Not 5180. use 5190 instead of 5180 from now on."
    rows = [said(first, 0, "a"), said(second, 5, "b")]
    assert states(folded(rows, 5)) == {first: "superseded", second: "stated"}
    assert states(folded([rows[1], said(first, 9, "c")], 9))[first] != "superseded"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Always write table-driven tests.", "Never write table-driven tests."),
        ("Mock the database in the tests.", "Do not mock the database in the tests."),
        ("Never use npm, use pnpm.", "Use npm, not pnpm."),
        ("Ask before deploying to staging.", "Deploy to staging without asking."),
    ],
)
def test_every_other_clash_disputes_both(first: str, second: str) -> None:
    done = folded([said(first, 0, "a"), said(second, 5, "b")], 5)
    assert states(done) == {first: "disputed", second: "disputed"}


def test_a_prohibition_is_superseded_only_by_the_persons_decision() -> None:
    rows = [
        said("Never mock the database in the tests.", 0, "a"),
        said("Mock the database in the tests.", 5, "b"),
    ]
    disputed = last(folded(rows, 5))
    new = disputed["Mock the database in the tests."]
    done = folded(rows, 6, [review(1, "approve", 6, lesson_id=new.lesson_id)])
    assert states(done) == {
        "Never mock the database in the tests.": "superseded",
        "Mock the database in the tests.": "approved",
    }


def test_rules_that_differ_in_one_word_stay_two_lessons_and_are_no_dispute() -> None:
    rows = [
        said("The API runs on port 8080 here.", 0, "a"),
        said("The API runs on port 8081 here.", 1, "b"),
    ]
    assert set(states(folded(rows, 1)).values()) == {"stated"}
    assert len(states(folded(rows, 1))) == 2


def test_a_rejected_value_stays_away_and_what_restates_it_lands_on_the_rejection() -> None:
    rows = [said(TABLES, 0, "a"), said(TABLES, 5, "b"), said(TABLES, 6, "c"), said(PR_LINK, 5, "b")]
    target = last(folded(rows, 0))[TABLES]
    no = review(1, "reject", 2, lesson_id=target.lesson_id, value_key=target.value_key)
    done = folded(rows, 6, [no])
    assert states(done) == {TABLES: "rejected", PR_LINK: "stated"}
    assert last(done)[TABLES].lesson_id == target.lesson_id
    assert last(done)[TABLES].seen == 3


def test_a_tombstone_without_its_lesson_refuses_the_value_and_is_listed() -> None:
    key = last(folded([said(TABLES, 0, "a")], 0))[TABLES].value_key
    no = review(1, "wrong", 0, lesson_id="gone", value_key=key)
    done = folded([said("USE table-driven tests!", 1, "a"), said(PR_LINK, 1, "a")], 2, [no])
    assert states(done) == {PR_LINK: "stated"}
    assert len(done.refused) == 1
    assert done.unresolved == [no]


def test_a_paraphrase_of_a_rejected_rule_waits_as_a_candidate_that_says_so() -> None:
    target = last(folded([said(TABLES, 0, "a")], 0))[TABLES]
    no = review(1, "reject", 1, lesson_id=target.lesson_id, value_key=target.value_key)
    done = folded(
        [said(TABLES, 0, "a"), said("Table-driven tests, please use them.", 2, "b")], 2, [no]
    )
    row = last(done)["Table-driven tests, please use them."]
    assert (row.state, row.reason) == (
        State.CANDIDATE,
        f"near the rejected lesson {target.lesson_id}",
    )


def test_a_retired_lesson_comes_back_only_when_the_person_says_it_anew() -> None:
    first = said(TABLES, 0, "a")
    lesson = last(folded([first], 0))[TABLES]
    retire = review(1, "retire", 3, lesson_id=lesson.lesson_id)
    reread = said(TABLES, 0, "b", name="copy")
    late = (day_of(4), reread[1])  # an old session that is read only now
    assert states(folded([first, late], 4, [retire])) == {TABLES: "retired"}
    assert states(folded([first, said(TABLES, 5, "c")], 5, [retire])) == {TABLES: "corroborated"}


def test_an_edit_keeps_the_persons_text_over_later_sources() -> None:
    lesson = last(folded([said(TABLES, 0, "a")], 0))[TABLES]
    edit = review(1, "edit", 1, lesson_id=lesson.lesson_id, text="Use table-driven tests in Go.")
    done = folded([said(TABLES, 0, "a"), said(TABLES, 4, "b")], 4, [edit])
    assert states(done) == {"Use table-driven tests in Go.": "approved"}


def test_an_entry_of_another_project_changes_nothing_here() -> None:
    lesson = last(folded([said(TABLES, 0, "a")], 0))[TABLES]
    fields: dict[str, Any] = {"lesson_id": "x", "value_key": lesson.value_key}
    elsewhere = review(1, "reject", 1, scope="other-11111111", **fields)
    assert states(folded([said(TABLES, 0, "a")], 1, [elsewhere])) == {TABLES: "stated"}
    here = review(1, "reject", 1, scope=making.SCOPE, **fields)
    assert states(folded([said(TABLES, 0, "a")], 1, [here])) == {TABLES: "rejected"}


def test_an_agents_review_entry_decides_nothing() -> None:
    lesson = last(folded([said(TABLES, 0, "a")], 0))[TABLES]
    forged = review(1, "pin", 1, lesson_id=lesson.lesson_id, actor="agent", channel="mcp")
    assert states(folded([said(TABLES, 0, "a")], 1, [forged])) == {TABLES: "stated"}
    own = review(1, "pin", 1, lesson_id=lesson.lesson_id)
    assert states(folded([said(TABLES, 0, "a")], 1, [own])) == {TABLES: "pinned"}


def test_a_family_that_was_shown_an_error_lesson_does_not_corroborate_it() -> None:
    rows = [failed(MISSING, 0, "a", name="x"), failed(MISSING, 0, "b", name="y")]
    made = last(folded(rows, 0))[MISSING]
    assert made.state == State.CANDIDATE
    recall = {
        "id": "1", "kind": "recall", "recorded_at": day_end(day_of(1)) - 1, "rendered": True,
        "lesson_ids": [made.lesson_id], "family_id": "c",
    }  # fmt: skip
    echo = [*rows, failed(MISSING, 2, "c")]
    assert states(folded(echo, 2, [recall])) == {MISSING: "candidate"}
    assert states(folded(echo, 2)) == {MISSING: "corroborated"}
    assert (
        last(folded(echo, 2, [recall]))[MISSING].strength > last(folded(echo, 2))[MISSING].strength
    )


def test_a_prediction_is_confirmed_by_another_family_or_fails_the_day_after_it_is_due() -> None:
    rows = [said(TABLES, 0, "a"), said(TABLES, 3, "a", name="same"), said(TABLES, 4, "b")]
    done = folded(rows, 4)
    made = done.predictions[0][1]
    assert (made.due_on, made.probability) == (day_of(14), predict.PRIOR_ELSE)
    (day, outcome), *more = done.verifications
    assert (day, outcome.outcome, outcome.by_episode, more) == (
        day_of(4),
        True,
        rows[2][1].episode_id,
        [],
    )
    alone = folded(rows[:1], 30)
    assert [(d, v.outcome) for d, v in alone.verifications] == [(day_of(15), False)]
    assert folded(rows[:1], 14).verifications == []
    assert done.predictions[-1][1].probability > alone.predictions[0][1].probability


@pytest.mark.parametrize("shift", [1, 9, 40])
def test_a_prediction_knows_nothing_of_what_comes_later(shift: int) -> None:
    past = [said(TABLES, 0, "a"), failed(MISSING, 1, "a"), failed(MISSING, 3, "b")]
    future = [failed(MISSING, 6, "c"), said(TABLES, 8, "d"), failed(MISSING, 20, "e")]
    later = [failed(MISSING, 6 + shift, "c"), said("Use pnpm.", 8 + shift, "d")]

    def made(rows: list[Row], through: int) -> list[tuple[str, str, float]]:
        done = folded(rows, 70).predictions
        return [(d, p.lesson_id, p.probability) for d, p in done if d <= day_of(through)]

    assert len(made(past, 5)) >= 2
    assert made(past + future, 5) == made(past + later, 5) == made(past, 5)
    assert made(past + future, 70) != made(past + later, 70), "the control: the future counts later"


SENTENCES = (
    TABLES,
    "Always use table-driven tests.",
    "Never use table-driven tests.",
    "Use pnpm, not npm.",
    "Use npm, not pnpm.",
    "Use pnpm.",
    PR_LINK,
    "Link the pull request in each changelog entry.",
    "Keep the changelog entry short.",
    "Ask before deploying to production.",
    "Deploy to production without asking.",
)
ERRORS = (
    MISSING,
    MISSING.replace("polars", "numpy"),
    "Build error: error TS2304: Cannot find name 'X'",
)


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Row], list[dict[str, Any]]]:
    rows: list[Row] = []
    for number in range(draw(st.integers(1, 14))):
        day, family = draw(st.integers(0, 40)), draw(st.sampled_from("abcd"))
        if draw(st.integers(0, 3)):
            text, standing = draw(st.sampled_from(SENTENCES)), draw(st.booleans())
            row = said(text, day, f"{family}{day // 3}", standing=standing, name=str(number))
        else:
            text = draw(st.sampled_from(ERRORS))
            row = failed(text, day, f"{family}{day // 3}", name=str(number))
        rows.append(row)
        if draw(st.integers(0, 4)) == 0:
            changed = msgspec.structs.replace(row[1], fix="uv sync", standing=True)
            rows.append((day_of(day + draw(st.integers(1, 9))), changed))
    entries: list[dict[str, Any]] = []
    for number in range(draw(st.integers(0, 3))):
        base = draw(st.sampled_from([row for row in rows if row[1].title]))
        fields: dict[str, Any] = {"sources": [base[1].episode_id], "lesson_id": "unknown"}
        action = draw(st.sampled_from(["approve", "pin", "reject", "wrong", "retire", "edit"]))
        if action == "edit":
            fields["text"] = "Edited: " + base[1].title
        entries.append(review(number, action, draw(st.integers(0, 45)), **fields))
    return rows, entries


def written(done: Folded, through: str = "9999") -> list[list[Any]]:
    tables = (done.lessons, done.merges, done.predictions, done.verifications)
    return [[(day, row) for day, row in table if day <= through] for table in tables]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(history=histories(), data=st.data())
def test_the_fold_is_the_same_in_any_order_and_never_looks_ahead(
    history: tuple[list[Row], list[dict[str, Any]]], data: st.DataObject
) -> None:
    rows, entries = history
    whole = folded(rows, 60, entries)
    shuffled = data.draw(st.permutations(rows)), data.draw(st.permutations(entries))
    assert written(folded(shuffled[0], 60, shuffled[1])) == written(whole)
    early = data.draw(st.integers(0, 60))
    assert written(folded(rows, early, entries)) == written(whole, day_of(early))
    for day, row in whole.lessons:
        assert row.valid_from == day_end(day)
        assert row.hash


def test_an_injected_look_ahead_would_be_caught() -> None:
    rows = [said(TABLES, 0, "a"), said(TABLES, 9, "b")]
    peeking = [(day_of(0), episode) for _, episode in rows]  # tomorrow's row on today's day
    assert written(folded(peeking, 0)) != written(folded(rows, 9), day_of(0))


def test_the_bytes_do_not_depend_on_the_hash_seed() -> None:
    script = (
        "import hashlib, msgspec\n"
        "from everest_pipelines_tests.core.sleep.test_fold import SENTENCES, ERRORS\n"
        "from everest_pipelines_tests.core.sleep.making import folded, said, failed\n"
        "rows = [said(t, i % 7, 'abc'[i % 3] + str(i), name=str(i)) for i, t in "
        "enumerate(SENTENCES * 3)]\n"
        "rows += [failed(t, i, 'xyz'[i % 3], name=str(i)) for i, t in enumerate(ERRORS * 3)]\n"
        "d = folded(rows, 40)\n"
        "print(hashlib.sha256(msgspec.json.encode([d.lessons, d.merges, d.predictions, "
        "d.verifications])).hexdigest())"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(seen) == 1


def test_an_episode_without_a_vector_is_an_error_and_not_a_silent_loss() -> None:
    from everest_pipelines.core.sleep.fold import fold

    with pytest.raises(ValueError, match="has no vector"):
        fold(
            [said(TABLES, 0, "a")],
            {},
            scope=making.SCOPE,
            horizon=day_of(0),
            day_end=day_end,
            calibration=making.CALIBRATION,
        )
