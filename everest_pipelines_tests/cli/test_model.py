"""``everest model`` against a server that speaks Ollama's routes."""

from __future__ import annotations

import json

import pytest

from everest_pipelines.cli.main import main
from everest_pipelines.night.models.choice import Choice, choose, chosen
from everest_pipelines.night.models.table import GIB, memory_of_machine, pick, table
from everest_pipelines.text.home import Home
from everest_pipelines_tests.night.models.bridge import Bridge


@pytest.fixture
def served(tmp_path, monkeypatch):
    everything = {one.name: "d" * 64 for one in table().models}
    with Bridge(pullable=everything) as bridge:
        monkeypatch.setenv("EVEREST_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("EVEREST_OLLAMA_HOST", bridge.host)
        yield Home(tmp_path / "home"), bridge


def asked(capsys, *arguments: str) -> dict:
    assert main(["model", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_a_pick_fits_the_memory_and_prefers_what_is_installed():
    for gib in (1, 2, 4, 8, 16, 64):
        picked = pick(gib * GIB, ())
        sizes = {one.name: one.gib for one in table().models}
        need = sum(sizes[name] for name in (picked.embed, picked.write) if name)
        assert need <= gib * table().share_of_memory
    assert pick(1 * GIB, ()).embed and not pick(1 * GIB, ()).write
    assert pick(64 * GIB, ()).embed == "bge-m3"
    there = pick(64 * GIB, ("all-minilm:latest", "qwen2.5:3b"))
    assert (there.embed, there.write) == ("all-minilm", "qwen2.5:3b")
    assert there.installed == ("all-minilm", "qwen2.5:3b")
    assert pick(2 * GIB, ("qwen2.5:14b",)).write != "qwen2.5:14b"  # it does not fit


def test_a_containers_limit_counts(tmp_path):
    whole = memory_of_machine(tmp_path)
    limit = tmp_path / "sys/fs/cgroup/memory.max"
    limit.parent.mkdir(parents=True)
    limit.write_text("1073741824\n")
    assert memory_of_machine(tmp_path) == GIB < whole
    limit.write_text("max\n")
    assert memory_of_machine(tmp_path) == whole


def test_the_choice_is_pulled_written_and_taken_back(served, capsys):
    home, bridge = served
    body = asked(capsys)
    assert body["embed"].startswith("ollama:") and chosen(home).table == table().date
    assert {one["model"] for one in bridge.requests("pull")} == {
        name.removeprefix("ollama:") for name in (body["embed"], body["write"])
    }
    pulled = len(bridge.requests("pull"))
    assert asked(capsys)["embed"] == body["embed"]
    assert len(bridge.requests("pull")) == pulled  # it is there
    assert asked(capsys, "--none") == {"embed": "hashed", "write": "none", "table": ""}
    assert chosen(home) == Choice()


def test_a_pull_that_fails_leaves_the_old_choice(served, capsys):
    home, bridge = served
    home.ensure()
    choose(home, Choice(embed="wordllama"))
    for fault in ("half", 500, "hang"):
        bridge.hang_seconds = 0.2
        bridge.fail("pull", fault)
        assert main(["model", "--model", "ollama:bge-m3"]) == 7
        said = capsys.readouterr().err
        assert "Pulling bge-m3 failed" in said and "Traceback" not in said
        assert chosen(home) == Choice(embed="wordllama")
    assert main(["model", "--model", "nobody-knows-it"]) == 7
    assert chosen(home) == Choice(embed="wordllama")


def test_models_without_a_server_need_none(served, capsys):
    home, bridge = served
    assert asked(capsys, "--model", "wordllama")["embed"] == "wordllama"
    assert not bridge.asked and chosen(home).embed == "wordllama"


def test_a_server_that_is_away_is_said_and_listing_works(served, capsys, monkeypatch):
    monkeypatch.setenv("EVEREST_OLLAMA_HOST", "http://127.0.0.1:9")
    body = asked(capsys, "--list")
    assert "did not answer" in body["server_error"] and body["embed"] == "hashed"
    assert main(["model"]) == 7


def test_a_space_is_fitted_on_labelled_sentences(served, capsys, tmp_path):
    pytest.importorskip("wordllama")
    themes = tmp_path / "themes.jsonl"
    groups = {
        "pnpm": ["use pnpm for packages", "install packages with pnpm", "packages: pnpm please",
                 "we install with pnpm", "pnpm installs our packages"],
        "deploy": ["ask before a deploy", "do not deploy without asking", "deploys need my okay",
                   "get my okay before you deploy", "never deploy before you asked me"],
    }  # fmt: skip
    lines = [
        json.dumps({"text": text, "theme": theme, "lang": "en"})
        for theme, texts in groups.items()
        for text in texts
    ]
    themes.write_text("\n".join(lines))
    asked(capsys, "--model", "wordllama")
    body = asked(capsys, "--calibrate", str(themes))
    assert body["space"].startswith("wordllama-") and 0.1 < body["cuts"]["rule"]["join"] < 0.95
    themes.write_text(lines[0] + "\nno json\n")
    assert main(["model", "--calibrate", str(themes)]) == 2
    assert "themes.jsonl:2" in capsys.readouterr().err
