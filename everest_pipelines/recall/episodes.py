"""Past episodes that bear on a prompt, with what was said beside them and in their session."""

from __future__ import annotations

from everest_pipelines.recall import rank
from everest_pipelines.recall.search import any_of, bm25, rarest_terms
from everest_pipelines.recall.snapshot import EVERYWHERE, Snapshot
from everest_pipelines.recall.terms import query_terms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

POOL = 256  # best by FTS5's own BM25; of these come neighbours and sessions
BESIDE = 0.3  # of a neighbour's BM25: LoCoMo R@10 0.62 without, 0.70 with
SESSION = 0.3  # of the sum of the session's best: LoCoMo R@10 0.70 without, 0.73 with
SESSION_BEST = 3

_COLUMNS = "row, id, project, kind, title, gist, quote, session, occurred_at, terms, replaced_by"


class EpisodeHit:
    """An episode that bears on a prompt. `occurred_at` in microseconds UTC."""

    __slots__ = (
        "episode_id",
        "gist",
        "kind",
        "occurred_at",
        "parts",
        "project",
        "quote",
        "score",
        "session",
        "title",
        "why",
    )

    def __init__(
        self,
        *,
        episode_id: str,
        project: str,
        kind: str,
        title: str,
        gist: str,
        quote: str,
        session: str,
        occurred_at: int,
        score: float,
        why: str,
        parts: Sequence[tuple[str, float]] = (),
    ) -> None:
        self.episode_id = episode_id
        self.project = project
        self.kind = kind
        self.title = title
        self.gist = gist
        self.quote = quote
        self.session = session
        self.occurred_at = occurred_at
        self.score = score
        self.why = why  # the words in common, most telling first; none: only beside it
        self.parts = tuple(parts)

    def as_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


class _Row:
    __slots__ = ("base", "beside", "fields", "replaced_by", "session", "shared")

    def __init__(self, fields: tuple[Any, ...]) -> None:
        self.fields = fields
        self.session = (fields[2], fields[7])
        self.replaced_by: int | None = fields[10]
        self.base = 0.0
        self.beside = 0.0
        self.shared: list[str] = []


def search_episodes(
    snapshot: Snapshot,
    query: str,
    *,
    project: str,
    k: int = 5,
    kind: str | None = None,
    hidden: Collection[str] = frozenset(),
) -> list[EpisodeHit]:
    """At most `k` episodes of `project` and of everywhere, best first.

    Where no episode shares a content word with `query`, nothing is returned; where some do, what
    stands beside them in their session may come along. An episode that says it replaces an earlier
    one comes before it. `hidden`: ids of episodes that must not be shown.
    """
    asked = query_terms(query)
    rarest = rarest_terms(snapshot, "episodes", asked)
    if not rarest:
        return []
    rows: dict[int, _Row] = {}
    for scope in dict.fromkeys((project, EVERYWHERE)):
        span = snapshot.range("episodes", scope)
        if span is not None:
            _matched(snapshot, rarest, span, rows)
    if not rows:
        return []
    sessions = _sessions(rows)
    best = max(row.base for row in rows.values())
    newest = int(snapshot.meta["newest_at"])
    hits: dict[int, EpisodeHit] = {}
    for at, row in rows.items():
        _, name, scope, kind_of, title, gist, quote, session, occurred_at, *_ = row.fields
        if name in hidden or (kind is not None and kind_of != kind):
            continue
        parts = (
            *rank.parts(row.base, best, age=newest - occurred_at),
            ("beside", round(BESIDE * row.beside, 6)),
            ("session", round(SESSION * sessions.get(row.session, 0.0), 6)),
        )
        hits[at] = EpisodeHit(
            episode_id=name,
            project=scope,
            kind=kind_of,
            title=title,
            gist=gist,
            quote=quote,
            session=session,
            occurred_at=occurred_at,
            score=rank.total(parts),
            why=", ".join(asked[term] for term in row.shared),
            parts=parts,
        )
    _current_first(rows, hits)
    return sorted(hits.values(), key=lambda hit: (-hit.score, hit.episode_id))[: max(k, 0)]


def _matched(
    snapshot: Snapshot, rarest: dict[str, float], span: tuple[int, int], rows: dict[int, _Row]
) -> None:
    """Adds the rows of a scope that share a word, what stands beside them, and what replaced them.

    Rows of one session lie together in the order of time, so a neighbour is the row before or
    behind.
    """
    first, last = span
    answer = snapshot.connection.execute(
        "SELECT rowid FROM episodes_index WHERE episodes_index MATCH ? AND rowid BETWEEN ? AND ?"
        " ORDER BY rank LIMIT ?",
        [any_of(rarest), first, last, POOL],
    )
    matched = [row[0] for row in answer]
    wanted = {at + step for at in matched for step in (-1, 0, 1) if first <= at + step <= last}
    _read(snapshot, wanted, rows)
    replacing = {row.replaced_by for row in rows.values() if row.replaced_by is not None}
    _read(snapshot, replacing - rows.keys(), rows)
    for at in wanted | replacing:
        row = rows[at]
        row.base, row.shared = bm25(snapshot, "episodes", row.fields[9].split(), rarest)
    for at in matched:
        row = rows[at]
        for near in (at - 1, at + 1):
            if near in rows and rows[near].session == row.session:
                rows[near].beside += row.base
    for at in wanted - set(matched):
        if not rows[at].beside and not rows[at].base:
            del rows[at]


def _read(snapshot: Snapshot, wanted: Collection[int], rows: dict[int, _Row]) -> None:
    if not wanted:
        return
    marks = ", ".join("?" * len(wanted))
    answer = snapshot.connection.execute(
        f"SELECT {_COLUMNS} FROM episodes WHERE row IN ({marks})", sorted(wanted)
    )
    for fields in answer:
        rows[fields[0]] = _Row(fields)


def _sessions(rows: dict[int, _Row]) -> dict[tuple[str, str], float]:
    """The sum of each session's best: what was said around it says what it was about."""
    scores: dict[tuple[str, str], list[float]] = {}
    for row in rows.values():
        if row.base:
            scores.setdefault(row.session, []).append(row.base)
    return {
        session: sum(sorted(found, reverse=True)[:SESSION_BEST])
        for session, found in scores.items()
    }


def _current_first(rows: dict[int, _Row], hits: dict[int, EpisodeHit]) -> None:
    """What replaced an earlier one takes the place of the best that it replaced."""
    for _ in range(len(rows)):  # a chain of replacements settles in its length; most have none
        moved = False
        for at, row in rows.items():
            by = row.replaced_by
            if by is None or at not in hits or by not in hits:
                continue
            if hits[by].score < hits[at].score:
                hits[by].score = round(hits[at].score + 1e-6, 6)
                moved = True
        if not moved:
            return
