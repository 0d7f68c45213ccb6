"""The steps of the fold, each by itself."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from everest_pipelines.core.records import EVERYWHERE, LessonKind, State, Verification
from everest_pipelines.core.sleep import predict
from everest_pipelines.core.sleep.calibration import Cuts, calibration_of, centred
from everest_pipelines.core.sleep.cluster import Pool, average_linkage
from everest_pipelines.core.sleep.everywhere import fold_everywhere
from everest_pipelines.core.sleep.fold import fold
from everest_pipelines.core.sleep.lesson import Source, sign_of
from everest_pipelines.core.sleep.strength import (
    ARCHIVE_BELOW,
    episode_archived,
    is_archived,
    strength_at,
    strength_of,
)
from everest_pipelines_tests.core.sleep import making
from everest_pipelines_tests.core.sleep.making import day_end, day_of, folded, last, review, said

DAY = 86_400_000_000


def source(text: str, day: int, family: str) -> Source:
    iso, episode = said(text, day, family, standing=False)
    vector = centred(making.EMBEDDER.embed([text])[0], making.CALIBRATION)
    return Source(episode, LessonKind.RULE, iso, 700_000 + day, vector, sign_of(episode))


def test_strength_halves_in_45_days_and_recalls_count_a_tenth() -> None:
    assert strength_of([0]) == 1.0
    assert strength_of([45, 0]) == 1.5
    assert strength_of([90], [0]) == 0.35
    assert (episode_archived(123), episode_archived(124)) == (False, True)


def test_a_lesson_archives_by_decay_unless_the_person_keeps_it() -> None:
    (row,) = (row for _, row in folded([said("Use tabs.", 0, "a")], 0).lessons)
    late = row.valid_from + 124 * DAY
    assert strength_at(row, late) < ARCHIVE_BELOW
    assert is_archived(row, late)
    assert not is_archived(row, row.valid_from + 123 * DAY)
    assert not is_archived(msgspec.structs.replace(row, state=State.APPROVED), late)


def likely(own: predict.Tally, of_kind: predict.Tally, seen: list[int], today: int) -> float:
    return predict.probability(own, of_kind, kind=LessonKind.ERROR, seen=seen, today=today)


def test_a_probability_moves_from_the_kinds_base_rate_to_the_lessons_own_history() -> None:
    nothing = predict.Tally()
    assert likely(nothing, nothing, [5], 5) == predict.PRIOR[LessonKind.ERROR]
    rare, often = predict.Tally(hits=1, tries=40), predict.Tally(hits=36, tries=40)
    assert likely(nothing, rare, [5], 5) < 0.1 < 0.7 < likely(nothing, often, [5], 5)
    assert likely(predict.Tally(hits=40, tries=40), rare, [5], 5) > 0.8


def test_a_probability_fades_with_the_days_since_and_slower_after_longer_gaps() -> None:
    nothing = predict.Tally()
    fresh = likely(nothing, nothing, [5], 5)
    assert likely(nothing, nothing, [5], 12) == fresh / 2
    assert likely(nothing, nothing, [5], 90) < 0.001
    assert likely(nothing, nothing, [5, 35, 65], 95) == fresh / 2
    assert likely(nothing, nothing, [63, 64, 65], 72) == fresh / 2


def test_a_score_compares_what_was_said_with_what_came() -> None:
    def row(probability: float, outcome: bool) -> Verification:
        return Verification(
            prediction_id="p",
            lesson_id="l",
            outcome=outcome,
            resolved_on="2026-01-01",
            probability=probability,
        )

    assert predict.score([]) is None
    found = predict.score([row(0.9, True), row(0.1, False), row(0.15, True), row(0.0, False)])
    assert found is not None
    assert (found.count, found.came_true, found.base_brier) == (4, 2, 0.25)
    assert found.brier == pytest.approx((0.01 + 0.01 + 0.7225) / 4)
    assert [(band.at_least, band.count, band.came) for band in found.bands] == [
        (0.0, 1, 0.0),
        (0.1, 2, 0.5),
        (0.8, 1, 1.0),
    ]


def test_an_unknown_space_gets_documented_defaults_and_the_built_in_one_is_fitted() -> None:
    assert calibration_of("hashed-256-v1").fitted
    unknown = calibration_of("somebody-384-v1")
    assert (unknown.fitted, unknown.of(LessonKind.RULE).join) == (False, 0.85)
    assert not calibration_of("../hashed-256-v1").fitted


WORDS = ("alpha", "beta", "gamma", "delta", "omega")


@settings(max_examples=40, deadline=None)
@example(texts=["alpha alpha", "beta beta", "gamma alpha alpha", "alpha alpha", "alpha alpha beta"])
@given(
    texts=st.lists(
        st.lists(st.sampled_from(WORDS), min_size=2, max_size=5).map(" ".join),
        min_size=1,
        max_size=12,
    )
)
def test_clustering_by_components_gives_the_clusters_of_the_whole(texts: list[str]) -> None:
    sources = sorted(
        (source(text, number, f"f{number}") for number, text in enumerate(texts)),
        key=lambda one: one.key,
    )
    pool = Pool(0.6)
    pool.add(sources)
    found = pool.clusters([one.episode.episode_id for one in sources])
    whole: dict[int, set[str]] = {}
    labels = average_linkage(sources, 0.6) if len(sources) > 1 else [0]
    for label, one in zip(labels, sources, strict=True):
        whole.setdefault(label, set()).add(one.episode.episode_id)
    got = {frozenset(one.episode.episode_id for one in cluster) for cluster in found}
    for group in whole.values():
        if len(group) > 1:  # a single one is not handed out: nothing could become of it
            assert any(part <= group for part in got)
            assert set().union(*(part for part in got if part & group)) == group


def placed(text: str, day: int, vector: tuple[float, float]) -> Source:
    iso, episode = said(text, day, f"f{day}", standing=False)
    return Source(episode, LessonKind.RULE, iso, 700_000 + day, np.array(vector), sign_of(episode))


def test_a_tie_is_broken_the_same_way_whatever_else_is_clustered() -> None:
    """Of two as near to a third, one takes it; who is clustered besides does not decide which."""
    height = 0.75**0.5
    near = [
        placed("omega", 0, (0.5, height)),
        placed("omega", 1, (1.0, 0.0)),
        placed("omega", 2, (0.5, -height)),
    ]
    stranger = placed("omega", 3, (-0.8, -0.6))  # nearest to the last of them
    told = set[frozenset[int]]()
    for place in (None, 0, 1, 2, 3):
        mixed = list(near)
        if place is not None:
            mixed.insert(place, stranger)
        labels = average_linkage(mixed, 0.5)
        groups = {
            n: [s for s, label in zip(mixed, labels, strict=True) if label == n] for n in labels
        }
        told |= {frozenset(s.ordinal for s in group) for group in groups.values() if len(group) > 1}
    assert len(told) == 1
    assert len(next(iter(told))) == 2


def test_a_pool_forgets_what_was_taken_and_keeps_the_rest() -> None:
    pool = Pool(0.5)
    many = [source(f"rule number{n} about thing{n}", n, "a") for n in range(150)]
    pool.add(many[:100])
    pool.remove(one.episode.episode_id for one in many[:90])
    pool.add(many[100:])
    assert len(pool) == 60
    twin = source("rule number120 about thing120", 151, "b")
    pool.add([twin])
    (cluster,) = pool.clusters([twin.episode.episode_id])
    assert {one.episode.episode_id for one in cluster} == {
        many[120].episode.episode_id,
        twin.episode.episode_id,
    }


def test_a_point_that_was_emptied_and_fills_again_knows_who_came_meanwhile() -> None:
    pool = Pool(0.5)
    gone, back = (source("keep the changelog short", n, "a") for n in (0, 2))
    other = source("keep the changelog entry short", 1, "b")
    pool.add([gone])
    pool.remove([gone.episode.episode_id])
    pool.add([other])
    pool.add([back])
    (cluster,) = pool.clusters([back.episode.episode_id])
    assert [one.episode.episode_id for one in cluster] == [
        other.episode.episode_id,
        back.episode.episode_id,
    ]


def _merging(rows: list[making.Row], through: int):
    strict = msgspec.structs.replace(
        making.CALIBRATION, cuts={"rule": Cuts(join=0.9, cluster=0.9, merge=0.6)}
    )
    texts = [row[1].quote for row in rows]
    vectors = dict(
        zip([row[1].episode_id for row in rows], making.EMBEDDER.embed(texts), strict=True)
    )
    return fold(
        rows,
        vectors,
        scope=making.SCOPE,
        horizon=day_of(through),
        day_end=day_end,
        calibration=strict,
    )


def test_lessons_that_are_one_merge_into_the_older_and_leave_an_alias() -> None:
    rows = [
        said("Keep the changelog entry of each release short.", 0, "a"),
        said("Keep changelog entry short.", 3, "b"),
    ]
    assert float(np.dot(*making.EMBEDDER.embed([rows[0][1].quote, rows[1][1].quote]))) < 0.9
    done = _merging(rows, 3)
    assert [row.state for _, row in done.lessons] == [State.STATED, State.CORROBORATED]
    assert done.merges == []  # what was made and merged on one day was never written
    again = _merging([*rows[:1], said("Rebase before you push.", 1, "c"), rows[1]], 3)
    assert len({row.lesson_id for _, row in again.lessons}) == 2


def test_an_alias_ends_as_retired_and_its_sources_go_on_in_the_other() -> None:
    rows = [
        said("Changelog entries stay short.", 0, "a"),
        said("Release notes name the author.", 1, "b"),
        said("Changelog entries stay short and release notes name the author.", 2, "c"),
    ]
    strict = msgspec.structs.replace(
        making.CALIBRATION, cuts={"rule": Cuts(join=0.6, cluster=0.9, merge=0.3)}
    )
    vectors = {row[1].episode_id: making.EMBEDDER.embed([row[1].quote])[0] for row in rows}
    done = fold(
        rows, vectors, scope=making.SCOPE, horizon=day_of(2), day_end=day_end, calibration=strict
    )
    newest = {row.lesson_id: row for _, row in done.lessons}
    ((day, merged),) = done.merges
    assert day == day_of(2)
    old, new = newest[merged.old_id], newest[merged.new_id]
    assert (old.state, old.reason) == (State.RETIRED, f"merged into {new.lesson_id}")
    assert old.valid_to is not None
    assert new.source_lesson_ids == (old.lesson_id,)
    assert set(old.source_episode_ids) < set(new.source_episode_ids)
    reject = review(1, "reject", 3, lesson_id=old.lesson_id)
    later = fold(
        rows,
        vectors,
        scope=making.SCOPE,
        horizon=day_of(3),
        day_end=day_end,
        entries=[reject],
        calibration=strict,
    )
    assert {row.lesson_id: row.state for _, row in later.lessons}[new.lesson_id] == State.REJECTED


def test_only_the_persons_word_brings_a_lesson_everywhere() -> None:
    done = folded([said("Use tabs.", 0, "a")], 3)
    lesson = last(done)["Use tabs."]
    plain = review(1, "approve", 1, lesson_id=lesson.lesson_id)
    forged = review(2, "approve", 1, lesson_id=lesson.lesson_id, everywhere=True, actor="model")
    assert (
        fold_everywhere(done.lessons, [plain, forged], horizon=day_of(3), day_end=day_end).lessons
        == []
    )
    own = review(3, "approve", 1, lesson_id=lesson.lesson_id, everywhere=True)
    ((day, row),) = fold_everywhere(done.lessons, [own], horizon=day_of(3), day_end=day_end).lessons
    assert (day, row.scope, row.state) == (day_of(1), EVERYWHERE, State.APPROVED)
    assert row.source_lesson_ids == (lesson.lesson_id,)
    away = review(4, "retire", 2, lesson_id=row.lesson_id)
    *_, (day, gone) = fold_everywhere(
        done.lessons, [own, away], horizon=day_of(3), day_end=day_end
    ).lessons
    assert (day, gone.state, gone.revision) == (day_of(2), State.RETIRED, 2)


@pytest.mark.parametrize("zero", [True, False])
def test_a_zero_vector_stays_zero_and_others_have_length_one(zero: bool) -> None:
    vector = np.zeros(4) if zero else np.array([3.0, 4.0, 0.0, 0.0])
    assert float(np.linalg.norm(centred(vector, making.CALIBRATION))) == (0.0 if zero else 1.0)
