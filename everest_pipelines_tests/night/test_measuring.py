"""Measures of a real night on the bundled sample, with hook decisions written as hooks do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import everest_pipelines
from everest_pipelines.cli.main import main
from everest_pipelines.core.measure.rates import Matters, accuracy
from everest_pipelines.core.records import Verification
from everest_pipelines.night.measuring import measure
from everest_pipelines.text import ledger
from everest_pipelines_tests.night.homes import night, workspace

SAMPLE = Path(everest_pipelines.__file__).parent / "sample"
SPAN = {"since": "2025-01-01", "until": "2026-05-11"}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    place = tmp_path_factory.mktemp("measured") / "home"
    night(place, SAMPLE, "2026-05-11")
    return place


def test_repeats_are_episodes_of_lessons_that_were_visible_before(home):
    ws = workspace(home, SAMPLE)
    found = measure(ws, **SPAN)
    assert found.repeat_yourself.of > 3 and found.repeat_yourself.hits
    assert found.repeat_yourself.of == sum(
        one.of for one in found.by_day if one.measure == "repeat_yourself"
    )
    revisions = [row for _, _, row in ws.history.rows("lessons")]
    matters = Matters(revisions, [row for _, _, row in ws.history.rows("merges")])
    first = min(revisions, key=lambda row: row.valid_from)
    assert matters.held_before(first.source_episode_ids[0], first.valid_from + 10**15)
    assert not matters.held_before(first.source_episode_ids[0], 0)


def test_a_project_and_a_span_are_parts_of_the_whole(home):
    ws = workspace(home, SAMPLE)
    whole = measure(ws, **SPAN)
    keys = {one.project for one in whole.by_day}
    parts = [measure(ws, **SPAN, project=key) for key in keys]
    assert sum(part.repeat_yourself.of for part in parts) == whole.repeat_yourself.of
    assert sum(part.predictions.resolved for part in parts) == whole.predictions.resolved
    none = measure(ws, since="2020-01-01", until="2020-01-02")
    assert none.repeat_yourself.of == 0 and none.repeat_yourself.value is None


def test_arms_are_read_from_the_hooks_decisions(home):
    ws = workspace(home, SAMPLE)
    lesson = next(row for _, _, row in ws.history.rows("lessons") if row.state == "stated")
    at = ws.calendar.day_end("2026-05-10") + 1
    for number, reason in enumerate(("shown", "held_out", "nothing_fits")):
        ledger.append(
            ws.home,
            "recall",
            {
                "event": "prompt",
                "reason": reason,
                "lesson_ids": [] if reason == "nothing_fits" else [lesson.lesson_id],
                "rendered": reason == "shown",
                "session_id": f"s{number}",
                "family_id": f"s{number}",
            },
            now=at + number,
        )
    found = measure(ws, **SPAN)
    assert found.opportunities == {"held_out": 1, "shown": 1}
    assert found.decisions["nothing_fits"] == 1
    assert [(one.lesson_id, one.families) for one in found.injected] == [(lesson.lesson_id, 1)]
    assert found.forbidden_hits == 0 and found.lessons


def test_brier_is_compared_with_a_base_rate_that_could_have_been_known():
    def row(number: int, probability: float, outcome: bool) -> Verification:
        return Verification(
            prediction_id=f"{number:03d}",
            lesson_id="l",
            outcome=outcome,
            by_episode="e" if outcome else "",
            resolved_on=f"2026-01-{number + 1:02d}",
            probability=probability,
        )

    good = accuracy([row(n, 0.9 if n % 2 else 0.1, bool(n % 2)) for n in range(20)])
    assert good.brier == 0.01 < good.base_brier
    bad = accuracy([row(n, 0.1 if n % 2 else 0.9, bool(n % 2)) for n in range(20)])
    assert bad.brier > bad.base_brier
    assert accuracy([]).brier is None
    first = accuracy([row(0, 0.5, True)])
    assert first.base_brier == 0.25  # nothing was known: a half


def test_the_command_prints_shares_with_intervals_and_json(home, monkeypatch, capsys):
    monkeypatch.setenv("EVEREST_HOME", str(home))
    monkeypatch.setenv("EVEREST_CLAUDE_DIR", str(SAMPLE))
    assert main(["measure", "--since", "2025-01-01", "--until", "2026-05-11"]) == 0
    said = capsys.readouterr().out
    assert "said again" in said and "95 %" in said and "shown minus held out" in said
    assert main(["measure", "--since", "2025-01-01", "--until", "2026-05-11", "--json"]) == 0
    body = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert body["repeat_yourself"]["of"] and body["hold_out"]["claim"]
    assert main(["measure", "--project", "nobody"]) == 2
    assert main(["measure", "--since", "yesterday"]) == 2
