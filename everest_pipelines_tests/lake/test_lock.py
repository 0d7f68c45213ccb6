"""One works, the others wait or say who does."""

from __future__ import annotations

import contextvars
import os
import time

import pytest

from everest_pipelines.lake.lock import Holder, held, holder
from everest_pipelines.text.errors import BusyError
from everest_pipelines.text.home import Home
from everest_pipelines_tests.lake.processes import kill, start

HOLD = """
import sys, time
from pathlib import Path
from everest_pipelines.lake.lock import held
from everest_pipelines.text.home import Home
with held(Home(Path(sys.argv[1])), "the other night"):
    print("ready", flush=True)
    time.sleep(float(sys.argv[2]))
"""


def test_the_holder_is_known_and_gone_afterwards(home: Home) -> None:
    assert holder(home) is None
    with held(home, "a night"):
        found = holder(home)
        assert found is not None
        assert (found.pid, found.who) == (os.getpid(), "a night")
        assert abs(found.since / 1e6 - time.time()) < 60
    assert holder(home) is None
    assert home.lock.stat().st_mode & 0o777 == 0o600


def test_a_second_one_says_who_holds_it_and_a_dead_one_holds_nothing(home: Home) -> None:
    other = start(HOLD, str(home.root), "60")
    try:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(BusyError, match=rf"the other night \(process {other.pid}\)"):  # noqa: SIM117
            with held(home, "me", wait=False):
                raise AssertionError("both hold it")
    finally:
        kill(other)
    with held(home, "me", wait=False):
        assert holder(home) is not None


def test_waiting_ends_when_the_holder_lets_go(home: Home) -> None:
    other = start(HOLD, str(home.root), "0.5")
    seen: list[Holder | None] = []
    try:
        assert other.stdout is not None
        other.stdout.readline()
        with held(home, "me", on_wait=seen.append):
            found = holder(home)
            assert found is not None
            assert found.pid == os.getpid()
    finally:
        kill(other)
    assert seen
    assert seen[0] is not None
    assert seen[0].who == "the other night"


def test_what_on_wait_raises_ends_the_waiting(home: Home) -> None:
    def enough(_: Holder | None) -> None:
        raise KeyboardInterrupt

    other = start(HOLD, str(home.root), "60")
    try:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(KeyboardInterrupt), held(home, "me", on_wait=enough):
            raise AssertionError("both hold it")
        assert holder(home) is not None
    finally:
        kill(other)


def test_a_block_within_a_block_holds_nothing_more(home: Home) -> None:
    with held(home, "outer"):
        with held(home, "inner", wait=False):
            found = holder(home)
            assert found is not None
            assert found.who == "outer"
        assert holder(home) is not None
    assert holder(home) is None


def test_a_context_that_outlives_the_block_holds_nothing(home: Home) -> None:
    with held(home, "outer"):
        copied = contextvars.copy_context()

    def again() -> Holder | None:
        with held(home, "later", wait=False):
            return holder(home)

    found = copied.run(again)
    assert found is not None
    assert found.who == "later"


def test_an_error_in_the_block_frees_the_lock(home: Home) -> None:
    with pytest.raises(ValueError, match="inside"), held(home, "me"):
        raise ValueError("inside")
    assert holder(home) is None
