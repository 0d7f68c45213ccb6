"""What must hold of the lake at any time is looked for, and a breach of each part is found."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from everest_pipelines.core import trust
from everest_pipelines.core.records import EVERYWHERE, LessonRevision, State
from everest_pipelines.night import invariant, published
from everest_pipelines.recall import overlay
from everest_pipelines_tests.acceptance.memory import Memory

TABLES = "We always write table-driven tests here."
FILES = "Never commit generated files."


def broken(memory: Memory) -> set[str]:
    return {one.part for one in invariant.standing(memory.ws()) if one.wrong}


def test_it_holds_and_says_where_there_is_nothing_to_look_at(memory: Memory) -> None:
    assert {one.looked for one in invariant.standing(memory.ws())} == {0}
    memory.session("alpha", "s1", 0, [TABLES, FILES])
    memory.night(0)
    memory.review(memory.lesson(FILES), "reject", 1)
    memory.night(1)
    found = {one.part: one for one in invariant.standing(memory.ws())}
    assert broken(memory) == set()
    assert found["never rejected"].looked == 1
    assert found["rests on its sources"].looked == 1
    assert found["not hidden"].looked == 0, "not applicable"


BREACHES: list[tuple[str, dict[str, Any]]] = [
    ("in a state that is shown", {"state": State.CANDIDATE}),
    ("approved by a person", {"state": State.APPROVED}),
    ("approved by a person", {"scope": EVERYWHERE}),
    ("rests on its sources", {"scope": "other-0a1b2c3d"}),
    ("rests on its sources", {"source_episode_ids": ("0" * 32,)}),
    ("rests on its sources", {"source_episode_ids": ()}),
]


@pytest.mark.parametrize(("part", "change"), BREACHES)
def test_every_breach_is_found(
    memory: Memory, part: str, change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.session("alpha", "s1", 0, [TABLES, FILES])
    memory.night(0)
    assert broken(memory) == set(), "the control"
    rows = [msgspec.structs.replace(row, **change) for row in memory.lessons()]
    monkeypatch.setattr(published, "lessons", lambda *_: rows)
    assert part in broken(memory)


def test_a_row_that_passed_no_gate_and_what_was_rejected_or_hidden_is_found(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.session("alpha", "s1", 0, [TABLES, FILES])
    memory.night(0)
    row = memory.lesson(TABLES)
    ws = memory.ws()
    kept = ws.history.rows("lessons")

    def unsealed(table: str, through: str | None = None) -> list[Any]:
        rows: list[tuple[str, str, LessonRevision]] = [
            (day, key, msgspec.structs.replace(one, hash="")) for day, key, one in kept
        ]
        return rows if table == "lessons" else list(type(ws.history).rows(ws.history, table))

    monkeypatch.setattr(ws.history, "rows", unsealed)
    parts = {one.part for one in invariant.standing(ws) if one.wrong}
    assert parts == {"passed the gate"}
    memory.review(row, "reject", 1)  # decided, and not published yet
    assert broken(memory) == {"never rejected"}
    overlay.hide(memory.ws().home, row.lesson_id)
    assert broken(memory) == {"never rejected", "not hidden"}
    assert trust.sealed(row) == row
