"""Models that word lessons: Ollama's, or any server with OpenAI's routes."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from everest_pipelines.text.errors import ModelError, SettingsError
from everest_pipelines.text.settings import Settings

if TYPE_CHECKING:
    from everest_pipelines.night.models.ollama import Server

MOST_TOKENS = 120  # of an answer: a rule of 200 characters and its JSON
TIMEOUT = 120.0  # seconds; a 135M model on one core takes some 3
SEED = 7


class Writer(Protocol):
    """Asks a model for one JSON answer."""

    def ask(self, instruction: str, question: str, schema: Mapping[str, object]) -> str:
        """The reply's text, not yet checked. Raises ModelError."""
        ...


def open_writer(settings: Settings, model: str, *, server: Server | None = None) -> Writer:
    """``ollama:NAME``, ``openai:NAME``, or a plain name of Ollama's. Raises SettingsError."""
    kind, _, rest = model.partition(":")
    if kind == "openai":
        if not settings.openai_url:
            raise SettingsError(
                "write_model names an OpenAI-compatible model and openai_url is not set.",
                "export EVEREST_OPENAI_URL=http://127.0.0.1:8080/v1",
            )
        return OpenAIWriter(rest, settings.openai_url)
    from everest_pipelines.night.models.ollama import Server as Ollama

    return OllamaWriter(rest if kind == "ollama" else model, server or Ollama(settings.ollama_host))


class OllamaWriter:
    """A model behind Ollama's routes, the answer constrained to the schema."""

    def __init__(self, model: str, server: Server) -> None:
        self._model = model
        self._server = server

    def ask(self, instruction: str, question: str, schema: Mapping[str, object]) -> str:
        reply = self._server.ask(
            lambda client: client.chat(
                model=self._model,
                messages=[
                    {"role": "system", "content": instruction},
                    {"role": "user", "content": question},
                ],
                format=dict(schema),
                options={"temperature": 0, "seed": SEED, "num_predict": MOST_TOKENS},
            )
        )
        return str(reply.message.content or "")


class OpenAIWriter:
    """``POST <base>/chat/completions`` with a JSON schema; no key is sent, no proxy used."""

    def __init__(self, model: str, base: str) -> None:
        self._model = model or "default"
        self._base = base.rstrip("/")
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def ask(self, instruction: str, question: str, schema: Mapping[str, object]) -> str:
        body = {
            "model": self._model,
            "messages": [
                {"role": "system", "content": instruction},
                {"role": "user", "content": question},
            ],
            "temperature": 0,
            "seed": SEED,
            "max_tokens": MOST_TOKENS,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "lesson", "strict": True, "schema": dict(schema)},
            },
        }
        request = urllib.request.Request(
            f"{self._base}/chat/completions",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with self._opener.open(request, timeout=TIMEOUT) as reply:
                found: Any = json.loads(reply.read(1 << 20))
            return str(found["choices"][0]["message"]["content"] or "")
        except urllib.error.HTTPError as error:
            raise ModelError(f"{self._base} answered {error.code}.", "everest model") from None
        except (OSError, ValueError, LookupError, TypeError) as error:
            what = type(error).__name__
            raise ModelError(f"{self._base} did not answer: {what}.", "everest model") from None
