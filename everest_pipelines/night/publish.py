"""The asset ``published``: what readers see, behind the gates, swapped in by one rename."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everest_pipelines.core import trust
from everest_pipelines.core.records import (
    EVERYWHERE,
    Day,
    Episode,
    LessonRevision,
    ProjectKey,
    State,
)
from everest_pipelines.core.render import Evidence, lesson_file, lessons_jsonl, memory_section, wire
from everest_pipelines.core.render.morning import morning
from everest_pipelines.lake import publish as generations
from everest_pipelines.lake import raw
from everest_pipelines.lake.days import Days, closed
from everest_pipelines.lake.operational import ProjectRow
from everest_pipelines.night import derive, edits, past, published, sleep
from everest_pipelines.night.edits import Edits
from everest_pipelines.night.gates import (
    ACCEPTABLE,
    GATES,
    Candidate,
    GateResult,
    blocked_projects,
    evaluate,
)
from everest_pipelines.night.report import report
from everest_pipelines.night.workspace import StageResult, Stopwatch, Workspace
from everest_pipelines.recall import arms, bundle, overlay, sessions, snapshot
from everest_pipelines.text import ledger
from everest_pipelines.text.errors import CallerError
from everest_pipelines.text.ids import digest

STAGE = "published"
DAY_MICROS = 86_400_000_000
PUBLISH_VERSION = 2  # raise it when the same lake is to be published differently


class Publication(Struct, kw_only=True):
    """What a publication did. ``generation`` is the one in force afterwards."""

    generation: str = ""
    horizon: Day = ""
    changed: bool = False
    gates: list[GateResult] = []
    visible: list[LessonRevision] = []
    by_state: dict[str, int] = {}
    by_project: dict[ProjectKey, int] = {}
    new: int = 0
    updated: int = 0
    removed: int = 0
    merged: int = 0
    edits: Edits = msgspec.field(default_factory=Edits)
    seconds: float = 0.0

    @property
    def blocked(self) -> list[GateResult]:
        """The gates that did not pass."""
        return [gate for gate in self.gates if not gate.passed]


def publish(
    ws: Workspace,
    horizon: Day,
    accept: Sequence[str] = (),
    *,
    why: str = "",
    by: str = "owner",
    partial: bool = False,
) -> Publication:
    """Publish what the lake holds up to ``horizon``.

    A gate that fails on a project leaves that project's published lessons as they were; one that
    fails on everything publishes nothing. ``accept`` names gates to pass for once; that, ``why``
    and ``by`` whom go to the ledger. ``partial`` marks the early generation of a first import, from
    which the next may differ in any way. Raises CallerError for a gate that may not be accepted.
    """
    watch = Stopwatch()
    unknown = sorted(set(accept) - ACCEPTABLE)
    if unknown:
        raise CallerError(
            f"The gate {unknown[0]!r} cannot be accepted, only {', '.join(sorted(ACCEPTABLE))}."
        )
    for gate in accept:
        ledger.append(ws.home, "accept", {"gate": gate, "why": why, "by": by}, now=ws.now())
    edited = edits.take(ws)
    inputs = _inputs(ws, horizon)
    if not accept and (unchanged := _unchanged(ws, horizon, inputs)) is not None:
        unchanged.seconds = watch.seconds
        unchanged.edits = edited
        return unchanged
    ws.progress.begin(STAGE, 1, "generations")
    candidate = candidate_of(ws, horizon)
    gates = evaluate(candidate, accept)
    blocked = blocked_projects(gates)
    before = published.current(ws.home)
    done = Publication(horizon=horizon, gates=gates, generation=before.name if before else "")
    done.edits = edited
    if "" not in blocked:
        shown = [lesson for lesson in candidate.visible if lesson.scope not in blocked]
        hidden = overlay.hidden(ws.home) | candidate.rejected_ids
        shown += [
            lesson
            for lesson in candidate.published
            if lesson.scope in blocked and not hidden & {lesson.lesson_id, lesson.value_key}
        ]
        shown.sort(key=lambda lesson: (lesson.scope, -lesson.strength, lesson.lesson_id))
        _swap(ws, horizon, shown, candidate, done, blocked, partial=partial)
    if not blocked:
        days = Days.load(ws.lake)
        row = closed(STAGE, horizon, input_hash=inputs, cells=(), prev_hash=done.generation)
        days.close([replace(row, output_hash=_held(days, horizon))])
    ws.progress.advance()
    ws.progress.end()
    done.seconds = watch.seconds
    return done


def _inputs(ws: Workspace, horizon: Day) -> str:
    """Names all that a publication is made of."""
    rows = [row for row in Days.load(ws.lake).rows() if row.stage != STAGE]
    loud = [
        str(entry["id"])
        for entry in ledger.read(ws.home).entries
        if entry["kind"] not in generations.QUIET_KINDS
    ]
    return digest(
        horizon,
        str(PUBLISH_VERSION),
        f"{ws.settings.withhold:g} {_week(ws, horizon)}" if ws.settings.withhold else "",
        *(f"{row.stage}:{row.day}:{row.state}:{row.output_hash}" for row in rows),
        *(ws.lake.table_digest(name) for name in ("files", "projects", "quarantine")),
        *loud,
        *sorted(overlay.hidden(ws.home)),
    )


def _week(ws: Workspace, horizon: Day) -> str:
    """The ISO week in which what is published of a horizon is read: that of the day after it."""
    return arms.iso_week(ws.calendar.day_end(horizon))


def _held(days: Days, horizon: Day) -> str:
    """Names what the days up to the horizon hold, without what later days bring."""
    rows = [row for row in days.rows() if row.stage != STAGE and row.day <= horizon]
    return digest(horizon, *(f"{row.stage}:{row.day}:{row.output_hash}" for row in rows))


def is_behind(ws: Workspace, horizon: Day) -> bool:
    """Whether the generation in force is not made of what the days up to the horizon hold."""
    days = Days.load(ws.lake)
    row = days.row(STAGE, horizon)
    generation = published.current(ws.home)
    name = generation.name if generation else ""
    if row is None or published.is_partial(generation):
        return True
    return (row.output_hash, row.prev_hash) != (_held(days, horizon), name)


def _unchanged(ws: Workspace, horizon: Day, inputs: str) -> Publication | None:
    """The publication in force when it was made of just these inputs."""
    generation = published.current(ws.home)
    row = Days.load(ws.lake).row(STAGE, horizon)
    if generation is None or row is None or published.is_partial(generation):
        return None
    if (row.input_hash, row.prev_hash) != (inputs, generation.name):
        return None
    done = Publication(horizon=horizon, generation=generation.name)
    done.gates = [
        GateResult(gate=gate, project="", passed=True, sentence="holds") for gate in GATES
    ]
    _tell(done, published.lessons(ws.home, generation))
    return done


def _tell(done: Publication, shown: list[LessonRevision]) -> None:
    done.visible = shown
    done.by_state = _tally(str(lesson.state) for lesson in shown)
    done.by_project = _tally(lesson.scope for lesson in shown)


def gates(ws: Workspace, horizon: Day) -> list[GateResult]:
    """What the gates say of the lake as it stands; writes nothing."""
    return evaluate(candidate_of(ws, horizon))


def candidate_of(ws: Workspace, horizon: Day) -> Candidate:
    """What would be published: the one view over the fold and later decisions."""
    entries = ledger.read(ws.home).entries
    revisions: list[LessonRevision] = [
        row for day, _, row in ws.history.rows("lessons") if day <= horizon
    ]
    at = ws.calendar.day_end(horizon)
    visible = trust.visible(revisions, entries, overlay.hidden(ws.home), at=at)
    wanted = {source for lesson in visible for source in lesson.source_episode_ids}
    episodes: dict[str, Episode] = {}
    project_of: dict[str, ProjectKey] = {}
    if wanted:
        for _, project, row in ws.history.rows("episodes"):
            episode: Episode = row
            if episode.episode_id in wanted:
                episodes[episode.episode_id] = episode
                project_of[episode.episode_id] = project
    scopes = {lesson.scope for lesson in visible}
    kept_out = _kept_out(ws)
    before = published.current(ws.home)
    last = trust.newest(trust.apply_entries(revisions, entries))
    applied = last.values()
    refused = [
        lesson
        for lesson in applied
        if lesson.state in (State.REJECTED, State.RETIRED) and lesson.decided_by != "night"
    ]
    hidden = overlay.hidden(ws.home) | trust.vetoed(entries, last)
    called_wrong = [one for one in applied if hidden & {one.lesson_id, one.value_key}]
    return Candidate(
        visible=visible,
        # Of a project that the owner keeps out nothing stays, whatever a gate says.
        published=[
            lesson
            for lesson in published.lessons(ws.home, before)
            if lesson.scope not in kept_out and not published.is_partial(before)
        ],
        project_of_episode=project_of,
        episodes=episodes,
        rejected_keys={scope: set(trust.tombstones(entries, scope=scope)) for scope in scopes},
        refused_episodes=frozenset(
            source for lesson in (*refused, *called_wrong) for source in lesson.source_episode_ids
        )
        - wanted,
        rejected_ids=frozenset(lesson.lesson_id for lesson in refused)
        | frozenset(overlay.hidden(ws.home))
        | frozenset(row.old_id for _, _, row in ws.history.rows("merges")),
        missing=missing(ws, horizon),
    )


def _kept_out(ws: Workspace) -> set[ProjectKey]:
    return {row.project for row in ws.lake.read_table("projects") if row.ignored}


def missing(ws: Workspace, horizon: Day) -> dict[ProjectKey, list[tuple[str, Day]]]:
    """Stage days up to the horizon that are expected and not good, by project."""
    found: dict[ProjectKey, list[tuple[str, Day]]] = defaultdict(list)
    days = Days.load(ws.lake)
    for stage, day in incomplete(ws, days, horizon):
        row = days.row("transcripts", day)
        for project in {cell.project for cell in row.cells} if row else {EVERYWHERE}:
            found[project].append((stage, day))
    return dict(found)


def incomplete(ws: Workspace, days: Days, horizon: Day) -> list[tuple[str, Day]]:
    """(stage, day) pairs up to the horizon that are open or not made of their present inputs."""
    inputs = derive.Inputs(ws)
    found = [
        (stage, day)
        for stage in derive.STAGES
        for day in derive.stale_days(inputs, stage)
        if day <= horizon
    ]
    found += [(sleep.STAGE, day) for day in sleep.stale(ws, horizon)]
    return found


def _swap(
    ws: Workspace,
    horizon: Day,
    shown: list[LessonRevision],
    candidate: Candidate,
    done: Publication,
    blocked: set[ProjectKey],
    *,
    partial: bool,
) -> None:
    entries = ledger.read(ws.home).entries
    kept = past.kept_hashes(entries)
    generation = generations.publish(
        ws.lake,
        horizon=horizon,
        lessons_now=shown,
        entries=entries,
        extra_files=rendered(ws, shown, candidate.episodes, week=_week(ws, horizon))
        | {"morning.md": morning(report(ws, horizon, shown, done.blocked)).encode()}
        | ({published.PARTIAL: b"The newest days of a first import.\n"} if partial else {}),
        write_extra=lambda folder: snapshot.build(
            folder / "recall.sqlite",
            lessons=[wire(lesson) for lesson in shown],
            episodes=_recallable(ws, horizon, candidate.refused_episodes),
            generation=horizon,
            projects=_paths(ws),
        ),
        held=blocked - _kept_out(ws),
        now=ws.now(),
    )
    done.generation, done.changed = generation.name, generation.changed
    _tell(done, shown)
    _compare(done, candidate.published, shown)
    done.merged = sum(1 for day, _, _ in ws.history.rows("merges") if day == horizon)
    bundle.refresh(ws.home.root)  # a hook reads snapshots of its own version only
    sessions.prune(str(ws.home.root), now=ws.now())
    if generation.changed:
        raw.prune(ws.home, ws.now() - ws.settings.raw_days * DAY_MICROS)
        ledger.append(
            ws.home,
            "publication",
            {
                "generation": generation.name,
                "horizon": horizon,
                "visible": [
                    {
                        "lesson_id": one.lesson_id,
                        "revision": one.revision,
                        "hash": one.hash,
                    }
                    for one in shown
                ],
                "digest": digest(*(f"{one.lesson_id}:{one.hash}" for one in shown)),
                "rows": [past.packed(one) for one in shown if one.hash not in kept],
            },
            now=ws.now(),
        )


def _compare(
    done: Publication, before: Sequence[LessonRevision], now: Sequence[LessonRevision]
) -> None:
    old = {lesson.lesson_id: lesson.text for lesson in before}
    new = {lesson.lesson_id: lesson.text for lesson in now}
    done.new = len(new.keys() - old.keys())
    done.removed = len(old.keys() - new.keys())
    done.updated = sum(1 for key in new.keys() & old.keys() if new[key] != old[key])


def rendered(
    ws: Workspace,
    shown: Sequence[LessonRevision],
    episodes: Mapping[str, Episode],
    *,
    week: str,
) -> dict[str, bytes]:
    """``lessons.jsonl`` and, under ``render/<project>/``, what would go into an agent's folder.

    What is withheld in the ISO ``week`` is not rendered; ``lessons.jsonl`` holds it all the same.
    """
    files = {"lessons.jsonl": lessons_jsonl(shown)}
    share = ws.settings.withhold
    for project in sorted({lesson.scope for lesson in shown if lesson.scope != EVERYWHERE}):
        own = [
            lesson
            for lesson in shown
            if lesson.scope in (project, EVERYWHERE)
            and not arms.is_withheld(lesson.lesson_id, lesson.state, share, week)
        ]
        section = memory_section(own, project=project)
        if not section:
            continue
        files[f"render/{project}/MEMORY.md"] = section.encode()
        for lesson in own:
            name, content = lesson_file(lesson, _evidence(ws, lesson, episodes))
            files[f"render/{project}/{name}"] = content
    return files


def _evidence(
    ws: Workspace, lesson: LessonRevision, episodes: Mapping[str, Episode]
) -> list[Evidence]:
    found = [episodes[one] for one in lesson.source_episode_ids if one in episodes]
    found.sort(key=lambda one: (one.occurred_at, one.episode_id))
    return [
        Evidence(
            quote=episode.quote or episode.title,
            day=ws.calendar.day_of(episode.occurred_at),
            session_id=episode.session_id,
            kind=str(episode.kind),
            origin=str(episode.origin),
        )
        for episode in found
    ]


def _paths(ws: Workspace) -> list[tuple[str, ProjectKey]]:
    """Which directories belong to which project, for recall."""
    rows: list[ProjectRow] = ws.lake.read_table("projects")
    return [
        (path, row.project)
        for row in rows
        if not row.ignored
        for path in sorted({row.path, row.root})
        if path
    ]


def _recallable(ws: Workspace, horizon: Day, refused: frozenset[str]) -> list[dict[str, Any]]:
    """Past episodes up to the horizon, without those that taught what a person refused."""
    newest: dict[str, dict[str, Any]] = {}
    for day, project, row in ws.history.rows("episodes"):
        episode: Episode = row
        if day <= horizon and episode.episode_id not in refused:
            newest[episode.episode_id] = {
                "id": episode.episode_id,
                "project": project,
                "kind": str(episode.kind),
                "title": episode.title,
                "gist": episode.gist,
                "quote": episode.quote,
                "session": episode.session_id,
                "occurred_at": episode.occurred_at,
            }
    return list(newest.values())


def _tally(names: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in names:
        found[name] = found.get(name, 0) + 1
    return dict(sorted(found.items()))


def stage_result(done: Publication) -> StageResult:
    """A publication as any other stage's result."""
    return StageResult(
        stage=STAGE,
        counts={"visible": len(done.visible), "new": done.new, "blocked": len(done.blocked)},
        seconds=done.seconds,
    )
