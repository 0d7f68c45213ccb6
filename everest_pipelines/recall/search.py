"""Finding what bears on a prompt: BM25 over the prompt's rarest words, nothing by force."""

from __future__ import annotations

from everest_pipelines.recall import rank
from everest_pipelines.recall.snapshot import EVERYWHERE, LESSON_COLUMNS, Lesson, Snapshot
from everest_pipelines.recall.terms import query_terms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from typing import Any

CANDIDATES = 64  # best by FTS5's own BM25, ranked again below
VARIABLES = 900  # words looked up at once; SQLite's oldest limit is 999


class Hit:
    """A lesson that bears on a prompt."""

    __slots__ = (
        "fix",
        "kind",
        "lesson_id",
        "parts",
        "quote",
        "scope",
        "score",
        "short_id",
        "state",
        "text",
        "why",
    )

    def __init__(
        self,
        *,
        lesson_id: str,
        short_id: str,
        text: str,
        score: float,
        state: str,
        why: str,
        kind: str,
        scope: str,
        fix: str,
        quote: str,
        parts: Sequence[tuple[str, float]] = (),
    ) -> None:
        self.lesson_id = lesson_id
        self.short_id = short_id
        self.text = text
        self.score = score  # BM25 plus the small terms; comparable within one answer only
        self.state = state
        self.why = why  # the words in common, most telling first
        self.kind = kind
        self.scope = scope
        self.fix = fix
        self.quote = quote
        self.parts = tuple(parts)  # what the score is made of

    def as_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hit) and self.as_dict() == other.as_dict()

    __hash__ = None  # type: ignore[assignment]


class _Found:
    """A lesson while it is ranked."""

    __slots__ = ("base", "covered", "lesson", "named", "shared")

    def __init__(
        self, lesson: Lesson, base: float, covered: float, shared: list[str], named: bool
    ) -> None:
        self.lesson = lesson
        self.base = base
        self.covered = covered  # share of the lesson's own weight that the prompt holds
        self.shared = shared
        self.named = named


def search(
    snapshot: Snapshot,
    query: str,
    *,
    project: str,
    k: int = 5,
    kind: str | None = None,
    hidden: Collection[str] = frozenset(),
) -> list[Hit]:
    """At most `k` lessons of `project` and of everywhere, best first.

    A lesson that shares no content word with `query` is never returned, nor is one whose id, short
    id or value key is in `hidden`. Nothing found is an empty list: the search never widens.
    """
    return [hit for hit, _ in _ranked(snapshot, query, project, kind, hidden)][: max(k, 0)]


def bearing(
    snapshot: Snapshot,
    prompt: str,
    *,
    project: str,
    k: int = 3,
    kind: str | None = None,
    hidden: Collection[str] = frozenset(),
) -> list[Hit]:
    """Of what `search` finds, at most `k` lessons that are worth showing unasked, best first.

    What the prompt calls by its name comes alone, where something is; else what shares enough of
    the lesson's own weight (``rank.bears``).
    """
    ranked = _ranked(snapshot, prompt, project, kind, hidden)
    kept = [
        (hit, one) for hit, one in ranked if rank.bears(one.named, one.covered, len(one.shared))
    ]
    named = [hit for hit, one in kept if one.named]
    return (named or [hit for hit, _ in kept])[: max(k, 0)]


def _ranked(
    snapshot: Snapshot, query: str, project: str, kind: str | None, hidden: Collection[str]
) -> list[tuple[Hit, _Found]]:
    asked = query_terms(query)
    if not asked:
        return []
    found = _found(snapshot, asked, project, kind, hidden)
    best = max((one.base for one in found), default=0.0)
    newest = int(snapshot.meta["newest_at"])
    hits: list[tuple[Hit, _Found]] = []
    for one in found:
        lesson = one.lesson
        parts = rank.parts(
            one.base,
            best,
            age=newest - lesson.last_seen_at,
            strength=lesson.strength,
            named=one.named,
        )
        hit = Hit(
            lesson_id=lesson.id,
            short_id=lesson.short_id,
            text=lesson.text,
            score=rank.total(parts),
            state=lesson.state,
            why=", ".join(asked[term] for term in one.shared),
            kind=lesson.kind,
            scope=lesson.scope,
            fix=lesson.fix,
            quote=lesson.quote,
            parts=parts,
        )
        hits.append((hit, one))
    hits.sort(key=lambda pair: (-pair[0].score, -pair[1].lesson.strength, pair[0].lesson_id))
    return hits


def _found(
    snapshot: Snapshot,
    asked: dict[str, str],
    project: str,
    kind: str | None,
    hidden: Collection[str],
) -> list[_Found]:
    """Lessons of the project's and the shared range that share a word with the prompt."""
    rarest = rarest_terms(snapshot, "lessons", asked)
    named = _named(snapshot, list(asked))
    if not rarest and not named:
        return []
    spans = [
        span
        for scope in dict.fromkeys((project, EVERYWHERE))
        if (span := snapshot.range("lessons", scope)) is not None
    ]
    rows: dict[int, tuple[Any, ...]] = {}
    for span in spans:
        if rarest:
            matched = " FROM lessons_index i JOIN lessons t ON t.row = i.rowid WHERE"
            matched += " lessons_index MATCH ? AND i.rowid BETWEEN ? AND ?"
            _read(
                snapshot, matched, [any_of(rarest), *span], " ORDER BY i.rank", kind, hidden, rows
            )
        for row in sorted(named):
            if span[0] <= row <= span[1]:
                _read(snapshot, " FROM lessons t WHERE t.row = ?", [row], "", kind, hidden, rows)
    found: list[_Found] = []
    for row, (_, terms, weight, *fields) in rows.items():
        lesson = Lesson(*fields)
        if not lesson.keys().isdisjoint(hidden):
            continue
        base, shared = bm25(snapshot, "lessons", terms.split(), rarest)
        if shared or row in named:
            covered = sum(rarest[term] for term in shared) / weight if weight else 0.0
            found.append(_Found(lesson, base, covered, shared, row in named))
    return found


def _read(
    snapshot: Snapshot,
    what: str,
    values: list[Any],
    order: str,
    kind: str | None,
    hidden: Collection[str],
    rows: dict[int, tuple[Any, ...]],
) -> None:
    selected = ", ".join(f"t.{column.strip()}" for column in LESSON_COLUMNS.split(","))
    of_kind, kinds = ("", []) if kind is None else (" AND t.kind = ?", [kind])
    answer = snapshot.connection.execute(
        f"SELECT t.row, t.terms, t.weight, {selected}{what}{of_kind}{order} LIMIT ?",
        [*values, *kinds, CANDIDATES + len(hidden)],
    )
    for row in answer:
        rows[row[0]] = row


def _named(snapshot: Snapshot, terms: Sequence[str]) -> frozenset[int]:
    """Rows of the lessons whose matter these words call by its name, a slip of the pen allowed."""
    if snapshot.meta["names"] == "0":
        return frozenset()
    phrases = rank.phrases(terms)
    marks = ", ".join("?" * len(phrases))
    answer = snapshot.connection.execute(
        f"SELECT row FROM names WHERE phrase IN ({marks})", phrases
    )
    rows = {row[0] for row in answer}
    for phrase in phrases:
        if len(phrase) >= rank.SLIP_LENGTH:
            rows.update(_slips(snapshot, phrase))
    return frozenset(rows)


def _slips(snapshot: Snapshot, phrase: str) -> list[int]:
    """Rows of the names that `phrase` is one slip away from, unless all its words are known."""
    start = phrase[: rank.SLIP_START]
    near = snapshot.connection.execute(
        "SELECT phrase, row FROM names WHERE phrase >= ? AND phrase < ?",
        (start, start[:-1] + chr(ord(start[-1]) + 1)),
    )
    rows = [row for name, row in near if rank.one_slip(phrase, name)]
    if not rows:
        return []
    words = phrase.split()
    marks = ", ".join("?" * len(words))
    known = snapshot.connection.execute(
        f"SELECT count(*) FROM lessons_terms WHERE term IN ({marks})", words
    ).fetchone()[0]
    return rows if known < len(words) else []


def any_of(terms: Iterable[str]) -> str:
    return " OR ".join(f'"{term}"' for term in terms)


def rarest_terms(snapshot: Snapshot, part: str, terms: Iterable[str]) -> dict[str, float]:
    """The rarest known terms and what each weighs, within the budget of postings."""
    asked = list(terms)
    known: list[tuple[str, int]] = []
    for start in range(0, len(asked), VARIABLES):
        some = asked[start : start + VARIABLES]
        marks = ", ".join("?" * len(some))
        known += snapshot.connection.execute(
            f"SELECT term, documents FROM {part}_terms WHERE term IN ({marks})", some
        )
    if not known:
        return {}
    total = int(snapshot.meta[part])
    return {term: rank.idf(total, documents) for term, documents in rank.rarest(known).items()}


def bm25(
    snapshot: Snapshot, part: str, document: list[str], terms: dict[str, float]
) -> tuple[float, list[str]]:
    """BM25 of a document and the terms in common, most telling first."""
    length = len(document) / float(snapshot.meta[f"{part}_length"])
    score = 0.0
    shared: list[str] = []
    for term, weight in terms.items():
        count = document.count(term)
        if count:
            score += rank.part(weight, count, length)
            shared.append(term)
    return score, shared
