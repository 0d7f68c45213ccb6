"""How well an embedding space and the guard sort labelled sentences into lessons.

    python benchmarks/themes.py --set FILE --opposites FILE --space NAME --json
    python benchmarks/themes.py --near-duplicates FILE --space NAME --json

``--set``: JSON lines ``{theme, text, lang}``; ``--opposites``: ``[{a, b, relation}]``, of which
``clash`` counts. Each theme is left out in turn: centre and cut are fitted on the others (best pair
F1 with the guard on), then all sentences are clustered as the fold does it, and the pairs with a
sentence of the left-out theme are counted (a pair of two themes half by half). Intervals: 95 %, by
drawing themes with replacement. ``packaged`` holds the same with the calibration that the package
ships for the space. ``--near-duplicates``: JSON lines ``{a, b, same, kind}``, joined by guard and
packaged join cut. A row is an error's message when its ``kind`` says so, else the person's words.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from calibrate import passes, rows

from everest_pipelines.core.embed import Embedder, HashedEmbedder
from everest_pipelines.core.records import Episode, EpisodeKind, LessonKind, Origin
from everest_pipelines.core.sleep import cluster
from everest_pipelines.core.sleep.calibration import calibration_of
from everest_pipelines.core.sleep.cluster import average_linkage, split_guarded
from everest_pipelines.core.sleep.lesson import Source, sign_of
from everest_pipelines.night.models.minilm import MiniLMEmbedder
from everest_pipelines.night.models.wordllama import WordLlamaEmbedder
from everest_pipelines.text.hashed import mask_error

# The guard is asked about the same pairs for every cut and every theme left out.
cluster.apart = functools.lru_cache(maxsize=None)(cluster.apart)
# One line for each kind of embedder. Learned spaces are centred, hashed words are not.
SPACES: dict[str, tuple[Callable[[], Embedder], bool]] = {
    "hashed": (HashedEmbedder, False),
    "wordllama": (WordLlamaEmbedder, True),
    "minilm": (MiniLMEmbedder, True),
}
STEPS = [step / 50 for step in range(4, 48)]
DRAWS = 1000
Labels = Sequence[str]


def is_error(row: dict[str, Any]) -> bool:
    return row.get("kind") == "error"


def sources_of(sentences: Sequence[dict[str, Any]], vectors: Any) -> list[Source]:
    """One source a sentence, each of a session of its own."""
    found: list[Source] = []
    for number, (row, vector) in enumerate(zip(sentences, vectors, strict=True)):
        error = is_error(row)
        episode = Episode(
            episode_id=f"{number:06d}",
            kind=EpisodeKind.ERROR if error else EpisodeKind.NOTE,
            origin=Origin.TOOL if error else Origin.HUMAN,
            title=row["text"],
            quote="" if error else row["text"],
            occurred_at=0,
        )
        kind = LessonKind.ERROR if error else LessonKind.RULE
        found.append(Source(episode, kind, "2026-01-01", 1, vector, sign_of(episode)))
    return found


def clustered(sources: Sequence[Source], cuts: dict[LessonKind, float]) -> list[str]:
    """The lesson of each sentence, by the fold's own steps."""
    names = [""] * len(sources)
    for kind, cut in cuts.items():
        own = [source for source in sources if source.kind == kind]
        if len(own) < 2:
            continue
        groups: dict[int, list[Source]] = {}
        for label, source in zip(average_linkage(own, cut), own, strict=True):
            groups.setdefault(label, []).append(source)
        for label, group in groups.items():
            for part, members in enumerate(split_guarded(group)):
                for source in members:
                    names[int(source.episode.episode_id)] = f"{kind}-{label}-{part}"
    return [name or f"alone-{number}" for number, name in enumerate(names)]


def moved(vectors: Any, centre: Any) -> Any:
    shifted = np.asarray(vectors, dtype=np.float64) - centre
    norms = np.linalg.norm(shifted, axis=1, keepdims=True)
    return np.where(norms > 1e-9, shifted / np.maximum(norms, 1e-9), 0.0)


class Pairs:
    """Counts of pairs by theme and theme: together and same, together, same, all."""

    def __init__(self, themes: Sequence[str]) -> None:
        self.themes = sorted(set(themes))
        self.at = {theme: place for place, theme in enumerate(self.themes)}
        size = len(self.themes)
        self.together, self.all = np.zeros((size, size)), np.zeros((size, size))

    def count(self, themes: Sequence[str], labels: Labels, only: str = "") -> None:
        """Adds a clustering; ``only``: half of each pair for the theme that was left out."""
        places = np.asarray([self.at[theme] for theme in themes])
        groups = np.unique(np.asarray(labels), return_inverse=True)[1]
        one, two = np.triu_indices(len(places), 1)
        first, second = places[one], places[two]
        left = self.at[only] if only else -1
        share = (
            ((first == left).astype(float) + (second == left)) / 2 if only else np.ones(len(one))
        )
        spot = (np.minimum(first, second), np.maximum(first, second))
        np.add.at(self.all, spot, share)
        np.add.at(self.together, spot, share * (groups[one] == groups[two]))

    def scores(self, draw: Any = None) -> dict[str, float]:
        """Precision, recall, F1 and ARI; ``draw``: how often each theme was drawn."""
        times = np.ones(len(self.themes)) if draw is None else draw
        weight = np.outer(times, times)
        np.fill_diagonal(weight, times)
        together, every = self.together * weight, self.all * weight
        both, joined = np.trace(together), together.sum()
        same, total = np.trace(every), every.sum()
        precision = both / joined if joined else 1.0
        recall = both / same if same else 0.0
        chance = joined * same / total if total else 0.0
        most = (joined + same) / 2
        return {
            "pair_precision": precision,
            "pair_recall": recall,
            "pair_f1": 2 * precision * recall / max(precision + recall, 1e-9),
            "ari": (both - chance) / (most - chance) if most > chance else 1.0,
        }


def v_measure(themes: Sequence[str], labels: Labels, times: dict[str, float]) -> float:
    """Harmonic mean of homogeneity and completeness, each theme weighted by its draws."""
    cells: Counter[tuple[str, str]] = Counter()
    for pair in zip(themes, labels, strict=True):
        cells[pair] += times[pair[0]]  # pyright: ignore[reportArgumentType]
    total = sum(cells.values()) or 1.0
    by_theme: Counter[str] = Counter()
    by_label: Counter[str] = Counter()
    for (theme, label), count in cells.items():
        by_theme[theme] += count
        by_label[label] += count

    def entropy(counts: Counter[Any]) -> float:
        return -math.fsum(n / total * math.log(n / total) for n in counts.values() if n)

    themes_h, labels_h, joint = entropy(by_theme), entropy(by_label), entropy(cells)
    homogeneity = 1 - (joint - labels_h) / themes_h if themes_h else 1.0
    completeness = 1 - (joint - themes_h) / labels_h if labels_h else 1.0
    return 2 * homogeneity * completeness / max(homogeneity + completeness, 1e-9)


def fitted(sentences: Sequence[dict[str, Any]], vectors: Any) -> dict[LessonKind, float]:
    """The cut of each kind with the best pair F1 over these sentences."""
    cuts: dict[LessonKind, float] = {}
    for kind in (LessonKind.RULE, LessonKind.ERROR):
        own = [n for n, row in enumerate(sentences) if is_error(row) == (kind == LessonKind.ERROR)]
        if len(own) < 2:
            cuts[kind] = STEPS[-1]
            continue
        some = [sentences[n] for n in own]
        themes = [row["theme"] for row in some]
        sources = sources_of(some, vectors[own])

        def f1(cut: float, *, kind: LessonKind = kind, sources=sources, themes=themes) -> float:
            pairs = Pairs(themes)
            pairs.count(themes, clustered(sources, {kind: cut}))
            return round(pairs.scores()["pair_f1"], 6)

        cuts[kind] = max(STEPS, key=lambda cut: (f1(cut), cut))
    return cuts


class Measured:
    """Pairs over all left-out themes, the clusterings behind them, and the clashes merged."""

    def __init__(self, sentences: Sequence[dict[str, Any]], clashes: set[frozenset[str]]) -> None:
        self.themes = [row["theme"] for row in sentences]
        self.pairs = Pairs(self.themes)
        self.labels: list[Labels] = []
        self.clashes = clashes
        self.merged: set[tuple[int, int]] = set()

    def add(self, labels: Labels, only: str = "") -> None:
        self.pairs.count(self.themes, labels, only)
        self.labels.append(labels)
        for one, two in itertools.combinations(range(len(labels)), 2):
            known = frozenset((self.themes[one], self.themes[two])) in self.clashes
            if labels[one] == labels[two] and known:
                self.merged.add((one, two))

    def result(self) -> dict[str, Any]:
        dice = np.random.default_rng(7)
        size = len(self.pairs.themes)
        drawn = [np.bincount(dice.integers(0, size, size), minlength=size) for _ in range(DRAWS)]
        scores = self.pairs.scores()
        spread = [self.pairs.scores(draw) for draw in drawn]
        some = self.labels[:: max(1, len(self.labels) // 3)][:3]  # clusterings hardly differ

        def harmony(times: Any) -> float:
            weights = dict(zip(self.pairs.themes, map(float, times), strict=True))
            return math.fsum(v_measure(self.themes, labels, weights) for labels in some) / len(some)

        scores["v_measure"] = harmony(np.ones(size))
        for row, draw in zip(spread[:200], drawn, strict=False):
            row["v_measure"] = harmony(draw)
        intervals = {
            name: [
                round(float(np.quantile([row[name] for row in spread if name in row], q)), 4)
                for q in (0.025, 0.975)
            ]
            for name in scores
        }
        return {
            **{name: round(float(score), 4) for name, score in scores.items()},
            "intervals": intervals,
            "opposites_merged": len(self.merged),
        }


def blocked(sentences: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The share of pairs of one theme that the guard keeps apart."""
    looked = stopped = 0
    for one, two in itertools.combinations(sentences, 2):
        if one["theme"] == two["theme"]:
            looked += 1
            kind = "error" if is_error(one) else "rule"
            stopped += not passes(kind, one["text"], two["text"])
    return {"true_pairs_blocked": round(stopped / max(1, looked), 4), "true_pairs": looked}


def themes_of(
    sentences: Sequence[dict[str, Any]],
    clashes: set[frozenset[str]],
    embedder: Embedder,
    *,
    centred: bool,
) -> dict[str, Any]:
    """All measures of one set of sentences."""
    vectors = embedder.embed(
        [mask_error(row["text"]) if is_error(row) else row["text"] for row in sentences]
    )
    nowhere = np.zeros(vectors.shape[1])
    measured = Measured(sentences, clashes)
    cuts: list[dict[LessonKind, float]] = []
    for theme in measured.pairs.themes:
        kept = [n for n, row in enumerate(sentences) if row["theme"] != theme]
        centre = vectors[kept].mean(axis=0) if centred and kept else nowhere
        own = moved(vectors, centre)
        cuts.append(fitted([sentences[n] for n in kept], own[kept]))
        measured.add(clustered(sources_of(sentences, own), cuts[-1]), theme)
    shipped = calibration_of(embedder.space)
    packaged = Measured(sentences, clashes)
    own = moved(vectors, np.asarray(shipped.centre) if shipped.centre else nowhere)
    by_kind = {kind: shipped.of(kind).cluster for kind in (LessonKind.RULE, LessonKind.ERROR)}
    packaged.add(clustered(sources_of(sentences, own), by_kind))
    return {
        "sentences": len(sentences),
        "themes": len(measured.pairs.themes),
        **measured.result(),
        **blocked(sentences),
        "cut": {
            kind.value: [min(c[kind] for c in cuts), max(c[kind] for c in cuts)]
            for kind in (LessonKind.RULE, LessonKind.ERROR)
        },
        "packaged": {"fitted": shipped.fitted, **packaged.result()},
    }


def near_of(pairs: Sequence[dict[str, Any]], embedder: Embedder) -> dict[str, Any]:
    """Precision and recall of joining, errors and rules apart."""
    shipped = calibration_of(embedder.space)
    centre = np.asarray(shipped.centre) if shipped.centre else 0.0
    found: dict[str, Any] = {}
    for kind in (LessonKind.ERROR, LessonKind.RULE):
        own = [pair for pair in pairs if is_error(pair) == (kind == LessonKind.ERROR)]
        if not own:
            continue
        text = mask_error if kind == LessonKind.ERROR else str
        left, right = (
            moved(embedder.embed([text(pair[side]) for pair in own]), centre) for side in "ab"
        )
        scores = np.round((left * right).sum(axis=1), 6)
        joined = [
            bool(score >= shipped.of(kind).join) and passes(kind.value, pair["a"], pair["b"])
            for score, pair in zip(scores, own, strict=True)
        ]
        right_ones = sum(j and pair["same"] for j, pair in zip(joined, own, strict=True))
        found[kind.value] = {
            "pairs": len(own),
            "precision": round(right_ones / max(1, sum(joined)), 4) if any(joined) else 1.0,
            "recall": round(right_ones / max(1, sum(bool(pair["same"]) for pair in own)), 4),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", type=Path, help="labelled sentences")
    parser.add_argument("--opposites", type=Path, help="pairs of themes that clash")
    parser.add_argument("--near-duplicates", type=Path, help="labelled pairs")
    parser.add_argument("--space", default="hashed", choices=sorted(SPACES))
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    asked = parser.parse_args()
    if asked.set is None and asked.near_duplicates is None:
        parser.error("give --set, --near-duplicates or both")
    make, centred = SPACES[asked.space]
    embedder = make()
    result: dict[str, Any] = {"space": embedder.space}
    if asked.set is not None:
        sentences = rows(asked.set)
        listed = json.loads(asked.opposites.read_text("utf-8")) if asked.opposites else []
        clashes = {frozenset((o["a"], o["b"])) for o in listed if o["relation"] == "clash"}
        result |= themes_of(sentences, clashes, embedder, centred=centred)
        by_lang: dict[str, Any] = {}
        for lang in sorted({str(row.get("lang", "")) for row in sentences}):
            own = [row for row in sentences if row.get("lang", "") == lang]
            if 2 < len(own) < len(sentences) and len({row["theme"] for row in own}) > 2:
                by_lang[lang] = themes_of(own, clashes, embedder, centred=centred)
        if by_lang:
            result["by_lang"] = by_lang
    if asked.near_duplicates is not None:
        result["near_duplicates"] = near_of(rows(asked.near_duplicates), embedder)
    print(json.dumps(result, indent=None if asked.json else 1))


if __name__ == "__main__":
    main()
