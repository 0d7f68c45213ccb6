"""The person's words that say that what the agent did, believed or planned is wrong.

An episode is made above the likely cut. When a sentence of it states something that outlives the
task, the episode is standing, its quote is that sentence and ``sure`` speaks of the standing
statement (that is what makes a lesson at once); else ``sure`` speaks of the correction.
"""

from __future__ import annotations

from collections.abc import Iterator

from everest_pipelines.core.detect.context import answered
from everest_pipelines.core.detect.cues import cues
from everest_pipelines.core.detect.examples import turn_example
from everest_pipelines.core.detect.finding import episode
from everest_pipelines.core.detect.model import hashed, load, tokens
from everest_pipelines.core.detect.scene import Place, Scene
from everest_pipelines.core.detect.sentences import (
    Sentence,
    as_rule,
    one_piece,
    own_text,
    sentences,
)
from everest_pipelines.core.detect.statement import statement
from everest_pipelines.core.records import Channel, Episode, EpisodeKind, Origin

NAME, VERSION = "correction", 3

QUOTE_LENGTH = 400  # characters; longer turns are quoted by their most telling sentence


def probability(place: Place) -> float | None:
    """How likely the turn corrects the agent, None without a model."""
    model = load(NAME)
    if model is None:
        return None
    if place.score is None:
        seen = turn_example(place)
        score = model.probability(seen.words, seen.flags)
        if seen.flags.get("mistake"):  # says so outright; 11 of 11 in the labelled turns
            score = max(score, model.likely)
        place.score = score
    return place.score


def corrects(place: Place) -> bool:
    """Whether the turn is above the likely cut."""
    model, score = load(NAME), probability(place)
    return model is not None and score is not None and score >= model.likely


def detect(scene: Scene) -> Iterator[Episode]:
    """One episode for each correcting turn; reasons of refusals belong to the refusal."""
    model = load(NAME)
    if model is None:
        return
    for place in scene.words:
        if place.turn.channel == Channel.REFUSAL:
            continue
        score = probability(place)
        if score is None or score < model.likely:
            continue
        yield _episode(place, score, score >= model.sure)


def _episode(place: Place, score: float, sure: bool) -> Episode:
    turn = place.turn
    stated = statement(place)
    after = answered(place)
    settled_at = after.occurred_at if after else 0
    if stated is not None and stated.clear:
        return episode(
            turn,
            EpisodeKind.CORRECTION,
            span="turn",
            detector=NAME,
            version=VERSION,
            origin=Origin.HUMAN,
            sub="standing",
            title=as_rule(stated.sentence.text),
            gist=own_text(turn.text),
            quote=(stated.sentence.start, stated.sentence.end),
            standing=True,
            sure=stated.sure,
            score=stated.score,
            reason="model:standing_correction",
            settled_at=settled_at,
        )
    quote = telling(place, sentences(turn.text))
    return episode(
        turn,
        EpisodeKind.CORRECTION,
        span="turn",
        detector=NAME,
        version=VERSION,
        origin=Origin.HUMAN,
        sub="task" if quote else "pasted",
        title=as_rule(turn.text[quote[0] : quote[1]]) if quote else "Pasted a failing result",
        gist=own_text(turn.text) or "The person pasted what a program printed",
        quote=quote,
        sure=sure,
        score=score,
        reason="model:correction",
        settled_at=settled_at,
    )


def telling(place: Place, own: list[Sentence]) -> tuple[int, int] | None:
    """The span to quote: the whole when it is short and one piece, else the likeliest sentence."""
    if not own:
        return None
    start, end = own[0].start, own[-1].end
    if end - start <= QUOTE_LENGTH and one_piece(place.turn.text, own):
        return start, end
    model = load(NAME)
    if model is None:
        return own[0].start, own[0].end

    def weight(one: Sentence) -> tuple[float, int]:
        return model.weighed(hashed(tokens(one.text)), cues(one.text)), -one.start

    best = max(own, key=weight)
    return best.start, best.end
