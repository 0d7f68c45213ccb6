"""What the sensors decide, without Dagster."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everest_pipelines.night import sensing
from everest_pipelines.night.look import Look, PendingFile
from everest_pipelines.night.sensing import Attempt, Decision, Outcome

MINUTE = 60_000_000
DAY = 24 * 60 * MINUTE
NOW = 20_000 * DAY


def day_of(at: int) -> str:
    return f"day-{at // DAY:06}"


def pending(path: str = "a.jsonl", size: int = 10, at: int = NOW - DAY) -> PendingFile:
    return PendingFile(path, "claude-code", size, at * 1000)


def read(
    *files: PendingFile,
    stale: tuple[tuple[str, str], ...] = (),
    attempts: tuple[Attempt, ...] = (),
    busy: str = "",
    now: int = NOW,
) -> Decision:
    return sensing.transcripts(
        Look(pending=list(files), seen=7, quiet=2),
        stale,
        attempts=lambda _: attempts,
        busy=busy,
        day_of=day_of,
        now=now,
    )


def fold(
    *stale: tuple[str, str],
    state: str = "s",
    published: str = "day-2",
    attempts: tuple[Attempt, ...] = (),
    busy: str = "",
) -> Decision:
    return sensing.night(
        stale,
        horizon="day-2",
        state=state,
        published=published,
        attempts=lambda _: attempts,
        busy=busy,
        now=NOW,
    )


def test_nothing_new_is_skipped_with_counts_and_something_new_is_asked_for():
    skipped = read()
    assert not skipped.ask
    assert "0 of 7 files" in skipped.why and "2 still being written" in skipped.why
    asked = read(pending())
    assert asked.ask and asked.attempt == 1
    assert (asked.first, asked.last) == (day_of(NOW - DAY), day_of(NOW))


def test_a_stage_that_failed_after_ingest_is_asked_for_though_no_file_is_pending():
    asked = read(stale=(("episodes", "day-000003"),))
    assert asked.ask and asked.first == "day-000003"


def test_the_digest_names_what_is_pending_and_not_its_order():
    one, two = pending("a"), pending("b")
    assert read(one, two).digest == read(two, one).digest
    assert read(one).digest != read(pending("a", size=11)).digest


def test_a_file_that_grew_during_the_run_is_asked_for_under_another_key():
    before, after = read(pending(size=10)), read(pending(size=20))
    assert after.ask and before.run_key != after.run_key


def test_a_failed_run_is_asked_for_again_after_a_growing_pause_under_a_new_key():
    failed = (Attempt(Outcome.FAILED, NOW),)
    early = read(pending(), attempts=failed, now=NOW + sensing.FIRST_PAUSE - 1)
    late = read(pending(), attempts=failed, now=NOW + sensing.FIRST_PAUSE)
    assert not early.ask and "attempt 1 failed" in early.why
    assert late.ask and late.attempt == 2 and late.run_key.endswith(":2")


@given(st.integers(1, 60))
def test_the_pause_grows_and_is_never_longer_than_its_bound(failures: int):
    pause = sensing.pause_after(failures)
    assert sensing.FIRST_PAUSE <= pause <= sensing.LONGEST_PAUSE
    assert pause <= sensing.pause_after(failures + 1)


@pytest.mark.parametrize("decide", [lambda **more: read(pending(), **more), fold])
def test_nothing_is_asked_for_while_a_run_is_at_work(decide):
    stale = {} if decide is not fold else {"published": "day-1"}
    assert decide(**stale).ask
    assert not decide(attempts=(Attempt(Outcome.RUNNING),), **stale).ask
    assert "the run night 1234 is at work" in decide(busy="the run night 1234", **stale).why


def test_a_night_is_asked_for_when_a_day_has_closed_or_closed_days_are_stale():
    assert not fold().ask
    assert fold(published="day-1").ask
    assert fold(("sleep", "day-1")).first == "day-1"
    assert not fold(published="", state="").ask


def test_a_red_gate_is_not_tried_again_without_new_input():
    blocked = (Attempt(Outcome.BLOCKED, NOW - DAY),)
    again = fold(published="day-1", attempts=blocked)
    assert not again.ask and "a gate is red" in again.why
    assert fold(published="day-1", state="other").digest != again.digest
    failed = (Attempt(Outcome.FAILED, NOW - DAY),)
    assert fold(published="day-1", attempts=failed).ask


def test_a_decision_is_published_once():
    def decide(newest: str, published: str, *attempts: Attempt) -> Decision:
        return sensing.decisions(
            newest,
            published=published,
            attempts=lambda _: attempts,
            busy="",
            horizon="day-2",
            now=NOW,
        )

    assert not decide("", "").ask
    assert decide("02", "01").ask
    assert not decide("02", "02").ask
    assert not decide("02", "01", Attempt(Outcome.DONE, NOW - DAY)).ask


def test_missing_keys_keep_the_order_of_their_minting():
    assert sensing.missing_keys(["everywhere", "b", "a", "b"], ["b"]) == ["everywhere", "a"]
