from __future__ import annotations

import re
from typing import Any

from everest_pipelines.core.records import State
from everest_pipelines.core.render.morning import (
    Morning,
    MorningLesson,
    MorningMerge,
    MorningReview,
    Predictions,
    RepeatedError,
    morning,
)
from everest_pipelines_tests.core.render.lessons import HOSTILE

LESSON = MorningLesson(
    short_id="3f9c2b7a",
    text="Use pnpm.",
    project="harbor-api-1a2b3c4d",
    state=State.STATED,
    quote="no, use pnpm",
)


def _report(**changes: Any) -> str:
    fields: dict[str, Any] = {
        "day": "2026-03-01",
        "newest_day": "2026-03-01",
        "projects": 2,
        "sessions": 5,
        "turns": 1234,
        "episodes": {"error": 7, "correction": 2},
        "lessons": {"stated": 3},
    }
    return morning(Morning(**{**fields, **changes}))


def test_a_failure_is_in_the_first_line() -> None:
    text = _report(failures=["Day 2026-02-27 is missing. Next: everest night", "Second."])
    assert text.splitlines()[0].startswith("**FAILED: Day 2026-02-27 is missing.")
    assert "- Second." in text
    assert _report().splitlines()[0] == "Everything ran."
    assert "look at: Odd." in _report(warnings=["Odd."]).splitlines()[0]


def test_what_was_learnt_is_quoted() -> None:
    text = _report(learnt=[LESSON], changed=[LESSON])
    assert "## Learnt" in text
    assert "- `3f9c2b7a` `Use pnpm.` (stated, harbor-api-1a2b3c4d, seen 1x)" in text
    assert "said: `no, use pnpm`" in text
    assert "## Nothing was learnt" not in text


def test_a_day_without_lessons_says_what_was_read_and_why_nothing_was_learnt() -> None:
    error = RepeatedError(text="ENOENT: dist", project="web-00000000", times=4, sessions=2)
    text = _report(repeated_errors=[error], next_look="after the next night")
    assert (
        "Read: 5 sessions in 2 projects, 1,234 turns; 9 episodes (7 error, 2 correction)." in text
    )
    assert "## Nothing was learnt" in text
    assert "Why: no matter was stated as a rule" in text
    assert "- 4x in 2 sessions, web-00000000: `ENOENT: dist`" in text
    assert "Look again: after the next night." in text
    assert "no new session" in _report(sessions=0, episodes={})
    assert "Why: The reader failed." in _report(why_nothing="The reader failed.")


def test_at_most_ten_are_for_review_each_with_its_command() -> None:
    review = [
        MorningReview(text=f"Rule {n}", command=f"everest review {n}", why="disputed")
        for n in range(14)
    ]
    text = _report(review=review)
    assert text.count("`everest review ") == 10
    assert "and 4 more" in text


def test_merges_supersessions_disputes_predictions_and_quarantine_are_told() -> None:
    merge = MorningMerge(old_id="aaaa", new_id="bbbb", text="Use pnpm.", why="same words")
    text = _report(
        merged=[merge],
        superseded=[merge],
        disputed=[LESSON],
        predictions=Predictions(made=3, came_true=1, did_not=1, open=4, brier=0.2, base_brier=0.25),
        quarantined={"torn": 2, "not_json": 1},
        quarantine_at="/home/mara/.everest/quarantine",
    )
    for expected in (
        "- `aaaa` into `bbbb` `Use pnpm.` (same words)",
        "- `aaaa` by `bbbb`",
        "## Disputed",
        "3 made, 2 resolved (1 came true, 1 did not), 4 open. Brier 0.200 against 0.250",
        "3 lines could not be read: 2 torn, 1 not_json.",
        "/home/mara/.everest/quarantine",
    ):
        assert expected in text
    assert "Quarantine" not in _report()
    assert "Predictions" not in _report()


def test_an_import_of_old_transcripts_says_so_and_shows_the_last_month() -> None:
    text = _report(newest_day="2025-06-01", newest_age_days=273, strongest=[LESSON])
    assert "The newest record is of 2025-06-01, 273 days before" in text
    assert text.index("old transcripts") < text.index("3f9c2b7a")
    assert "old transcripts" not in _report(strongest=[LESSON])
    assert "No lesson" in _report(newest_age_days=273)


def test_no_text_adds_headings_tags_or_control_characters() -> None:
    plain = _report(learnt=[LESSON], failures=["f"])
    for hostile in HOSTILE:
        bad = MorningLesson(
            short_id="3f9c2b7a",
            text=hostile,
            project="p",
            state=State.STATED,
            quote=hostile + "!",
        )
        text = _report(learnt=[bad], failures=[hostile])
        assert re.findall(r"^#+ .*", text, re.M) == re.findall(r"^#+ .*", plain, re.M)
        assert "<" not in text
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u200b]", text)
