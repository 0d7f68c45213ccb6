"""A gate holds a project at its last good lessons until the owner accepts it, with a reason."""

from __future__ import annotations

import pytest

from everest_pipelines.night import gates
from everest_pipelines.night.publish import publish
from everest_pipelines.text import ledger
from everest_pipelines.text.errors import CallerError
from everest_pipelines_tests.acceptance.memory import Memory, day_of

TABLES = "We always write table-driven tests here."
FLY = "In this repo we deploy with fly, never with docker."


def test_a_held_project_keeps_its_lessons_until_the_gate_is_accepted_with_who_and_why(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.session("alpha", "s1", 0, [TABLES])
    memory.session("beta", "b1", 0, [FLY])
    memory.night(0)
    monkeypatch.setattr(gates, "REMOVED_LEAST", 1)  # a small memory: one lesson is a lot
    later = day_of(300)  # all has faded by then
    memory.today = 301
    ws = memory.ws()
    memory.session("beta", "b2", 299, ["In this repo we squash every branch before a merge."])
    from everest_pipelines.night.run import run

    _, held = run(ws, later)
    assert {(one.gate, one.project) for one in held.blocked} == {
        ("removal", memory.key("alpha")),
        ("removal", memory.key("beta")),
    }
    assert {row.text for row in memory.lessons()} == {TABLES, FLY}
    again = publish(memory.ws(), later)
    assert len(again.blocked) == 2, "it stays held"
    with pytest.raises(CallerError, match="cannot be accepted"):
        publish(memory.ws(), later, ["forbidden"], why="let me")
    assert ledger.read(ws.home, ("accept",)).entries == []
    done = publish(memory.ws(), later, ["removal"], why="they are old", by="person")
    assert done.blocked == []
    assert {row.text for row in memory.lessons()} == {
        "In this repo we squash every branch before a merge."
    }
    told = ledger.read(ws.home, ("accept",)).entries
    assert [(one["gate"], one["why"], one["by"]) for one in told] == [
        ("removal", "they are old", "person")
    ]
