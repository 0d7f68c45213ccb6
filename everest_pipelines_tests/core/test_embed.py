"""What is embedded of an episode."""

from __future__ import annotations

import msgspec
import numpy as np

from everest_pipelines.core.embed import HashedEmbedder, lesson_kind_of, text_of
from everest_pipelines.core.records import EpisodeKind, LessonKind, Origin
from everest_pipelines_tests.core.sleep.making import claimed, failed, said


def test_rows_have_length_one_and_equal_texts_equal_rows() -> None:
    rows = HashedEmbedder().embed(["use tabs", "use spaces", "use tabs", ""])
    assert rows.dtype == np.float32
    assert rows.shape == (4, 256)
    assert np.allclose(np.linalg.norm(rows[:3], axis=1), 1.0, atol=1e-6)
    assert (rows[0] == rows[2]).all()
    assert (rows[0] != rows[1]).any()
    assert not rows[3].any()
    assert HashedEmbedder().embed([]).shape == (0, 256)


def test_of_the_persons_episodes_only_their_own_words_are_embedded() -> None:
    _, note = said("Use tabs.", 0, "a", gist="The person refused Bash: Use tabs.", title="Tabs")
    assert text_of(note) == "Use tabs."
    _, agents = claimed("Wait, that is odd", 0, "a")
    assert text_of(msgspec.structs.replace(agents, gist="more")) == "Wait, that is odd\nmore"


def test_an_error_is_masked_but_its_code_stays_and_a_later_fix_changes_nothing() -> None:
    _, error = failed("Build error: src/a.ts(12,5): error TS2304: Cannot find name 'Order'", 0, "a")
    text = text_of(error)
    assert "TS2304" in text
    assert "Order" not in text
    assert text_of(msgspec.structs.replace(error, fix="x", detail="y", settled_at=9)) == text


def test_each_kind_of_episode_teaches_its_kind_of_lesson_or_none() -> None:
    _, note = said("Use tabs.", 0, "a")

    def kind(of: EpisodeKind, origin: Origin = Origin.HUMAN, quote: str = "x") -> LessonKind | None:
        return lesson_kind_of(msgspec.structs.replace(note, kind=of, origin=origin, quote=quote))

    assert kind(EpisodeKind.CORRECTION) == LessonKind.RULE
    assert kind(EpisodeKind.REFUSAL) == LessonKind.RULE
    assert kind(EpisodeKind.REFUSAL, quote="") is None
    assert kind(EpisodeKind.NOTE) == LessonKind.RULE
    assert kind(EpisodeKind.NOTE, Origin.ASSISTANT) == LessonKind.NOTE
    assert kind(EpisodeKind.ERROR, Origin.TOOL) == LessonKind.ERROR
    assert kind(EpisodeKind.SURPRISE, Origin.ASSISTANT) == LessonKind.SURPRISE
    for none in (EpisodeKind.SESSION, EpisodeKind.INTERRUPTION, EpisodeKind.ENVIRONMENT):
        assert kind(none) is None
