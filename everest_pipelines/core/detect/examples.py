"""What the two models see: the features of a turn and of a sentence.

Training and running build their features here and nowhere else.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from everest_pipelines.core.detect.context import flags_of
from everest_pipelines.core.detect.model import hashed, tokens
from everest_pipelines.core.detect.rule_cues import shapes
from everest_pipelines.core.detect.scene import Place
from everest_pipelines.core.detect.sentences import Sentence, own_text, sentences

_IDENTIFIER = re.compile(r"\w[a-z][A-Z]\w|\w_\w|\w\(|\w\.\w+\(|--\w")

MOST_WORDS = 200  # of a turn; what follows is a brief, not an answer
MOST_SENTENCES = 40  # of a turn that are asked whether they stand

_TURN_FLAGS = (
    "first", "after_hand_back", "after_interruption", "conceded", "channel_refusal",
    "channel_queued", "pasted", "long", "after_edits", "starts_yes",
)  # fmt: skip


class Example(NamedTuple):
    """Hashed words and named flags of one example."""

    words: dict[int, float]
    flags: dict[str, float]


def turn_example(place: Place) -> Example:
    """A whole turn: the person's own words and what they answer to."""
    own = own_text(place.turn.text)
    words = tokens(own)[:MOST_WORDS]
    flags = flags_of(place, own)
    if not words:
        flags["only_pasted"] = 1.0
    features = hashed(words)
    for bucket, value in hashed(words[:3], "start:").items():
        features[bucket] = features.get(bucket, 0.0) + 0.5 * value
    return Example(features, flags)


def sentence_examples(place: Place) -> list[tuple[Sentence, Example]]:
    """Every sentence of a turn that could state something, with its features."""
    own = sentences(place.turn.text)
    around = flags_of(place, own_text(place.turn.text)) if own else {}
    found: list[tuple[Sentence, Example]] = []
    for position, sentence in enumerate(own[:MOST_SENTENCES]):
        words = tokens(sentence.text)
        if len(words) < 2:
            continue
        flags = shapes(sentence.text)
        flags.update({f"turn_{name}": around[name] for name in _TURN_FLAGS if name in around})
        flags["log_length"] = math.log1p(len(words)) / 5.0
        flags["log_sentences"] = math.log1p(len(own)) / 5.0
        flags["alone"] = float(len(own) == 1)
        flags["last"] = float(position == len(own) - 1)
        flags["short"] = float(len(words) <= 6)
        flags["wordy"] = float(len(words) > 30)
        flags["identifiers"] = min(1.0, len(_IDENTIFIER.findall(sentence.text)) / 4.0)
        kept = {name: value for name, value in flags.items() if value}
        found.append((sentence, Example(hashed(words), kept)))
    return found
