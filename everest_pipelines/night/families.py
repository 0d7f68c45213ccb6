"""Session families: a session with its resumed and forked copies, known by its root session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from everest_pipelines.core.records import Micros
from everest_pipelines.core.transcripts.merge import families
from everest_pipelines.lake.operational import FileRow


def family_roots(
    files: Iterable[FileRow], links: Mapping[str, Set[str]] | None = None
) -> dict[str, str]:
    """Session id -> root session id, from the bookmarks and the links that were just found."""
    started: dict[str, Micros] = {}
    pairs: list[tuple[str, str]] = []
    for row in files:
        if not row.session_id:
            continue
        first = started.get(row.session_id)
        if first is None or row.session_started_at < first:
            started[row.session_id] = row.session_started_at
        pairs += [(row.session_id, other) for other in row.linked_sessions]
    pairs += [(one, other) for one, others in (links or {}).items() for other in others]
    return families(started, sorted(pairs))
