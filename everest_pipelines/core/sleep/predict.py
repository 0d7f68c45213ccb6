"""Predictions that a lesson's matter comes up again, and how they turned out."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field

from everest_pipelines.core.records import Day, Micros, Prediction, Verification
from everest_pipelines.text.ids import digest

WITHIN = 14  # days
PRIOR_WEIGHT = 2.0  # how many outcomes the kind's base rate counts for


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


def probability(own: Tally, kind: Tally) -> float:
    """Beta-binomial mean: the lesson's own history, with its kind's base rate as the prior."""
    base = (kind.hits + 1.0) / (kind.tries + 2.0)
    return round((own.hits + PRIOR_WEIGHT * base) / (own.tries + PRIOR_WEIGHT), 6)


def predict(
    lesson_id: str, text: str, own: Tally, kind: Tally, *, day: Day, made_at: Micros
) -> Prediction:
    """A prediction made at the end of ``day``."""
    due_on = day_after(day, WITHIN)
    return Prediction(
        prediction_id=digest("prediction", lesson_id, day),
        lesson_id=lesson_id,
        text=f"Comes up again by {due_on}: {text}",
        probability=probability(own, kind),
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
