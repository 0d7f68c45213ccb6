"""Only the person decides, at a terminal of their own, and what they decide holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from everest_pipelines.cli.person import AGENT_VARIABLES
from everest_pipelines.recall import overlay
from everest_pipelines.text import ledger
from everest_pipelines_tests.cli.conftest import Everest, Made
from everest_pipelines_tests.cli.typing_person import Person

Sits = Callable[..., Person]


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sits]:
    for name in AGENT_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    sitting: list[Person] = []

    def sit(*arguments: str, **environ: str) -> Person:
        sitting.append(Person(*arguments, environ=environ))
        return sitting[-1]

    yield sit
    for one in sitting:
        one.leaves()


def shown(made: Made) -> dict[str, dict[str, Any]]:
    """What is published, by lesson id."""
    lines = (made.home.current / "lessons.jsonl").read_bytes().splitlines()
    return {one["id"]: one for one in map(json.loads, lines)}


def reviews(made: Made) -> list[dict[str, Any]]:
    return ledger.read(made.home, ("review",)).entries


def test_the_person_decides_with_one_key_and_a_challenge_and_the_publish_shows_it(
    copied: Made, person: Sits
) -> None:
    one, two, three, *_ = [x for x in shown(copied).values() if x["state"] == "stated"]
    for lesson, key, text in ((one, "a", ""), (two, "e", "Say it my way."), (three, "p", "")):
        at = person("review", lesson["short_id"])
        at.sees("1 of 1 ")
        at.sees("Evidence:")
        at.decides(key, text=text)
        at.sees("1 decided")
        assert at.ends() == 0
    after = shown(copied)
    assert after[one["id"]]["state"] == "approved"
    assert (after[two["id"]]["state"], after[two["id"]]["text"]) == ("approved", "Say it my way.")
    assert after[three["id"]]["state"] == "pinned"
    assert [(e["action"], e["actor"], e["channel"]) for e in reviews(copied)] == [
        ("approve", "person", "terminal"),
        ("edit", "person", "terminal"),
        ("pin", "person", "terminal"),
    ]
    assert all(e["sources"] and e["value_key"] and e["scope"] for e in reviews(copied))


def test_a_wrong_challenge_decides_nothing_and_a_rejection_stays_through_a_rebuild(
    copied: Made, person: Sits, everest: Everest
) -> None:
    before = shown(copied)
    lesson = next(x for x in before.values() if x["state"] == "stated")
    at = person("review", lesson["short_id"])
    at.decides("r", code="no")
    at.sees("Not done")
    assert reviews(copied) == []
    at.types("r")
    at.types(at.sees(r"type ([a-z]+) and Enter: ")[1] + "\n")
    at.sees("1 decided")
    assert at.ends() == 0
    assert shown(copied).keys() == before.keys() - {lesson["id"]}
    assert everest("rebuild", "--yes")[0] == 0
    assert shown(copied).keys() == before.keys() - {lesson["id"]}
    back = person("review", lesson["short_id"])  # the person alone can raise it again
    back.decides("a")
    back.sees("1 decided")
    assert back.ends() == 0
    assert shown(copied)[lesson["id"]]["state"] == "approved"


def test_the_queue_goes_on_where_it_was_left(copied: Made, person: Sits, everest: Everest) -> None:
    waiting = json.loads(everest("review", "--json")[1])["waiting"]
    assert len(waiting) > 2
    at = person("review")
    at.sees(f"1 of {len(waiting)} ")
    at.sees(waiting[0]["short_id"])
    at.sees(r"\[q\]uit ")
    at.types("s")
    at.sees(f"2 of {len(waiting)} ")
    at.decides("a")
    at.sees(f"3 of {len(waiting)} ")
    at.sees(r"\[q\]uit ")
    at.types("q")
    at.sees("1 decided")
    assert at.ends() == 0
    left = json.loads(everest("review", "--json")[1])["waiting"]
    assert [x["id"] for x in left] == [x["id"] for x in waiting if x["id"] != waiting[1]["id"]]


@pytest.mark.parametrize("variable", AGENT_VARIABLES)
def test_every_mark_of_an_agent_is_seen(
    variable: str, copied: Made, everest: Everest, monkeypatch: pytest.MonkeyPatch
) -> None:
    from everest_pipelines.cli.person import terminal
    from everest_pipelines.text.errors import CallerError

    with pytest.raises(CallerError, match=variable), terminal({variable: "1"}):
        pass


def test_an_agent_at_a_terminal_and_a_pipe_may_only_list(copied: Made, person: Sits) -> None:
    agent = person("review", CLAUDECODE="1")
    agent.sees("Deciding needs a terminal")
    assert agent.ends() == 0
    command = "import sys; from everest_pipelines.cli.main import main; sys.exit(main(['review']))"
    piped = subprocess.run(
        [sys.executable, "-c", command],
        input="aaaa\nrrrr\n",
        capture_output=True,
        text=True,
        env=dict(os.environ),
        start_new_session=True,
    )
    assert piped.returncode == 0
    assert len(piped.stdout.splitlines()) > 2, "the control: it lists"
    assert reviews(copied) == []


def test_what_was_called_wrong_is_confirmed_or_taken_back_in_review(
    copied: Made, person: Sits, everest: Everest
) -> None:
    before = shown(copied)
    one, two, *_ = [x for x in before.values() if x["state"] == "stated"]
    for lesson in (one, two):
        assert everest("wrong", lesson["short_id"])[0] == 0
    assert shown(copied).keys() == before.keys() - {one["id"], two["id"]}
    for lesson, key in ((one, "a"), (two, "r")):
        at = person("review", lesson["short_id"])
        at.sees("hidden: wrong")
        at.decides(key)
        at.sees("1 decided")
        assert at.ends() == 0
    assert shown(copied).keys() == before.keys() - {two["id"]}
    assert not {one["id"]} & overlay.hidden(copied.home)
