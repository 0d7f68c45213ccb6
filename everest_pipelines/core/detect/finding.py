"""How a detector writes down what it found."""

from __future__ import annotations

from everest_pipelines.core.records import Episode, EpisodeKind, Micros, Origin, Turn
from everest_pipelines.text.ids import digest

TITLE_LENGTH = 160  # characters; a title is one line in a list
GIST_LENGTH = 400


def one_line(text: str, length: int = TITLE_LENGTH) -> str:
    """White space folded, cut at a word within ``length`` characters with an ellipsis."""
    flat = " ".join(text.split())
    if len(flat) <= length:
        return flat
    cut = flat[: length - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > length // 2 else cut).rstrip(" ,;:") + "…"


def episode(
    turn: Turn,
    kind: EpisodeKind,
    *,
    span: str,
    detector: str,
    version: int,
    origin: Origin,
    sub: str = "",
    title: str = "",
    gist: str = "",
    detail: str = "",
    quote: tuple[int, int] | None = None,
    standing: bool = False,
    sure: bool = False,
    score: float = 0.0,
    reason: str = "",
    fix: str = "",
    fix_turn: Turn | None = None,
    settled_at: Micros = 0,
) -> Episode:
    """An episode triggered by ``turn``.

    ``span`` tells the episodes of one kind in one turn apart and makes the id with the turn and
    the kind. ``quote`` is a span of ``turn.text`` in characters; ``settled_at`` defaults to the
    latest of the turn and the turn of the fix.
    """
    start, end = quote or (0, 0)
    settled = max(settled_at, turn.occurred_at, fix_turn.occurred_at if fix_turn else 0)
    return Episode(
        episode_id=digest(turn.turn_id, kind.value, span),
        kind=kind,
        sub=sub,
        title=one_line(title),
        gist=one_line(gist, GIST_LENGTH),
        detail=detail,
        quote=turn.text[start:end],
        quote_from=start,
        quote_to=end,
        origin=origin,
        standing=standing,
        sure=sure,
        score=round(score, 6),
        occurred_at=turn.occurred_at,
        turn_id=turn.turn_id,
        session_id=turn.session_id,
        family_id=turn.family_id,
        source_path=turn.source_path,
        line_from=turn.line_from,
        line_to=turn.line_to,
        detector=detector,
        detector_version=version,
        reason=reason,
        fix=fix,
        fix_turn_id=fix_turn.turn_id if fix_turn else "",
        settled_at=settled,
    )
