"""The detectors over the real files: properties for every episode, floors against the labels."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from everest_pipelines.core.detect import detect
from everest_pipelines.core.records import EpisodeKind
from everest_pipelines_tests.core.detect.make import day_of

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_detect", BENCHMARKS / "detect.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_quote_is_verbatim_and_every_id_unique(shared: Path, bench: ModuleType) -> None:
    corpus = bench.read_corpus(shared / "transcripts")
    ids: set[str] = set()
    kinds: set[EpisodeKind] = set()
    for scene in corpus.scenes:
        for episode in detect(scene.turns, day_of=day_of):
            assert episode.episode_id not in ids
            ids.add(episode.episode_id)
            kinds.add(episode.kind)
            text = scene.by_id[episode.turn_id].text
            assert text[episode.quote_from : episode.quote_to] == episode.quote
            assert episode.title and "\n" not in episode.title
            assert episode.settled_at >= episode.occurred_at
    assert kinds == set(EpisodeKind)


def test_the_floors_against_the_labels_hold(
    shared: Path, bench: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    data = shared / "transcripts"
    gold, standing = str(data / "gold.jsonl"), str(data / "standing.jsonl")
    bench.main(["--transcripts", str(data), "--gold", gold, "--standing", standing, "--json"])
    kinds = json.loads(capsys.readouterr().out.splitlines()[-1])["kinds"]
    for kind, precision, recall in (
        ("tool_error", 0.98, 0.98),
        ("refusal", 0.98, 0.98),
        ("interruption", 0.98, 0.96),
        ("surprise", 0.9, 0.7),
    ):
        assert kinds[kind]["precision"] >= precision, kind
        assert kinds[kind]["recall"] >= recall, kind
    assert kinds["tool_error"]["class_accuracy"] >= 0.93
    assert kinds["refusal"]["carries_correction"]["f1"] >= 0.9
    # in sample: only a guard against breakage, the honest figures are those of --cv
    assert kinds["correction"]["f1"] >= 0.75
    assert kinds["standing"]["sure"]["precision"] >= 0.85
