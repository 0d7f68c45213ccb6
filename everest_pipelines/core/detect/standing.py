"""Standing statements that correct nothing: notes of the person.

Every turn of a person is asked, sentence by sentence; a standing sentence of a correcting turn or
of a refusal's reason belongs to that episode (see correction.py and refusal.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from everest_pipelines.core.detect.correction import corrects
from everest_pipelines.core.detect.finding import episode
from everest_pipelines.core.detect.scene import Scene
from everest_pipelines.core.detect.sentences import as_rule, own_text
from everest_pipelines.core.detect.statement import statement
from everest_pipelines.core.records import Channel, Episode, EpisodeKind, Origin

NAME, VERSION = "standing", 2


def detect(scene: Scene) -> Iterator[Episode]:
    """At most one note a turn: its likeliest standing sentence, above the likely cut.

    Only above the cut with the best F1 it is said to stand; below, it waits for a second source.
    """
    for place in scene.words:
        if place.turn.channel == Channel.REFUSAL or corrects(place):
            continue
        found = statement(place)
        if found is None:
            continue
        yield episode(
            place.turn,
            EpisodeKind.NOTE,
            span="turn",
            detector=NAME,
            version=VERSION,
            origin=Origin.HUMAN,
            sub="stated",
            title=as_rule(found.sentence.text),
            gist=own_text(place.turn.text),
            quote=(found.sentence.start, found.sentence.end),
            standing=found.clear,
            sure=found.sure,
            score=found.score,
            reason="model:standing",
        )
