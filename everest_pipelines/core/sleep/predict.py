"""Predictions that a lesson's matter comes up again, and how they turned out."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from everest_pipelines.core.records import Day, LessonKind, Micros, Prediction, Verification
from everest_pipelines.text.ids import digest

WITHIN = 14  # days
# Fitted on 146 predictions over the shared transcripts, each project by the numbers fitted on the
# others: Brier 0.077 against 0.092 of the base rate (0.154 before, with no fading and no prior).
PRIOR = {
    LessonKind.ERROR: 0.25
}  # how often a matter that was just seen comes up within a fortnight
PRIOR_ELSE = 0.15  # of the other kinds
KIND_WEIGHT = 8.0  # how many outcomes the prior counts for against those of the project's own kind
OWN_WEIGHT = 8.0  # how many outcomes the kind's rate counts for against the lesson's own
# Days without it after which it is half as likely: all 15 that came true had been seen in the week
# before, none of the 96 that were last seen earlier. A lesson with longer gaps of its own fades so.
FADES = 7.0


def day_after(day: Day, days: int) -> Day:
    """The ISO day ``days`` later."""
    return (dt.date.fromisoformat(day) + dt.timedelta(days=days)).isoformat()


@dataclass(slots=True)
class Tally:
    """Outcomes so far."""

    hits: int = 0
    tries: int = 0

    def add(self, outcome: bool) -> None:
        self.hits += outcome
        self.tries += 1


@dataclass(slots=True)
class Open:
    """A prediction that waits for its outcome, and the families that cannot confirm it."""

    prediction: Prediction
    families: frozenset[str]


@dataclass(slots=True)
class History:
    """One lesson's open predictions and outcomes."""

    tally: Tally = field(default_factory=Tally)
    open: list[Open] = field(default_factory=list[Open])


def probability(
    own: Tally, of_kind: Tally, *, kind: LessonKind, seen: Sequence[int], today: int
) -> float:
    """How likely the matter comes up within the fortnight after ``today``.

    A beta-binomial mean twice over: the project's outcomes of this kind on a fitted prior, the
    lesson's own outcomes on that; halved for every ``FADES`` days (or mean own gap, when that is
    longer) since it was last seen. ``seen``: ordinals of the days of its sources, ascending.
    """
    prior = PRIOR.get(kind, PRIOR_ELSE)
    base = (of_kind.hits + KIND_WEIGHT * prior) / (of_kind.tries + KIND_WEIGHT)
    mean = (own.hits + OWN_WEIGHT * base) / (own.tries + OWN_WEIGHT)
    gap = (seen[-1] - seen[0]) / (len(seen) - 1) if len(seen) > 1 else 0.0
    return round(mean * 2.0 ** (-max(0, today - seen[-1]) / max(FADES, gap)), 6)


def predict(
    lesson_id: str, text: str, probability: float, *, day: Day, made_at: Micros
) -> Prediction:
    """A prediction made at the end of ``day``."""
    due_on = day_after(day, WITHIN)
    return Prediction(
        prediction_id=digest("prediction", lesson_id, day),
        lesson_id=lesson_id,
        text=f"Comes up again by {due_on}: {text}",
        probability=probability,
        made_at=made_at,
        due_on=due_on,
    )


def resolve(prediction: Prediction, *, on: Day, by_episode: str = "") -> Verification:
    """The outcome: true when an episode confirmed it, false when its time ran out."""
    return Verification(
        prediction_id=prediction.prediction_id,
        lesson_id=prediction.lesson_id,
        outcome=bool(by_episode),
        by_episode=by_episode,
        resolved_on=on,
        probability=prediction.probability,
    )


class Band(msgspec.Struct, frozen=True, kw_only=True):
    """Resolved predictions of like probability: what was said and what came."""

    at_least: float
    count: int
    said: float  # mean probability
    came: float  # share that came true


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """How good resolved predictions were. Brier: mean squared error, 0 is perfect."""

    count: int
    came_true: int
    brier: float
    base_brier: float  # of always saying the share that came true
    bands: tuple[Band, ...]


BANDS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8)  # narrow where most predictions are


def score(done: Iterable[Verification]) -> Score | None:
    """The score of resolved predictions, None when there are none."""
    rows = list(done)
    if not rows:
        return None
    came = sum(row.outcome for row in rows)
    rate = came / len(rows)
    bands: list[Band] = []
    for low, high in zip(BANDS, (*BANDS[1:], 2.0), strict=True):
        own = [row for row in rows if low <= row.probability < high]
        if own:
            said = sum(row.probability for row in own) / len(own)
            share = sum(row.outcome for row in own) / len(own)
            bands.append(
                Band(at_least=low, count=len(own), said=round(said, 4), came=round(share, 4))
            )
    return Score(
        count=len(rows),
        came_true=came,
        brier=sum((row.probability - row.outcome) ** 2 for row in rows) / len(rows),
        base_brier=rate * (1 - rate),
        bands=tuple(bands),
    )
