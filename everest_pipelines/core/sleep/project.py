"""One project's memory while it is being folded, and the steps of one day."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from everest_pipelines.core import trust
from everest_pipelines.core.embed import lesson_kind_of
from everest_pipelines.core.records import (
    Day,
    Episode,
    LessonKind,
    Merge,
    Micros,
    ProjectKey,
    State,
)
from everest_pipelines.core.sleep import predict, states
from everest_pipelines.core.sleep.calibration import Calibration, centred
from everest_pipelines.core.sleep.cluster import Pool
from everest_pipelines.core.sleep.join import Sums, join
from everest_pipelines.core.sleep.lesson import (
    Decision,
    Lesson,
    Source,
    apart,
    choose_text,
    lesson_id_of,
    resum,
    sign_of,
)
from everest_pipelines.core.sleep.merge import merge
from everest_pipelines.core.sleep.rows import revision_of
from everest_pipelines.core.trust import Entry
from everest_pipelines.text.value_key import value_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from everest_pipelines.core.sleep.fold import Folded

    Vector = NDArray[Any]
else:
    Vector = Any

_KIND_ORDER = {"correction": 0, "note": 1, "refusal": 2}
PREDICTED_FROM = 1.0  # strength


class Project:
    """The working state; ``fold_day`` moves it over one day."""

    def __init__(
        self,
        *,
        scope: ProjectKey,
        day_end: Callable[[Day], Micros],
        calibration: Calibration,
        vectors: Mapping[str, Vector],
    ) -> None:
        self.scope = scope
        self.unresolved: list[Entry] = []
        self._day_end = day_end
        self._cal = calibration
        self._vectors = vectors
        self._lessons: dict[str, Lesson] = {}
        self._sums: dict[LessonKind, Sums] = {kind: Sums() for kind in LessonKind}
        self._pools = {kind: Pool(calibration.of(kind).cluster) for kind in LessonKind}
        self._pooled: dict[str, Source] = {}  # every source that waits or waited
        self._home: dict[str, Lesson | None] = {}  # episode -> its lesson; None: set aside
        self._words = states.Words()
        self._due: set[Day] = set()  # days on which a prediction must be resolved
        self._rivals: dict[str, set[str]] = {}
        self._tallies = {kind: predict.Tally() for kind in LessonKind}
        self._told: list[Entry] = []
        self._dead: frozenset[str] = frozenset()

    @property
    def waiting(self) -> int:
        """Unjoined episodes."""
        return sum(len(pool) for pool in self._pools.values())

    def fold_day(
        self, day: Day, rows: Sequence[Episode], entries: Sequence[Entry], done: Folded
    ) -> list[Day]:
        """Folds one day into ``done``; returns the days on which predictions fall due."""
        ordinal = dt.date.fromisoformat(day).toordinal()
        touched: dict[str, Lesson] = {}
        asked = self._resolve_due(day, done)
        self._hear(entries, touched)
        new = self._read(day, ordinal, rows, touched)
        for kind in LessonKind:
            own = [source for source in new if source.kind == kind]
            seeds = self._join(kind, own, day, done, touched)
            if seeds:
                self._cluster(kind, seeds, ordinal, touched, day, done)
            self._merge(kind, day, touched, done)
        self._hear_again(touched)
        self._find_rivals(touched)
        self._write(day, ordinal, touched, done)
        asked.update(touched)
        return self._predict(day, ordinal, asked, done)

    # -- the person's decisions -------------------------------------------------------------

    def _hear(self, entries: Sequence[Entry], touched: dict[str, Lesson]) -> None:
        if not entries:
            return
        self._told.extend(entries)
        self._dead = trust.tombstones(self._told, scope=self.scope)
        for entry in entries:
            if entry.get("kind") == "recall":
                self._recalled(entry)
            elif trust.decided(entry) is not None and not self._review(entry, touched):
                self.unresolved.append(entry)
        for lesson in self._lessons.values():
            if lesson.key in self._dead and not lesson.into:
                touched[lesson.lesson_id] = lesson

    def _hear_again(self, touched: dict[str, Lesson]) -> None:
        self.unresolved = [e for e in self.unresolved if not self._review(e, touched)]

    def _review(self, entry: Entry, touched: dict[str, Lesson]) -> bool:
        lesson = self._answers(entry)
        if lesson is None:
            return False
        state, action = trust.decided(entry), str(entry["action"])
        text = lesson.decision.text if lesson.decision else ""
        if action == "edit" and entry.get("text"):
            text = str(entry["text"])
        was_pinned = lesson.decision is not None and lesson.decision.state == State.PINNED
        if action == "edit" and was_pinned:
            state = State.PINNED
        lesson.decision = Decision(state, int(entry["recorded_at"]), text, action)
        if state == State.REJECTED:
            lesson.state = state  # from now on it takes nothing but its own words
        if state not in (State.REJECTED, State.RETIRED):
            lesson.near_rejected = ""
        touched[lesson.lesson_id] = lesson
        return True

    def _answers(self, entry: Entry) -> Lesson | None:
        lesson = self._lessons.get(str(entry.get("lesson_id", "")))
        if lesson is not None:
            return self._living(lesson)
        keys, sources = trust.keys_of(entry), set(entry.get("sources") or ())
        living = [lesson for lesson in self._lessons.values() if not lesson.into]
        alike = sorted((x for x in living if x.key in keys), key=lambda x: x.lesson_id)
        if alike:
            return alike[0]
        shared = sorted((-len(sources & x.sources.keys()), x.lesson_id) for x in living)
        return self._lessons[shared[0][1]] if shared and shared[0][0] < 0 else None

    def _living(self, lesson: Lesson) -> Lesson:
        while lesson.into:
            lesson = self._lessons[lesson.into]
        return lesson

    def _recalled(self, entry: Entry) -> None:
        """A rendered recall: +0.1, and the family in which it was shown corroborates no more."""
        at = int(entry["recorded_at"])
        ordinal = dt.date.fromisoformat(self._day_of_entry(at)).toordinal()
        for lesson_id in entry.get("lesson_ids") or ():
            known = self._lessons.get(str(lesson_id))
            if known is None or not entry.get("rendered"):
                continue
            lesson = self._living(known)
            lesson.recalls.append(ordinal)
            family = str(entry.get("family_id") or entry.get("session_id") or "")
            if family:
                lesson.shown_to.setdefault(family, at)

    def _day_of_entry(self, at: Micros) -> Day:
        from everest_pipelines.core.sleep.fold import day_of

        return day_of(at, self._day_end)

    # -- the day's episodes ------------------------------------------------------------------

    def _read(
        self, day: Day, ordinal: int, rows: Sequence[Episode], touched: dict[str, Lesson]
    ) -> list[Source]:
        """New sources of the day; a later row of a known episode replaces its content."""
        newest = {row.episode_id: row for row in rows}
        new: list[Source] = []
        for episode in newest.values():
            kind = lesson_kind_of(episode)
            if kind is None:
                continue
            name = episode.episode_id
            if name in self._home:
                self._replace(episode, self._home[name], touched)
            elif name in self._pooled:
                waiting = dataclasses.replace(
                    self._pooled[name], episode=episode, sign=sign_of(episode)
                )
                self._pooled[name] = waiting
                if name in self._pools[waiting.kind]:
                    self._pools[waiting.kind].replace(waiting)
                    new.append(waiting)
            else:
                vector = self._vectors.get(name)
                if vector is None:
                    raise ValueError(f"episode {name} of {day} has no vector")
                moved = centred(vector, self._cal)
                new.append(Source(episode, kind, day, ordinal, moved, sign_of(episode)))
        return sorted(self._without_echoes(new), key=lambda source: source.key)

    def _replace(self, episode: Episode, lesson: Lesson | None, touched: dict[str, Lesson]) -> None:
        if lesson is None:
            return
        lesson = self._living(lesson)
        old = lesson.sources[episode.episode_id]
        lesson.put(dataclasses.replace(old, episode=episode, sign=sign_of(episode)))
        touched[lesson.lesson_id] = lesson

    def _without_echoes(self, new: Sequence[Source]) -> Iterator[Source]:
        """One source for one passage: a correction and a note of the same words are one."""
        taken: dict[str, list[Episode]] = {}
        for source in sorted(new, key=_preference):
            episode = source.episode
            passages = taken.setdefault(episode.turn_id, [])
            rule = source.kind == LessonKind.RULE and bool(episode.turn_id)
            if rule and any(_overlap(episode, other) for other in passages):
                self._home[episode.episode_id] = None
                continue
            passages.append(episode)
            yield source

    def _join(
        self,
        kind: LessonKind,
        own: Sequence[Source],
        day: Day,
        done: Folded,
        touched: dict[str, Lesson],
    ) -> list[str]:
        """Joins what fits; the rest waits in the pool, and its names are returned."""
        fresh = [source for source in own if source.episode.episode_id not in self._pooled]
        sums = self._sums[kind]
        joined = join(fresh, sums, self._cal.of(kind).join)
        for source, lesson in joined:
            self._home[source.episode.episode_id] = lesson
            touched[lesson.lesson_id] = lesson
            self._confirm(lesson, source, day, done)
        for lesson in {lesson.lesson_id: lesson for _, lesson in joined}.values():
            sums.put(lesson)
        rest = [source for source in fresh if source.episode.episode_id not in self._home]
        self._pooled.update((source.episode.episode_id, source) for source in rest)
        self._pools[kind].add(rest)
        return [s.episode.episode_id for s in own if s.episode.episode_id not in self._home]

    def _cluster(
        self,
        kind: LessonKind,
        seeds: Sequence[str],
        ordinal: int,
        touched: dict[str, Lesson],
        day: Day,
        done: Folded,
    ) -> None:
        pool = self._pools[kind]
        pool.fade(ordinal)
        for cluster in pool.clusters(seeds):
            families = {source.family for source in cluster}
            if len(families) < 2 and not any(source.states for source in cluster):
                continue
            pool.remove(source.episode.episode_id for source in cluster)
            self._found(kind, cluster, touched, day, done)

    def _found(
        self,
        kind: LessonKind,
        cluster: Sequence[Source],
        touched: dict[str, Lesson],
        day: Day,
        done: Folded,
    ) -> None:
        """A new lesson of these sources, unless all it says was rejected before."""
        lesson_id = lesson_id_of(kind, self.scope, cluster[0].episode.episode_id)
        lesson = Lesson(lesson_id, kind, self.scope, resum(cluster))
        for source in cluster:
            lesson.put(source)
        text, _ = choose_text(lesson, self._dead)
        if not text:
            done.refused.append((day, lesson_id, "the person rejected this value"))
            self._home.update((source.episode.episode_id, None) for source in cluster)
            self._record_refusal(cluster, touched)
            return
        lesson.text, lesson.key = text, value_key(text)
        lesson.near_rejected = self._rejected_near(lesson)
        self._lessons[lesson_id] = lesson
        self._home.update((source.episode.episode_id, lesson) for source in cluster)
        self._sums[kind].put(lesson)
        touched[lesson_id] = lesson

    def _record_refusal(self, cluster: Sequence[Source], touched: dict[str, Lesson]) -> None:
        """The refused write is told of on the rejection that refused it."""
        said = {value_key(source.episode.title) for source in cluster}
        said |= {value_key(source.episode.quote) for source in cluster}
        for lesson in self._lessons.values():
            if lesson.key in said and not lesson.into:
                lesson.refused += len(cluster)
                touched[lesson.lesson_id] = lesson

    def _rejected_near(self, lesson: Lesson) -> str:
        sums = self._sums[lesson.kind]
        scores = sums.links(lesson)
        near = [
            (-float(scores[column]), other.lesson_id)
            for column, other in enumerate(sums.lessons)
            if other.state == State.REJECTED
            and scores[column] >= self._cal.of(lesson.kind).join
            and all(apart(a, b) is None for a in other.signs for b in lesson.signs)
        ]
        return min(near)[1] if near else ""

    def _merge(self, kind: LessonKind, day: Day, touched: dict[str, Lesson], done: Folded) -> None:
        own = [x for x in touched.values() if x.kind == kind and not x.into]
        for gone, kept in merge(own, self._sums[kind], self._cal.of(kind).merge):
            touched[gone.lesson_id], touched[kept.lesson_id] = gone, kept
            for name in gone.sources:
                self._home[name] = kept
            if gone.row is not None:  # one that was made today was never written
                made = min(s.episode.occurred_at for s in gone.sources.values())
                why = "average linkage of their sources"
                row = Merge(
                    old_id=gone.lesson_id,
                    new_id=kept.lesson_id,
                    old_created_at=made,
                    merged_on=day,
                    why=why,
                )
                done.merges.append((day, row))

    # -- opposites, rows, predictions --------------------------------------------------------

    def _find_rivals(self, touched: dict[str, Lesson]) -> None:
        """Notes who contradicts whom, and touches everyone whose state may change by it."""
        rules = [x for x in touched.values() if x.kind == LessonKind.RULE]
        for lesson in rules:
            self._words.put(lesson)
        for lesson in rules:
            rivals = set[str]()
            if not lesson.into:
                near = [self._lessons[name] for name in self._words.near(lesson)]
                rivals = {
                    other.lesson_id
                    for other in near
                    if not other.into and states.contradict(lesson, other)
                }
            for name in self._rivals.get(lesson.lesson_id, set[str]()) | rivals:
                known = self._rivals.setdefault(name, set())
                known.discard(lesson.lesson_id)
                if name in rivals:
                    known.add(lesson.lesson_id)
                touched[name] = self._lessons[name]
            self._rivals[lesson.lesson_id] = rivals

    def _write(self, day: Day, ordinal: int, touched: dict[str, Lesson], done: Folded) -> None:
        for lesson_id in sorted(touched):
            lesson = touched[lesson_id]
            rivals = [self._lessons[name] for name in self._rivals.get(lesson_id, ())]
            lesson.state, lesson.reason, lesson.ended_at = states.settle(lesson, rivals)
            if lesson.into and lesson.row is None:
                continue
            if lesson.refused:
                lesson.reason += f"; refused {lesson.refused} more that said it again"
            row, refused = revision_of(
                lesson, dead=self._dead, ordinal=ordinal, now=self._day_end(day)
            )
            if refused:
                done.refused.append((day, lesson_id, refused))
            if row is not None:
                done.lessons.append((day, row))

    def _resolve_due(self, day: Day, done: Folded) -> dict[str, Lesson]:
        asked: dict[str, Lesson] = {}
        if day not in self._due:
            return asked
        for lesson in sorted(self._lessons.values(), key=lambda x: x.lesson_id):
            late = [o for o in lesson.history.open if o.prediction.due_on < day]
            for one in late:
                self._close(lesson, one, day, "", done)
                asked[lesson.lesson_id] = lesson
        return asked

    def _confirm(self, lesson: Lesson, source: Source, day: Day, done: Folded) -> None:
        for one in [o for o in lesson.history.open if source.family not in o.families]:
            self._close(lesson, one, day, source.episode.episode_id, done)

    def _close(
        self, lesson: Lesson, one: predict.Open, day: Day, by_episode: str, done: Folded
    ) -> None:
        lesson.history.open.remove(one)
        lesson.history.tally.add(bool(by_episode))
        self._tallies[lesson.kind].add(bool(by_episode))
        row = predict.resolve(one.prediction, on=day, by_episode=by_episode)
        done.verifications.append((day, row))

    def _predict(self, day: Day, ordinal: int, asked: dict[str, Lesson], done: Folded) -> list[Day]:
        due: list[Day] = []
        for lesson_id in sorted(asked):
            lesson = asked[lesson_id]
            if lesson.into or lesson.history.open or lesson.state in _NOT_PREDICTED:
                continue
            if lesson.strength(ordinal) < PREDICTED_FROM:
                continue
            likely = predict.probability(
                lesson.history.tally,
                self._tallies[lesson.kind],
                kind=lesson.kind,
                seen=sorted({source.ordinal for source in lesson.sources.values()}),
                today=ordinal,
            )
            made = predict.predict(
                lesson_id, lesson.text, likely, day=day, made_at=self._day_end(day)
            )
            lesson.history.open.append(predict.Open(made, frozenset(lesson.families())))
            done.predictions.append((day, made))
            due.append(predict.day_after(made.due_on, 1))
        self._due.update(due)
        return due


_NOT_PREDICTED = frozenset({State.REJECTED, State.RETIRED, State.SUPERSEDED})


def _preference(source: Source) -> tuple[bool, bool, int, tuple[Day, str]]:
    episode = source.episode
    order = _KIND_ORDER.get(episode.kind.value, 3)
    return not episode.standing, not episode.sure, order, source.key


def _overlap(a: Episode, b: Episode) -> bool:
    if a.quote and b.quote and a.quote_to and b.quote_to:
        return a.quote_from < b.quote_to and b.quote_from < a.quote_to
    return value_key(a.title) == value_key(b.title)
