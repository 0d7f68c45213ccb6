"""kill -9 at any instant of a night costs nothing: the next night ends as if nothing had been.

``KILLS=30`` kills thirty times instead of six, and half as often at a chosen rename.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from pathlib import Path

import pytest

from everest_pipelines.lake import lock
from everest_pipelines.night.run import run
from everest_pipelines.night.status import Status, status
from everest_pipelines.text.home import Home
from everest_pipelines_tests.night.homes import HORIZON, copy_some, grow, night, rows, workspace
from everest_pipelines_tests.night.one_night import Night
from everest_pipelines_tests.night.whole import assert_whole

KILLS = int(os.environ.get("KILLS", "6"))
TRIES = 5  # until a night dies at its instant
FOLDERS = ("D--oh-my-posh",)


class Trials:
    """One Claude Code folder, and memories over it that are killed in their first or next night."""

    def __init__(self, shared: Path, root: Path) -> None:
        self.root = root
        self.whole = copy_some(shared / "transcripts" / "claude", root / "whole", FOLDERS)
        self.claude = root / "claude"
        grow(self.whole, self.claude)
        self.expected = rows(night(root / "control", self.claude))
        assert self.expected["lessons"], "the control: there is something to compare"

    def home(self, number: int) -> Path:
        """A memory to be killed: every second one has lived through a night before."""
        home = self.root / f"home-{number}"
        if number % 2:
            grow(self.whole, self.claude, 0.6)
            night(home, self.claude)
            grow(self.whole, self.claude)
        return home

    def killed(self, home: Path) -> bool:
        """Check what a killed night left, run the next one; returns whether work was left."""
        place = Home(home)
        before = assert_whole(place)
        ws = workspace(home, self.claude)
        told = status(ws)
        assert told.generation == before
        results, published = run(workspace(home, self.claude), HORIZON)
        worked = published.changed or any(result.changed for result in results)
        assert _is_left(told) or not worked, "status said that all was done"
        assert rows(ws) == self.expected
        assert assert_whole(place) == published.generation
        after = status(ws)
        assert not _is_left(after)
        assert not after.left_behind
        assert lock.holder(place) is None
        assert not list(home.rglob("*.tmp"))
        shutil.rmtree(home)
        return worked


def _is_left(told: Status) -> bool:
    return (
        told.generation_horizon != HORIZON
        or told.unread > 0
        or any(stage.stale or stage.open for stage in told.stages)
    )


@pytest.fixture(scope="module")
def trials(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Trials:
    return Trials(shared, tmp_path_factory.mktemp("kill"))


def test_a_night_that_is_killed_at_a_random_instant_is_made_up_for(trials: Trials) -> None:
    instants = random.Random(11)
    # Homes take turns: a first night is longer than one that finds a generation.
    seconds = [_seconds(trials, number) for number in (0, 1)]
    killed = worked = 0
    for number in range(KILLS):
        after = seconds[number % 2] * (number + instants.random()) / KILLS  # over the night
        for _ in range(TRIES):
            home = trials.home(number)
            working = Night(home, trials.claude)
            time.sleep(after)
            working.kill()
            died = working.join()
            killed += died
            worked += trials.killed(home)
            if died:
                break
            after *= 0.6  # the machine is faster than when the night was timed
    assert killed > KILLS // 2, "the control: nights were killed"
    assert worked


def _seconds(trials: Trials, number: int) -> float:
    """How long a night of this kind takes when nobody kills it."""
    home = trials.home(number)
    timed = Night(home, trials.claude)
    started = time.monotonic()
    timed.changed()
    shutil.rmtree(home)
    return time.monotonic() - started


def test_a_night_that_is_killed_at_any_rename_is_made_up_for(trials: Trials) -> None:
    steps = random.Random(12)
    killed = worked = 0
    kills = max(KILLS // 2, 3)
    most = 2 * _renames(trials)
    for number in range(kills):
        home = trials.home(number)
        low, high = most * number // kills, most * (number + 1) // kills
        killed += Night(home, trials.claude, step=steps.randint(low + 1, high)).join()
        worked += trials.killed(home)
    assert killed > kills // 2, "the control: nights were killed"
    assert worked


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("name", ["current", "everest.duckdb"])
def test_a_night_that_is_killed_at_the_swap_says_that_it_published_nothing(
    trials: Trials, name: str, number: int
) -> None:
    home = trials.home(number)
    killed = Night(home, trials.claude, before=name).join()
    assert killed == (name == "current" or not number), "that link is made once and for all"
    assert trials.killed(home) == killed


def _renames(trials: Trials) -> int:
    """How many renames a first night makes."""
    made = 0
    real = os.replace, os.rename

    def counted(rename):
        def renamed(*args, **keywords):
            nonlocal made
            made += 1
            return rename(*args, **keywords)

        return renamed

    os.replace, os.rename = counted(os.replace), counted(os.rename)
    try:
        night(trials.root / "counted", trials.claude)
    finally:
        os.replace, os.rename = real
    return made


def test_a_night_that_is_killed_again_and_again_ends_the_same(trials: Trials) -> None:
    home = trials.root / "again"
    steps = random.Random(13)
    assert Night(home, trials.claude, step=1).join(), "the control: it was killed"
    for _ in range(KILLS):
        Night(home, trials.claude, step=steps.randint(1, 60)).join()
        assert_whole(Home(home))
    trials.killed(home)
