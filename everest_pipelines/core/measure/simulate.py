"""A person with lessons and an effect that was planted: what the measures must find again."""

from __future__ import annotations

import random

from everest_pipelines.core.measure.arms import HELD_OUT, SHOWN, Opportunity

DAY = 86_400_000_000


def sessions(
    *,
    seed: int,
    families: int,
    lessons: int = 20,
    base_rate: float = 0.3,
    effect: float = 0.0,
    hold_out: float = 0.5,
    spread: float = 0.15,
) -> tuple[list[tuple[Opportunity, bool]], float]:
    """Opportunities with what followed, and the true difference of the two arms.

    Each family has a carelessness of its own (``base_rate`` give or take ``spread``, uniform), one
    to four opportunities, and the same outcome probability for each; a lesson that is shown lowers
    it by ``effect`` (absolute). The truth is the difference of the expected shares of families with
    a hit, computed in closed form for each family drawn, both arms.
    """
    draw = random.Random(seed)
    found: list[tuple[Opportunity, bool]] = []
    truth = 0.0
    for number in range(families):
        arm = HELD_OUT if draw.random() < hold_out else SHOWN
        own = min(0.95, max(0.02, base_rate + draw.uniform(-spread, spread)))
        helped = max(0.0, own - effect)
        count = draw.randint(1, 4)
        truth += (1 - (1 - helped) ** count) - (1 - (1 - own) ** count)
        chance = helped if arm == SHOWN else own
        for place in range(count):
            one = Opportunity(
                number * DAY + place, f"family-{number}", f"lesson-{draw.randrange(lessons)}", arm
            )
            found.append((one, draw.random() < chance))
    return found, truth / max(families, 1)
