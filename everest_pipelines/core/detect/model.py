"""A small linear model read from JSON: hashed words plus named flags, scored in plain Python.

The file is made by ``benchmarks/train_detect.py``; it holds the weights, the cuts and a card.
"""
# ruff: noqa: RUF001 - people type these characters

from __future__ import annotations

import itertools
import math
import re
import zlib
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources

import msgspec

REMEMBERED = 1024  # texts whose words are kept: detectors ask again on every day of a session
BUCKETS = 2048  # hashed words and pairs; more buckets change no score by 0.01 on 500 turns

_TOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?|\?|!|[\u3040-\u30ff\u3400-\u9fff]")


class Tree(msgspec.Struct, frozen=True):
    """One small regression tree over named flags: node 0 is the root, an empty flag is a leaf."""

    flags: list[str]
    cuts: list[float]  # a value up to the cut goes left
    left: list[int]
    right: list[int]
    values: list[float]

    def value(self, flags: Mapping[str, float]) -> float:
        node = 0
        while self.flags[node]:
            low = flags.get(self.flags[node], 0.0) <= self.cuts[node]
            node = self.left[node] if low else self.right[node]
        return self.values[node]


class Model(msgspec.Struct, frozen=True):
    """Weights of a logistic regression with its cuts; probabilities are 0 to 1.

    With ``trees``, boosted over the named flags, their sum decides and the weights only rank the
    sentences of a turn.
    """

    name: str
    version: int
    intercept: float
    buckets: dict[int, float]  # bucket -> weight
    flags: dict[str, float]  # named flag -> weight
    sure: float  # cut with the precision that a lesson made at once needs
    best: float  # cut with the best F1
    likely: float  # cut with the recall that a second source needs
    card: dict[str, object] = {}
    trees: list[Tree] = []
    trees_start: float = 0.0

    def probability(self, words: Mapping[int, float], flags: Mapping[str, float]) -> float:
        """The probability of one example, rounded to 1e-6."""
        if self.trees:
            total = self.trees_start + math.fsum([tree.value(flags) for tree in self.trees])
            return _squashed(total)
        return self.weighed(words, flags)

    def weighed(self, words: Mapping[int, float], flags: Mapping[str, float]) -> float:
        """The probability by the weights alone."""
        total = self.intercept
        buckets, named = self.buckets, self.flags
        total += math.fsum([buckets.get(key, 0.0) * value for key, value in words.items()])
        total += math.fsum([named.get(key, 0.0) * value for key, value in flags.items()])
        return _squashed(total)


def _squashed(total: float) -> float:
    return round(1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, total)))), 6)


@lru_cache(maxsize=8)
def load(name: str) -> Model | None:
    """The packaged model, None when its file is absent (the detector then finds nothing)."""
    file = resources.files("everest_pipelines.core.detect").joinpath(f"{name}.json")
    if not file.is_file():
        return None
    return msgspec.json.decode(file.read_bytes(), type=Model)


def tokens(text: str) -> list[str]:
    """Words with their apostrophes, question and exclamation marks; lower case."""
    return list(_tokens(text))


@lru_cache(maxsize=REMEMBERED)
def _tokens(text: str) -> tuple[str, ...]:
    return tuple(_TOKEN.findall(text.lower().replace("’", "'")))


def hashed(words: list[str], salt: str = "") -> dict[int, float]:
    """A unit vector of hashed words and pairs, the same under every hash seed."""
    return dict(_hashed(tuple(words), salt))


@lru_cache(maxsize=REMEMBERED)
def _hashed(words: tuple[str, ...], salt: str) -> dict[int, float]:
    counts: dict[int, int] = {}
    for term in {*words, *map(" ".join, itertools.pairwise(words))}:
        bucket = zlib.crc32((salt + term).encode()) % BUCKETS
        counts[bucket] = counts.get(bucket, 0) + 1
    norm = math.sqrt(sum(count * count for count in counts.values())) or 1.0
    return {bucket: count / norm for bucket, count in counts.items()}
