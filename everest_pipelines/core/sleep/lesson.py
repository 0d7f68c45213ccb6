"""A lesson while it is being folded: its sources, their sum, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from everest_pipelines.core.embed import lesson_kind_of, text_of
from everest_pipelines.core.records import (
    Day,
    Episode,
    LessonKind,
    LessonRevision,
    Micros,
    Origin,
    ProjectKey,
    State,
)
from everest_pipelines.core.sleep import guard
from everest_pipelines.core.sleep.predict import History
from everest_pipelines.core.sleep.strength import strength_of
from everest_pipelines.text.hashed import mask_error
from everest_pipelines.text.ids import digest
from everest_pipelines.text.value_key import value_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[Any]
else:
    Vector = Any

Sign = guard.Stance | guard.ErrorSigns | None


@dataclass(frozen=True, slots=True)
class Source:
    """An episode as the fold sees it: its newest row, the day of its first one, its vector."""

    episode: Episode
    kind: LessonKind
    day: Day
    ordinal: int  # of the day
    vector: Vector
    sign: Sign

    @property
    def key(self) -> tuple[Day, str]:
        return self.day, self.episode.episode_id

    @property
    def family(self) -> str:
        return self.episode.family_id or self.episode.session_id or self.episode.episode_id

    @property
    def human(self) -> bool:
        return self.episode.origin == Origin.HUMAN

    @property
    def states(self) -> bool:
        """A sure standing statement of the person: a lesson at once."""
        episode = self.episode
        return self.kind == LessonKind.RULE and self.human and episode.standing and episode.sure


def sign_of(episode: Episode) -> Sign:
    """What the guard compares of an episode."""
    kind = lesson_kind_of(episode)
    if kind == LessonKind.RULE:
        return guard.stance(text_of(episode))
    if kind == LessonKind.ERROR:
        return guard.error_signs(episode.title or episode.gist, episode.sub)
    return None


def apart(one: Sign, other: Sign) -> guard.Block | None:
    """Why the guard keeps two sources apart."""
    if isinstance(one, guard.Stance) and isinstance(other, guard.Stance):
        return guard.rules_apart(one, other)
    if isinstance(one, guard.ErrorSigns) and isinstance(other, guard.ErrorSigns):
        return guard.errors_apart(one, other)
    return None


@dataclass(slots=True)
class Decision:
    """What a person decided about a lesson."""

    state: State | None = None  # None: only the text was edited
    at: Micros = 0
    text: str = ""
    reason: str = ""


@dataclass(slots=True, eq=False)
class Lesson:
    """Mutable working state; a row of it is written on every day that changes it."""

    lesson_id: str
    kind: LessonKind
    scope: ProjectKey
    total: Vector  # sum of the sources' vectors
    sources: dict[str, Source] = field(default_factory=dict[str, Source])
    signs: list[Sign] = field(default_factory=list[Sign])
    decision: Decision | None = None
    state: State = State.CANDIDATE
    reason: str = ""
    ended_at: Micros | None = None
    into: str = ""  # the lesson that this one was merged into
    merged: list[str] = field(default_factory=list[str])
    near_rejected: str = ""
    refused: int = 0  # sources that said again what was rejected here, and founded nothing
    recalls: list[int] = field(default_factory=list[int])  # day ordinals of rendered recalls
    shown_to: dict[str, Micros] = field(default_factory=dict[str, Micros])  # family: first time
    history: History = field(default_factory=History)
    row: LessonRevision | None = None
    text: str = ""
    key: str = ""

    def add(self, source: Source) -> None:
        """One more source; sums are taken in the order in which the fold adds them."""
        self.total = self.total + source.vector
        self.put(source)

    def put(self, source: Source) -> None:
        """Adds or replaces a source's content without touching the sum."""
        self.sources[source.episode.episode_id] = source
        if source.sign not in self.signs:
            self.signs.append(source.sign)

    @property
    def count(self) -> int:
        return len(self.sources)

    def ordered(self) -> list[Source]:
        """The sources by (day, episode_id)."""
        return sorted(self.sources.values(), key=lambda source: source.key)

    def allows(self, sign: Sign) -> bool:
        """Whether the guard lets this sign into the lesson."""
        return all(apart(own, sign) is None for own in self.signs)

    def families(self) -> set[str]:
        return {source.family for source in self.sources.values()}

    def last_statement(self) -> Micros:
        """When the person last said it (microseconds UTC), 0 when never."""
        said = [s.episode.occurred_at for s in self.sources.values() if s.human]
        return max(said, default=0)

    def strength(self, ordinal: int) -> float:
        """Strength at the end of the day with that ordinal; one turn counts once."""
        turns: dict[str, int] = {}
        for source in self.ordered():
            turns.setdefault(source.episode.turn_id or source.episode.episode_id, source.ordinal)
        return strength_of(
            (ordinal - day for day in turns.values()),
            (ordinal - day for day in self.recalls),
        )


def lesson_id_of(kind: LessonKind, scope: ProjectKey, oldest_source: str) -> str:
    """The id of the lesson that this episode founds."""
    return digest("lesson", kind.value, scope, oldest_source)


def choose_text(lesson: Lesson, tombstones: frozenset[str]) -> tuple[str, Source | None]:
    """The lesson's text and the source that gave it; rejected wordings are passed over."""
    if lesson.decision is not None and lesson.decision.text:
        return lesson.decision.text, _newest(lesson.sources.values())
    ranked = sorted(
        lesson.sources.values(),
        key=lambda s: (s.states, s.episode.sure, s.episode.occurred_at, s.episode.episode_id),
        reverse=True,
    )
    for source in ranked:
        text = _text_of(lesson, source)
        if text and value_key(text) not in tombstones:
            return text, source
    return "", None


def fix_of(lesson: Lesson) -> str:
    """What worked the last time, "" when nothing is known to."""
    newest = sorted(lesson.sources.values(), key=lambda s: s.key, reverse=True)
    return next((source.episode.fix for source in newest if source.episode.fix), "")


def _text_of(lesson: Lesson, source: Source) -> str:
    if lesson.kind != LessonKind.ERROR:
        return (source.episode.title or source.episode.quote).strip()
    titles = {own.episode.title for own in lesson.sources.values()}
    message = source.episode.title if len(titles) == 1 else mask_error(source.episode.title)
    fix = fix_of(lesson)
    return f"{message.rstrip(' .:…')}. Then {fix}" if fix else message


def _newest(sources: Iterable[Source]) -> Source | None:
    return max(sources, key=lambda s: (s.episode.occurred_at, s.episode.episode_id), default=None)


def resum(sources: Sequence[Source]) -> Vector:
    """The float64 sum of the vectors, in the order given."""
    total = sources[0].vector.copy()
    for source in sources[1:]:
        total = total + source.vector
    return total
