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

POOL = 128  # best by FTS5's own BM25; of these come neighbours and sessions
BESIDE = 0.3  # of a neighbour's BM25: LoCoMo R@10 0.62 without, 0.70 with
SESSION = 0.3  # of the sum of the session's best: LoCoMo R@10 0.70 without, 0.73 with
SESSION_BEST = 3

_TOLD = "row, id, project, kind, title, gist, quote, session, occurred_at"


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
    """An episode while it is ranked: what it says is read of the few that are told."""

    __slots__ = (
        "base",
        "beside",
        "id",
        "kind",
        "occurred_at",
        "parts",
        "replaced_by",
        "score",
        "session",
        "shared",
    )

    def __init__(
        self,
        id: str,
        kind: str,
        project: str,
        session: str,
        occurred_at: int,
        replaced_by: int | None,
    ) -> None:
        self.id = id
        self.kind = kind
        self.session = (project, session)
        self.occurred_at = occurred_at
        self.replaced_by = replaced_by
        self.base = 0.0
        self.beside = 0.0
        self.score = 0.0
        self.shared: list[str] = []
        self.parts: tuple[tuple[str, float], ...] = ()


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
    for row in rows.values():
        row.parts = (
            *rank.parts(row.base, best, age=newest - row.occurred_at),
            ("beside", round(BESIDE * row.beside, 6)),
            ("session", round(SESSION * sessions.get(row.session, 0.0), 6)),
        )
        row.score = rank.total(row.parts)
    _current_first(rows)
    wanted = [
        at
        for at, row in rows.items()
        if row.id not in hidden and (kind is None or row.kind == kind)
    ]
    wanted.sort(key=lambda at: (-rows[at].score, rows[at].id))
    return _told(snapshot, rows, wanted[: max(k, 0)], asked)


def _told(
    snapshot: Snapshot, rows: dict[int, _Row], wanted: Sequence[int], asked: dict[str, str]
) -> list[EpisodeHit]:
    marks = ", ".join("?" * len(wanted))
    answer = snapshot.connection.execute(
        f"SELECT {_TOLD} FROM episodes WHERE row IN ({marks})", list(wanted)
    )
    told = {fields[0]: fields[1:] for fields in answer}
    hits: list[EpisodeHit] = []
    for at in wanted:
        name, project, kind, title, gist, quote, session, occurred_at = told[at]
        row = rows[at]
        hits.append(
            EpisodeHit(
                episode_id=name,
                project=project,
                kind=kind,
                title=title,
                gist=gist,
                quote=quote,
                session=session,
                occurred_at=occurred_at,
                score=row.score,
                why=", ".join(asked[term] for term in row.shared),
                parts=row.parts,
            )
        )
    return hits


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
    _read(snapshot, matched, rarest, rows)
    beside = {at + step for at in matched for step in (-1, 1) if first <= at + step <= last}
    _read(snapshot, beside - rows.keys(), {}, rows)
    replacing = {row.replaced_by for row in rows.values() if row.replaced_by is not None}
    _read(snapshot, replacing - set(matched), rarest, rows)
    for at in matched:
        row = rows[at]
        for near in (at - 1, at + 1):
            if near in rows and rows[near].session == row.session:
                rows[near].beside += row.base
    for at in beside - set(matched) - replacing:
        if not rows[at].beside:  # of another session
            del rows[at]


def _read(
    snapshot: Snapshot, wanted: Collection[int], terms: dict[str, float], rows: dict[int, _Row]
) -> None:
    """Adds these rows, scored by `terms` where there are any."""
    if not wanted:
        return
    marks = ", ".join("?" * len(wanted))
    words = "terms" if terms else "''"
    answer = snapshot.connection.execute(
        "SELECT row, id, kind, project, session, occurred_at, replaced_by,"
        f" {words} FROM episodes WHERE row IN ({marks})",
        sorted(wanted),
    )
    for at, *fields, said in answer:
        row = rows[at] = _Row(*fields)
        if terms:
            row.base, row.shared = bm25(snapshot, "episodes", said.split(), terms)


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


def _current_first(rows: dict[int, _Row]) -> None:
    """What replaced an earlier one takes the place of the best that it replaced."""
    for _ in range(len(rows)):  # a chain of replacements settles in its length; most have none
        moved = False
        for row in rows.values():
            by = rows.get(row.replaced_by) if row.replaced_by is not None else None
            if by is not None and by.score <= row.score:
                by.score = round(row.score + 1e-6, 6)
                moved = True
        if not moved:
            return
