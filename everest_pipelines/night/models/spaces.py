"""Which embedding space a memory uses, and what happens when its model does not answer.

``models/space.json`` keeps the last good space. A night tries what was asked for; when a text of
the night cannot be embedded there, it goes on with the last good space, else with the built-in
one, counts the failure and says so. Vectors of two spaces are never compared: after a change every
episode is embedded anew (from the cache where it can be) and the fold starts from the beginning.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from everest_pipelines.core.embed import Embedder, HashedEmbedder, Matrix
from everest_pipelines.core.sleep.calibration import Calibration, calibration_of, decode
from everest_pipelines.night.models.choice import chosen
from everest_pipelines.text.atomic import write_atomic
from everest_pipelines.text.errors import (
    DamagedError,
    EverestError,
    MissingError,
    ModelError,
    SettingsError,
)
from everest_pipelines.text.home import Home
from everest_pipelines.text.settings import Settings

if TYPE_CHECKING:
    from everest_pipelines.night.models.cache import Answers
    from everest_pipelines.night.models.ollama import Server

BUILT_IN = "hashed"
KINDS = ("hashed", "wordllama", "minilm", "ollama")


class InUse(Struct, frozen=True):
    """The space of the last night. ``why`` tells why it is not the one that was asked for."""

    asked: str = BUILT_IN  # as configured
    model: str = BUILT_IN  # what was used instead, or the same
    space: str = HashedEmbedder.space
    why: str = ""
    failures: int = 0  # nights in a row that could not use what was asked for


def asked_for(home: Home, settings: Settings) -> str:
    """The configured model: the setting, else the choice of ``everest model``, else built in."""
    return settings.embed_model or chosen(home).embed or BUILT_IN


def in_use(home: Home) -> InUse:
    """What the last night used; the built-in space before the first."""
    try:
        return msgspec.json.decode(_path(home).read_bytes(), type=InUse)
    except (FileNotFoundError, msgspec.DecodeError):
        return InUse()


def space_of(home: Home, settings: Settings) -> str:
    """The tag that the vectors of this memory must have. Asks no model.

    After the configuration was changed it is a tag that no vector has, until a night has tried it.
    """
    known = in_use(home)
    asked = asked_for(home, settings)
    return known.space if known.asked == asked else f"asked:{asked}"


def keep(home: Home, used: InUse) -> None:
    """Write it, when it says something new."""
    if used != in_use(home) or not _path(home).exists():
        write_atomic(_path(home), msgspec.json.format(msgspec.json.encode(used), indent=2) + b"\n")


def _path(home: Home) -> Path:
    return home.models / "space.json"


def calibration_for(home: Home, space: str) -> Calibration:
    """What ``everest calibrate`` fitted for this space, else the packaged one, else defaults.

    Raises DamagedError for a fitted file that is none.
    """
    file = calibration_file(home, space)
    if not file.is_file():
        return calibration_of(space)
    try:
        return decode(file.read_bytes())
    except msgspec.DecodeError as error:
        raise DamagedError(f"{file}: {error}.", "everest model --calibrate FILE") from None


def calibration_file(home: Home, space: str) -> Path:
    """Where the calibration that was fitted here is kept."""
    return home.models / "calibrations" / f"{space.replace('/', '-')}.json"


def open_embedder(model: str, settings: Settings, *, server: Server | None = None) -> Embedder:
    """The embedder of a configured name.

    ``hashed``, ``wordllama``, ``minilm``, ``minilm:FOLDER`` or ``ollama:NAME``; any other name is
    one of Ollama's. Raises MissingError (a library or weights), SettingsError (an empty name).
    """
    kind, _, rest = model.partition(":")
    if kind == "hashed" and not rest:
        return HashedEmbedder()
    if kind == "wordllama" and not rest:
        from everest_pipelines.night.models.wordllama import WordLlamaEmbedder

        return WordLlamaEmbedder()
    if kind == "minilm":
        from everest_pipelines.night.models.minilm import MiniLMEmbedder

        return MiniLMEmbedder(Path(rest).expanduser() if rest else None)
    name = rest if kind == "ollama" else model
    if not name:
        raise SettingsError(f"embed_model {model!r} names no model of Ollama.", "everest model")
    from everest_pipelines.night.models.ollama import OllamaEmbedder, Server
    from everest_pipelines.night.models.table import prefix_of

    asked = server or Server(settings.ollama_host)
    return OllamaEmbedder(name, asked, prefix=prefix_of(name))


class CachedEmbedder:
    """Another embedder's vectors, each text asked for once in the life of the memory.

    ``fallback_space``: the tag under which answers are looked up while the model itself is away.
    """

    def __init__(self, inner: Embedder, answers: Answers, *, fallback_space: str = "") -> None:
        self._inner = inner
        self._answers = answers
        self._fallback = fallback_space
        self._space = ""

    @property
    def space(self) -> str:
        """Of the model, else the one it had when it last answered. Raises ModelError."""
        if not self._space:
            try:
                self._space = self._inner.space
            except ModelError:
                if not self._fallback:
                    raise
                self._space = self._fallback
        return self._space

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One row a text. Raises ModelError when the model must be asked and does not answer."""
        import numpy as np

        digests = [hashlib.sha256(t.encode("utf-8", "surrogatepass")).hexdigest() for t in texts]
        known = self._answers.vectors(self.space, sorted(set(digests)))
        missing = {d: text for d, text in zip(digests, texts, strict=True) if d not in known}
        if missing:
            names = sorted(missing)
            rows = self._inner.embed([missing[name] for name in names])
            if self._inner.space != self.space:
                raise ModelError("The model changed while it was asked.", "everest night")
            made = {name: rows[place] for place, name in enumerate(names)}
            self._answers.keep_vectors(self.space, made)
            known.update(made)
        return np.stack([known[d] for d in digests]) if texts else np.zeros((0, 0), np.float32)


def candidates(
    home: Home, settings: Settings, *, server: Server | None = None
) -> list[tuple[str, Callable[[], Embedder]]]:
    """(configured name, how to open it) in the order in which a night tries them."""
    last = in_use(home)
    names = [asked_for(home, settings)]
    names += [name for name in (last.model, BUILT_IN) if name not in names]

    def opener(name: str) -> Callable[[], Embedder]:
        def opened() -> Embedder:
            embedder = open_embedder(name, settings, server=server)
            if name in (BUILT_IN, "wordllama"):  # faster than the cache
                return embedder
            from everest_pipelines.night.models.cache import Answers

            remembered = last.space if last.model == name else ""
            return CachedEmbedder(embedder, Answers(home), fallback_space=remembered)

        return opened

    return [(name, opener(name)) for name in dict.fromkeys(names)]


def settle(
    home: Home,
    settings: Settings,
    needed: Callable[[str], Sequence[str]],
    *,
    server: Server | None = None,
    advance: Callable[[int], None] = lambda count: None,
) -> tuple[Embedder, InUse]:
    """The first space in which every text of this night has a vector, with those vectors cached.

    ``needed``: space -> the texts whose vectors the night will ask for. ``advance`` is told how
    many texts were embedded. Writes ``space.json``.
    """
    last = in_use(home)
    asked = asked_for(home, settings)
    why = ""
    for name, opened in candidates(home, settings, server=server):
        try:
            embedder = opened()
            space = embedder.space
            texts = needed(space) if name not in (BUILT_IN, "wordllama") else ()
            for start in range(0, len(texts), _PART):
                part = texts[start : start + _PART]
                embedder.embed(part)
                advance(len(part))
        except (ModelError, MissingError) as error:
            why = why or str(error)
            continue
        failures = 0 if name == asked else last.failures + 1 if last.asked == asked else 1
        used = InUse(asked=asked, model=name, space=space, why=why, failures=failures)
        keep(home, used)
        return embedder, used
    raise EverestError("No embedding space could be used.", "everest doctor")


_PART = 256  # texts between two signs of progress, and what a kill can lose
