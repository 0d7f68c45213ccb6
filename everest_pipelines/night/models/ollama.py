"""Embeddings and sentences from a model server that speaks Ollama's routes.

The client is the ``ollama`` library; this module adds what a night needs on top: batches, retries
with a cap, and one kind of error. The server is on the loopback address unless the owner named
another; proxies of the environment are not used.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from everest_pipelines.night.models.tags import space_tag
from everest_pipelines.text.errors import MissingError, ModelError

Matrix = NDArray[np.float32]
Answer = TypeVar("Answer")

INSTALL = "pip install 'everest-pipelines[ollama]'"
TIMEOUT = 60.0  # seconds for one answer; a cold 7B model loads in some 20
BATCH = 32  # texts a request
TRIES = 3
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0  # seconds between tries, doubled each time
_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
SHORTEST = 200  # characters; a text that the server still refuses at this length is given up


class Server:
    """One model server. ``pause`` waits so many seconds: given by tests."""

    def __init__(
        self,
        host: str,
        *,
        timeout: float = TIMEOUT,
        tries: int = TRIES,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.host = host
        self._timeout = timeout
        self._tries = tries
        self._pause = pause

    def models(self) -> dict[str, str]:
        """Installed models: name with its tag -> digest. Raises ModelError."""
        found = self.ask(lambda client: client.list())
        return {str(one.model): str(one.digest) for one in found.models if one.model}

    def digest_of(self, model: str) -> tuple[str, str]:
        """(full name, digest) of an installed model; a name without a tag means ``:latest``."""
        there = self.models()
        for name in (model, f"{model}:latest"):
            if name in there:
                return name, there[name]
        raise ModelError(f"The model {model} is not at {self.host}.", "everest model")

    def pull(self, model: str) -> Iterator[tuple[str, int, int]]:
        """(what it does, bytes done, bytes in all) until the model is there. Raises ModelError."""
        import httpx
        import ollama

        try:
            for step in self._client.pull(model, stream=True):
                error = getattr(step, "error", None)
                if error:
                    raise ModelError(f"Pulling {model} failed: {error}.", "everest model")
                yield str(step.status or ""), int(step.completed or 0), int(step.total or 0)
        except (httpx.HTTPError, ollama.ResponseError, ConnectionError) as error:
            raise ModelError(f"Pulling {model} failed: {_said(error)}.", "everest model") from None

    def ask(self, question: Callable[[Any], Answer], *, tries: int | None = None) -> Answer:
        """One question, asked again while the server is busy or away. Raises ModelError.

        An answer that blames the question (4xx) is not asked for again: ``RefusedError``.
        """
        import httpx
        import ollama

        pause, reason = FIRST_PAUSE, ""
        most = self._tries if tries is None else tries
        for attempt in range(1, most + 1):
            try:
                return question(self._client)
            except ollama.ResponseError as error:
                if error.status_code not in _BUSY:
                    raise RefusedError(self.host, error.status_code, _said(error)) from None
                reason = f"status {error.status_code}"
            except (httpx.HTTPError, ConnectionError) as error:
                reason = _said(error)
            except ValueError as error:  # no JSON, or JSON of another shape
                reason = f"no answer of the known shape ({type(error).__name__})"
            if attempt < most:
                self._pause(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
        raise ModelError(f"{self.host} did not answer: {reason}.", "everest model --list")

    @cached_property
    def _client(self) -> Any:
        try:
            import ollama
        except ImportError:
            raise MissingError("The library ollama is not installed.", INSTALL) from None
        return ollama.Client(host=self.host, timeout=self._timeout, trust_env=False)


class RefusedError(ModelError):
    """The server answered that the question itself is wrong (4xx)."""

    def __init__(self, host: str, status: int, what: str) -> None:
        super().__init__(f"{host} refused ({status}): {what}.", "everest model --list")
        self.status = status


def _said(error: Exception) -> str:
    """The kind of an error and its first words; never what was sent."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words[:120]}" if words else type(error).__name__


class OllamaEmbedder:
    """Vectors of one model. ``prefix`` is put before every text and is part of the space.

    Raises ModelError from ``space`` and ``embed``: the server is away, the model is not there, an
    answer has another dimension or number of rows, or numbers that are none.
    """

    kind = "ollama"

    def __init__(self, model: str, server: Server, *, prefix: str = "") -> None:
        self.model = model
        self._server = server
        self._prefix = prefix

    @cached_property
    def _known(self) -> tuple[str, str, int]:
        """(full name, digest, dimension of the first reply)."""
        name, content = self._server.digest_of(self.model)
        return name, content, self._ask(["dimension"]).shape[1]

    @property
    def space(self) -> str:
        """The tag: the server's digest of the model and the dimension that it answers with."""
        name, content, dimension = self._known
        name = name.removesuffix(":latest")
        return space_tag("ollama", name, content=content, dimension=dimension, prefix=self._prefix)

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One unit row a text; equal texts are sent once, in batches."""
        dimension = self._known[2]
        made: dict[str, Matrix] = {}
        distinct = sorted({text for text in texts if text.strip()})
        for start in range(0, len(distinct), BATCH):
            batch = distinct[start : start + BATCH]
            made.update(zip(batch, self._vectors(batch), strict=True))
        rows = np.zeros((len(texts), dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            if text in made:
                if made[text].shape != (dimension,):
                    raise ModelError(f"{self.model} changed its dimension.", "everest model")
                rows[row] = made[text]
        return rows

    def _vectors(self, texts: list[str]) -> Matrix:
        """As ``_ask``; a batch that is refused is asked one by one, a long text by its beginning.

        Servers refuse a whole batch for one text that is over their context.
        """
        try:
            return self._ask([self._prefix + text for text in texts])
        except RefusedError as error:
            if error.status == 404:
                raise
            if len(texts) > 1:
                return np.concatenate([self._vectors([text]) for text in texts])
            if len(texts[0]) <= SHORTEST:
                raise
            return self._vectors([texts[0][: len(texts[0]) // 2]])

    def _ask(self, texts: list[str]) -> Matrix:
        reply = self._server.ask(lambda client: client.embed(model=self.model, input=texts))
        try:
            matrix = np.asarray(reply.embeddings, dtype=np.float64)
        except ValueError:
            raise ModelError(f"{self.model} answered rows of several lengths.", "") from None
        if matrix.ndim != 2 or len(matrix) != len(texts) or not np.isfinite(matrix).all():
            raise ModelError(
                f"{self.model} answered {matrix.shape} for {len(texts)} texts.",
                "everest model --list",
            )
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        return (matrix / np.maximum(lengths, 1e-12)).astype(np.float32)
