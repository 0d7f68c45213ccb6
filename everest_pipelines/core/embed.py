"""What is embedded of an episode, and the embedders behind one protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from everest_pipelines.core.records import Episode, EpisodeKind, LessonKind, Origin
from everest_pipelines.text.hashed import DIMENSION, SPACE, embed, mask_error

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]
else:
    Matrix = Any

_PERSONS_WORDS = frozenset({EpisodeKind.CORRECTION, EpisodeKind.REFUSAL, EpisodeKind.NOTE})


class Embedder(Protocol):
    """Texts in, unit rows out. Two embedders of one ``space`` give the same vectors."""

    @property
    def space(self) -> str:
        """The tag of the space; vectors of different spaces are never compared."""
        ...

    def embed(self, texts: Sequence[str]) -> Matrix:
        """A float32 matrix, one row a text, each of length 1 (0 for an empty text)."""
        ...


class HashedEmbedder:
    """The built-in space: hashed words and bigrams, no model."""

    space: str = SPACE

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One unit row of 256 a text; equal texts are embedded once."""
        import numpy as np

        known: dict[str, list[float]] = {}
        rows = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        for row, text in enumerate(texts):
            if text not in known:
                known[text] = embed(text)
            rows[row] = known[text]
        return rows


def text_of(episode: Episode) -> str:
    """What is embedded: the person's words alone where there are any, an error masked.

    It depends on nothing that a later revision of the episode may add (the fix, the detail).
    """
    if episode.kind == EpisodeKind.ERROR:
        return mask_error(episode.title or episode.gist)
    if episode.kind in _PERSONS_WORDS and episode.origin == Origin.HUMAN and episode.quote:
        return episode.quote
    if not episode.gist or episode.gist == episode.title:
        return episode.title
    return f"{episode.title}\n{episode.gist}"


def lesson_kind_of(episode: Episode) -> LessonKind | None:
    """The kind of lesson that an episode can teach, None when it teaches none.

    A refusal teaches only with the person's reason; sessions, interruptions and facts about the
    environment never make a lesson by themselves.
    """
    if episode.kind == EpisodeKind.CORRECTION:
        return LessonKind.RULE
    if episode.kind == EpisodeKind.REFUSAL:
        return LessonKind.RULE if episode.quote else None
    if episode.kind == EpisodeKind.NOTE:
        return LessonKind.RULE if episode.origin == Origin.HUMAN else LessonKind.NOTE
    if episode.kind == EpisodeKind.ERROR:
        return LessonKind.ERROR
    if episode.kind == EpisodeKind.SURPRISE:
        return LessonKind.SURPRISE
    return None
