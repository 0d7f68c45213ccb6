"""Whole nights over the bundled sample with a model server that answers, fails and comes back."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from everest_pipelines.lake.days import Days
from everest_pipelines.night.models import spaces
from everest_pipelines.night.models.choice import Choice, choose
from everest_pipelines.night.models.ollama import Server
from everest_pipelines.night.run import run
from everest_pipelines.night.status import status
from everest_pipelines.night.workspace import Workspace
from everest_pipelines_tests.night.homes import rows, workspace
from everest_pipelines_tests.night.models.bridge import Bridge

SAMPLE = Path(spaces.__file__).parents[2] / "sample"
HORIZON = "2026-07-17"


def memory(home: Path, bridge: Bridge, model: str = "tiny", **variables: str) -> Workspace:
    ws = workspace(home, SAMPLE, EVEREST_EMBED_MODEL=model, **variables)
    ws.model_server = Server(bridge.host, timeout=1.0, tries=2, pause=lambda seconds: None)
    return ws


def night(ws: Workspace, horizon: str = HORIZON):
    results, published = run(ws, horizon)
    assert not [failure for result in results for failure in result.failures]
    return {result.stage: result for result in results}, published


def vector_spaces(ws: Workspace) -> set[str]:
    return {row.space for _, _, row in ws.history.rows("vectors")}


def test_a_night_with_a_real_model_joins_in_its_space(tmp_path, minilm_bridge):
    ws = memory(tmp_path / "home", minilm_bridge, "all-minilm")
    ws.model_server = Server(minilm_bridge.host, timeout=60.0)
    _, published = night(ws)
    assert published.visible
    (space,) = vector_spaces(ws)
    assert space.startswith("ollama-all-minilm-") and spaces.in_use(ws.home).space == space
    assert spaces.calibration_for(ws.home, space).fitted  # the same weights, fitted in process
    assert {len(row.vector) for _, _, row in ws.history.rows("vectors")} == {384}


def test_a_second_night_asks_for_no_vector_and_a_rebuild_needs_no_model(tmp_path, bridge):
    ws = memory(tmp_path / "home", bridge)
    night(ws)
    asked = len(bridge.requests("embed"))
    assert asked
    results, _ = night(memory(tmp_path / "home", bridge))
    assert not results["vectors"].changed
    assert all(body["input"] == ["dimension"] for body in bridge.requests("embed")[asked:])
    again = tmp_path / "again"
    shutil.copytree(tmp_path / "home" / "models", again / "models")
    bridge.digests.clear()  # the server has the model no more
    rebuilt = memory(again, bridge)
    night(rebuilt)
    assert rows(rebuilt) == rows(ws)


def test_a_server_that_is_away_leaves_the_built_in_space_and_a_sentence(tmp_path, bridge):
    bridge.fail("tags", *[500] * 2)
    ws = memory(tmp_path / "home", bridge)
    results, published = night(ws)
    used = spaces.in_use(ws.home)
    assert used.model == "hashed" and used.failures == 1 and "status 500" in used.why
    assert results["vectors"].counts["model_failures"] == 1
    assert vector_spaces(ws) == {used.space} and published.visible
    assert "status 500" in " ".join(status(ws).notes)
    assert "status 500" in (ws.home.current / "morning.md").read_text()
    again = memory(tmp_path / "home", bridge)
    results, _ = night(again)
    assert results["vectors"].counts["model_failures"] == 0
    assert spaces.in_use(ws.home).model == "tiny" and not status(again).notes
    (space,) = vector_spaces(again)
    assert space.startswith("ollama-tiny-")
    assert not status(again).left_behind


@pytest.mark.parametrize("fault", [400, 404, 500, "hang", "torn", "rows", "dimension"])
def test_a_model_that_fails_in_mid_night_costs_the_space_and_nothing_else(tmp_path, bridge, fault):
    bridge.hang_seconds = 1.5
    ws = memory(tmp_path / "home", bridge)
    bridge.fail("embed", None, *[fault] * 30)  # one answer, then none
    _, published = night(ws)
    assert published.visible
    used = spaces.in_use(ws.home)
    assert (used.model, used.failures) == ("hashed", 1) and used.why
    assert vector_spaces(ws) == {used.space}
    assert all(row.state == "closed" for row in Days.load(ws.lake).rows())


def test_the_space_of_yesterday_stays_while_its_texts_are_known(tmp_path, bridge):
    home = tmp_path / "home"
    ws = memory(home, bridge)
    night(ws, "2026-07-10")
    before = spaces.in_use(ws.home).space
    bridge.fail("tags", *[500] * 9)
    again = memory(home, bridge)
    night(again, "2026-07-12")  # vectors of all days were made: no text is missing
    assert spaces.in_use(again.home).space == before and vector_spaces(again) == {before}


def test_vectors_of_two_spaces_never_stand_side_by_side(tmp_path, bridge):
    home = tmp_path / "home"
    seen = []
    for model in ("hashed", "wordllama", "tiny", "hashed"):
        ws = memory(home, bridge, model)
        night(ws)
        (space,) = vector_spaces(ws)
        seen.append(space.split("-")[0])
        assert not status(ws).left_behind
    assert seen == ["hashed", "wordllama", "ollama", "hashed"]
    fresh = memory(tmp_path / "fresh", bridge, "hashed")
    night(fresh)
    assert rows(fresh) == rows(ws)


def test_the_choice_is_obeyed_and_a_variable_wins(tmp_path, bridge):
    ws = workspace(tmp_path / "home", SAMPLE)
    choose(ws.home, Choice(embed="wordllama"))
    assert spaces.asked_for(ws.home, ws.settings) == "wordllama"
    ws = workspace(tmp_path / "home", SAMPLE, EVEREST_EMBED_MODEL="hashed")
    assert spaces.asked_for(ws.home, ws.settings) == "hashed"


def test_a_changed_configuration_makes_vectors_stale_without_asking_a_model(tmp_path, bridge):
    ws = memory(tmp_path / "home", bridge, "hashed")
    night(ws)
    changed = memory(tmp_path / "home", bridge, "tiny")
    stages = {stage.stage: stage for stage in status(changed).stages}
    assert stages["vectors"].stale and not bridge.asked
