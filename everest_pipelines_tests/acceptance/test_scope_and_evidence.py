"""Acceptance tests 1 to 6: scope and evidence. Each asserts an absence beside its control."""

from __future__ import annotations

import shutil

import pytest

from everest_pipelines.core.records import EVERYWHERE, State
from everest_pipelines.recall.project import project_of
from everest_pipelines.recall.snapshot import open_snapshot
from everest_pipelines_tests.acceptance.memory import Memory

PNPM = "From now on always use pnpm in this repo, not npm."
TABLES = "We always write table-driven tests here."
FLY = "In this repo we deploy with fly, never with docker."


def test_01_scope_cross_tenant_absent(memory: Memory) -> None:
    memory.session("alpha", "s1", 0, [PNPM])
    memory.session("beta", "s2", 0, [FLY])
    memory.night(0)
    query = "should I use pnpm or npm in this repo"
    theirs, own = memory.surfaces("beta", query), memory.surfaces("alpha", query)
    controls = 0
    for surface, text in own.items():
        assert PNPM in text, f"the control: {surface} shows it in its own project"
        assert PNPM not in theirs[surface], surface
        controls += 1
    assert controls == 3
    assert "deploy with fly" in "".join(memory.surfaces("beta", "deploy").values())


@pytest.mark.parametrize("asked", ["", "*", "%", "../beta", "srv-bet", "everywhere", "' OR 1"])
def test_02_scope_caller_cannot_widen(memory: Memory, asked: str) -> None:
    memory.session("alpha", "s1", 0, [PNPM])
    memory.session("beta", "s2", 0, [FLY])
    memory.night(0)
    assert FLY not in memory.recall(asked or "-", "deploy with fly or docker")
    assert FLY in memory.recall("beta", "deploy with fly or docker"), "the control: its own call"
    memory.note(asked, "Deploy only from beta's laptop.", 1)  # a write under the claimed key
    memory.night(1)
    assert "laptop" not in memory.files("beta") + "\n".join(memory.recall("beta", "deploy laptop"))
    assert PNPM in memory.recall("alpha", "pnpm"), "the control: its own call works after it"


def test_02_scope_caller_cannot_widen_by_its_directory(memory: Memory) -> None:
    memory.session("alpha", "s1", 0, [PNPM])
    memory.session("beta", "s2", 0, [FLY])
    memory.night(0)
    with open_snapshot(memory.ws().home) as snapshot:
        for outside in ("/srv", "/", "/srv/alphabet", "/srv/alpha/../gamma"):
            assert project_of(snapshot, outside) is None, outside
        own = project_of(snapshot, memory.path("alpha") + "/src")
    assert own == memory.key("alpha"), "the control: a directory of its own"


def test_03_scope_background_respects_boundary(memory: Memory) -> None:
    for project in ("alpha", "beta"):  # the same words, so that vectors, cache and cuts are shared
        memory.session(project, f"{project}-1", 0, [PNPM, TABLES])
        memory.session(project, f"{project}-2", 2, [PNPM])
    memory.night(2)
    project_of_episode = {row.episode_id: key for _, key, row in memory.ws().lake.read("episodes")}
    scopes = {memory.key("alpha"), memory.key("beta")}
    rows = memory.revisions()
    assert {row.scope for row in rows} == scopes, "nothing is shared that nobody approved"
    for row in rows:
        assert {project_of_episode[one] for one in row.source_episode_ids} == {row.scope}
    for table in ("merges", "predictions", "verifications"):
        for _, key, _ in memory.ws().lake.read(table):
            assert key in scopes
    memory.session("gamma", "g1", 2, ["Go on."])
    raised = memory.lessons("alpha")[0]
    memory.review(raised, "approve", 3, everywhere=True)
    memory.today = 4
    memory.publish(2)  # at once; then by the fold
    for _ in range(2):
        shared = memory.lessons_of(EVERYWHERE)
        assert [row.state for row in shared] == [State.APPROVED], "the control: by the person"
        assert raised.text in memory.recall("gamma", raised.text)
        memory.night(3)
    assert PNPM in memory.recall("alpha", "pnpm"), "the control: its own is returned"


def test_04_evidence_claim_resolves_to_source(memory: Memory) -> None:
    memory.session("alpha", "s1", 0, [PNPM, "Please add a test for the parser.", TABLES])
    memory.session("beta", "s2", 0, [FLY])
    memory.note("beta", "Keep the changelog in English.", 0)
    memory.night(0)
    lake = memory.ws().lake
    turns = {row.turn_id: row for _, _, row in lake.read("transcripts")}
    episodes = {row.episode_id: row for _, _, row in lake.read("episodes")}
    shown = memory.lessons()
    followed = 0
    for lesson in shown:
        for source in lesson.source_episode_ids:
            episode = episodes[source]
            if (
                episode.source_path == "ledger"
            ):  # said to the memory itself: the ledger is its source
                assert episode.quote == "Keep the changelog in English."
            else:
                said = turns[episode.turn_id].text
                assert said[episode.quote_from : episode.quote_to] == episode.quote
                followed += 1
    assert followed >= 3, "the control: extracted lessons were shown"


def test_06_evidence_rebuild_from_retained(memory: Memory) -> None:
    token = "zqx7f3"
    memory.session("alpha", "s1", 0, [f"We always name fixtures {token} in this repo."])
    memory.night(0)
    query = f"how do we name fixtures {token}"
    before = memory.surfaces("alpha", query)
    assert all(token in text for text in before.values()), "the control"
    shutil.rmtree(memory.claude / "projects" / "-srv-alpha" / "memory")
    (memory.claude / "projects" / "-srv-alpha" / "s1.jsonl").unlink()  # agents delete them
    memory.rebuild(0)
    after = memory.surfaces("alpha", query)
    assert all(token in text for text in after.values())
    assert after == before
