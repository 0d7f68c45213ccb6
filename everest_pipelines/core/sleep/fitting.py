"""Fits an embedding space's centre and cuts on sentences whose theme is labelled.

A cut is tried by clustering with the product's own linkage and guard, not on single pairs, and the
one with the best F0.5 of same-theme pairs is kept: a wrong merge hides a rule, a missed one only
shows it twice, so precision counts twice.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from everest_pipelines.core.embed import Embedder, text_of
from everest_pipelines.core.records import Episode, EpisodeKind, LessonKind, Origin
from everest_pipelines.core.sleep.calibration import Calibration, Cuts, centred
from everest_pipelines.core.sleep.cluster import average_linkage, split_guarded
from everest_pipelines.core.sleep.lesson import Source, sign_of
from everest_pipelines.text.errors import CallerError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Matrix = NDArray[Any]
else:
    Matrix = Any

STEP = 0.01
LOWEST, HIGHEST = 0.15, 0.95
BETA = 0.5
MERGE_ABOVE_JOIN = 0.05  # a wrong merge moves many sources, a wrong join one
MIN_PAIRS = 10  # same-theme pairs below which a kind is not fitted
UNFITTED = 0.8  # of errors without labels: near-copies meet, nothing else
UNLABELLED = 0.05  # above the rules' cut: surprises and notes have no guard


class Themed(Struct, frozen=True):
    """A labelled sentence; themes that begin with ``err-`` are errors, all others rules."""

    text: str
    theme: str
    lang: str = ""

    @property
    def kind(self) -> LessonKind:
        return LessonKind.ERROR if self.theme.startswith("err-") else LessonKind.RULE


def read_themes(content: str, name: str) -> list[Themed]:
    """Lines of JSON with ``text``, ``theme`` and perhaps ``lang``.

    Raises CallerError, which names the line, for anything else.
    """
    found: list[Themed] = []
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            found.append(Themed(str(row["text"]), str(row["theme"]), str(row.get("lang", ""))))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise CallerError(f"{name}:{number}: is no labelled sentence.") from None
    return found


def episode_of(row: Themed, number: int) -> Episode:
    """The episode that a night would make of the sentence."""
    error = row.kind is LessonKind.ERROR
    return Episode(
        episode_id=f"{number:08d}",
        kind=EpisodeKind.ERROR if error else EpisodeKind.NOTE,
        title=row.text,
        quote=row.text,
        origin=Origin.TOOL if error else Origin.HUMAN,
        occurred_at=number,
        session_id=f"{number:08d}",
        family_id=f"{number:08d}",
    )


def sources_of(rows: Sequence[Themed], vectors: Matrix, calibration: Calibration) -> list[Source]:
    """The sentences as the fold sees them, in the order given; ``vectors`` as embedded."""
    return [
        Source(
            episode=(episode := episode_of(row, number)),
            kind=row.kind,
            day="2026-01-01",
            ordinal=1,
            vector=centred(vector, calibration),
            sign=sign_of(episode),
        )
        for number, (row, vector) in enumerate(zip(rows, vectors, strict=True))
    ]


def clustered(sources: Sequence[Source], cut: float) -> list[int]:
    """A cluster label for each source: linkage and guard as a night runs them."""
    if not sources:
        return []
    if len(sources) == 1:
        return [0]
    groups: dict[int, list[Source]] = {}
    for label, source in zip(average_linkage(sources, cut), sources, strict=True):
        groups.setdefault(label, []).append(source)
    parts = [part for group in groups.values() for part in split_guarded(group)]
    of = {source.episode.episode_id: at for at, part in enumerate(parts) for source in part}
    return [of[source.episode.episode_id] for source in sources]


def pair_counts(labels: Sequence[int], themes: Sequence[str]) -> tuple[int, int, int]:
    """(pairs together and of one theme, pairs together, pairs of one theme)."""
    right = together = same = 0
    for at in range(len(labels)):
        for other in range(at):
            one, two = labels[at] == labels[other], themes[at] == themes[other]
            right += one and two
            together += one
            same += two
    return right, together, same


def fit(
    embedder: Embedder, rows: Sequence[Themed], *, languages: Sequence[str] = ()
) -> Calibration:
    """The calibration of the embedder's space on these sentences.

    Each language is clustered by itself; ``languages`` are those that the model knows (none: all
    there are), since in a language that it does not know everything is near everything. The
    centre is the mean of all of them (none for hashed words, which share no direction). Raises
    CallerError when too few sentences share a theme.
    """
    import numpy as np

    rows = [row for row in rows if not languages or row.lang in languages]
    vectors = embedder.embed([text_of(episode_of(row, at)) for at, row in enumerate(rows)])
    space = embedder.space
    semantic = not space.startswith("hashed")
    mean = np.asarray(vectors, dtype=np.float64).mean(axis=0) if len(rows) else np.zeros(0)
    centre = tuple(round(float(value), 6) for value in mean) if semantic else ()
    blank = Calibration(space=space, dimension=int(vectors.shape[1]), centre=centre)
    sources = sources_of(rows, vectors, blank)
    cuts: dict[str, Cuts] = {}
    card: dict[str, object] = {"sentences": len(rows), "beta": BETA}
    for kind in (LessonKind.RULE, LessonKind.ERROR):
        own = [at for at, row in enumerate(rows) if row.kind is kind]
        groups = [
            [(sources[at], rows[at].theme) for at in own if rows[at].lang == lang]
            for lang in sorted({rows[at].lang for at in own})
        ]
        found = _best(groups) if groups else None
        if found is None:
            continue
        cut, card[kind.value] = found
        cuts[kind.value] = _cuts(cut)
    if LessonKind.RULE.value not in cuts:
        raise CallerError(f"Fewer than {MIN_PAIRS} pairs of these sentences share a theme.")
    rule = cuts[LessonKind.RULE.value].cluster
    cuts.setdefault(LessonKind.ERROR.value, _cuts(UNFITTED))
    for kind in (LessonKind.NOTE, LessonKind.SURPRISE):
        cuts[kind.value] = _cuts(min(HIGHEST, rule + UNLABELLED))
    return Calibration(
        space=space, dimension=blank.dimension, centre=centre, cuts=cuts, fitted=True, card=card
    )


def _cuts(cut: float) -> Cuts:
    return Cuts(
        join=round(cut, 2),
        cluster=round(cut, 2),
        merge=round(min(HIGHEST, cut + MERGE_ABOVE_JOIN), 2),
    )


def _best(groups: Sequence[Sequence[tuple[Source, str]]]) -> tuple[float, object] | None:
    """The cut with the best F0.5 (of equals the highest) and what it measured."""
    best: tuple[float, float] | None = None
    card: object = None
    for step in range(round((HIGHEST - LOWEST) / STEP) + 1):
        cut = round(LOWEST + step * STEP, 2)
        counts = [
            pair_counts(clustered([one for one, _ in group], cut), [theme for _, theme in group])
            for group in groups
        ]
        right, together, same = (sum(column) for column in zip(*counts, strict=True))
        if same < MIN_PAIRS:
            return None
        precision, recall = right / max(together, 1), right / same
        weighed = BETA * BETA * precision + recall
        score = (1 + BETA * BETA) * precision * recall / weighed if weighed else 0.0
        if best is None or (round(score, 6), cut) >= best:
            best = (round(score, 6), cut)
            card = {
                "pairs": same,
                "precision": round(precision, 4),
                "recall": round(recall, 4),
                "f_half": round(score, 4),
            }
    return (best[1], card) if best and best[0] else None
