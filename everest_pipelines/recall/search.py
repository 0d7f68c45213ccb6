"""Finding what bears on a prompt: BM25 over the prompt's rarest words, nothing by force."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from everest_pipelines.recall import rank
from everest_pipelines.recall.snapshot import EVERYWHERE, LESSON_COLUMNS, Lesson, Snapshot
from everest_pipelines.recall.terms import query_terms

CANDIDATES = 64  # best by FTS5's own BM25, ranked again below
_EPISODE_COLUMNS = "id, project, kind, title, gist, quote, session, occurred_at"


class Hit(NamedTuple):
    """A lesson that bears on a prompt."""

    lesson_id: str
    short_id: str
    text: str
    score: float  # BM25 plus the small terms; comparable within one answer only
    state: str
    why: str  # the words in common, most telling first
    kind: str
    scope: str
    fix: str
    quote: str


class EpisodeHit(NamedTuple):
    """An episode that bears on a prompt."""

    episode_id: str
    project: str
    kind: str
    title: str
    gist: str
    quote: str
    session: str
    occurred_at: int  # microseconds UTC
    score: float
    why: str


class _Candidate(NamedTuple):
    row: tuple[Any, ...]
    score: float
    shared: list[str]


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
    columns = f"{LESSON_COLUMNS}, terms"
    found: list[tuple[_Candidate, Lesson]] = []
    strengths: dict[str, float] = {}
    wanted = CANDIDATES + len(hidden)
    for candidate in _candidates(snapshot, "lessons", columns, query, project, kind, wanted):
        lesson = Lesson(*candidate.row[:-1])
        if not {lesson.id, lesson.short_id, lesson.value_key}.isdisjoint(hidden):
            continue
        found.append((candidate, lesson))
        strengths[lesson.id] = lesson.strength
    best = max((candidate.score for candidate, _ in found), default=0.0)
    newest = int(snapshot.meta["newest_at"])
    hits = [
        Hit(
            lesson_id=lesson.id,
            short_id=lesson.short_id,
            text=lesson.text,
            score=rank.whole(
                candidate.score,
                best,
                age=newest - lesson.last_seen_at,
                strength=lesson.strength,
            ),
            state=lesson.state,
            why=", ".join(candidate.shared),
            kind=lesson.kind,
            scope=lesson.scope,
            fix=lesson.fix,
            quote=lesson.quote,
        )
        for candidate, lesson in found
    ]
    hits.sort(key=lambda hit: (-hit.score, -strengths[hit.lesson_id], hit.lesson_id))
    return hits[: max(k, 0)]


def search_episodes(
    snapshot: Snapshot, query: str, *, project: str, k: int = 5, kind: str | None = None
) -> list[EpisodeHit]:
    """At most `k` episodes of `project` and of everywhere, best first; gated as `search` is."""
    found = list(
        _candidates(
            snapshot, "episodes", f"{_EPISODE_COLUMNS}, terms", query, project, kind, CANDIDATES
        )
    )
    best = max((candidate.score for candidate in found), default=0.0)
    newest = int(snapshot.meta["newest_at"])
    hits: list[EpisodeHit] = []
    for candidate in found:
        fields = candidate.row[:-1]
        score = rank.whole(candidate.score, best, age=newest - fields[-1])
        hits.append(EpisodeHit._make((*fields, score, ", ".join(candidate.shared))))
    return sorted(hits, key=lambda hit: (-hit.score, hit.episode_id))[: max(k, 0)]


def _candidates(
    snapshot: Snapshot,
    part: str,
    columns: str,
    query: str,
    project: str,
    kind: str | None,
    limit: int,
) -> Iterator[_Candidate]:
    """Rows of the project's and the shared range that share a word, scored by BM25."""
    rarest = _rarest(snapshot, part, query_terms(query))
    if not rarest:
        return
    asked = " OR ".join(f'"{term}"' for term in rarest)
    selected = ", ".join(f"t.{column.strip()}" for column in columns.split(","))
    for scope in dict.fromkeys((project, EVERYWHERE)):
        rows = snapshot.range(part, scope)
        if rows is None:
            continue
        of_kind, kinds = ("", []) if kind is None else (" AND t.kind = ?", [kind])
        answer = snapshot.connection.execute(
            f"SELECT {selected} FROM {part}_index i JOIN {part} t ON t.row = i.rowid"
            f" WHERE {part}_index MATCH ? AND i.rowid BETWEEN ? AND ?{of_kind}"
            " ORDER BY i.rank LIMIT ?",
            [asked, *rows, *kinds, limit],
        )
        for row in answer:
            score, shared = _bm25(snapshot, part, row[-1].split(), rarest)
            if shared:
                yield _Candidate(row, score, shared)


def _rarest(snapshot: Snapshot, part: str, terms: Sequence[str]) -> dict[str, int]:
    """The rarest known terms and the documents that hold them, within the budget of postings."""
    if not terms:
        return {}
    marks = ", ".join("?" * len(terms))
    known = snapshot.connection.execute(
        f"SELECT term, documents FROM {part}_terms WHERE term IN ({marks})", list(terms)
    )
    return rank.rarest(known)


def _bm25(
    snapshot: Snapshot, part: str, document: Sequence[str], terms: dict[str, int]
) -> tuple[float, list[str]]:
    """BM25 of a document and the words in common, most telling first."""
    total = int(snapshot.meta[part])
    length = len(document) / float(snapshot.meta[f"{part}_length"])
    score = 0.0
    shared: list[str] = []
    for term, documents in terms.items():
        count = document.count(term)
        if count:
            score += rank.part(rank.idf(total, documents), count, length)
            shared.append(term)
    return score, shared
