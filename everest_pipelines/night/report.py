"""What ``morning.md`` says, gathered from the lake as it stands."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from everest_pipelines.core import trust
from everest_pipelines.core.records import (
    Day,
    Episode,
    EpisodeKind,
    LessonRevision,
    Prediction,
    ProjectKey,
    SessionDay,
    State,
    Verification,
)
from everest_pipelines.core.render import short_id
from everest_pipelines.core.render.morning import (
    MAX_REVIEW,
    OLD_IMPORT_DAYS,
    Morning,
    MorningLesson,
    MorningMerge,
    MorningReview,
    Predictions,
    RepeatedError,
)
from everest_pipelines.core.sleep.predict import score
from everest_pipelines.lake.days import Days
from everest_pipelines.lake.operational import FileRow, QuarantineRow
from everest_pipelines.night import published, wording
from everest_pipelines.night.gates import GateResult
from everest_pipelines.night.models import spaces
from everest_pipelines.night.workspace import Workspace
from everest_pipelines.recall import overlay
from everest_pipelines.text import ledger

STRONGEST = 5
TOP_ERRORS = 5


def report(
    ws: Workspace,
    horizon: Day,
    shown: Sequence[LessonRevision],
    blocked: Sequence[GateResult],
) -> Morning:
    """The report of the night that brought the memory to ``horizon``."""
    last = published.before(ws.home, horizon)
    since = last.manifest.horizon if last else ""
    new_days = [day for day in _days(ws) if since < day <= horizon]
    # A fix found on a later day is a second row of its episode: each counts once.
    episodes = list({row.episode_id: row for _, _, row in _on(ws, "episodes", new_days)}.values())
    turns = sum(row.rows for row in Days.load(ws.lake).rows("transcripts") if row.day in new_days)
    sessions: list[SessionDay] = [row for _, _, row in _on(ws, "sessions", new_days)]
    newest_day = max(_days(ws), default="")
    before = {one.lesson_id: one for one in published.lessons(ws.home, last)}
    learnt = [lesson for lesson in shown if lesson.lesson_id not in before]
    changed = [
        lesson
        for lesson in shown
        if lesson.lesson_id in before
        and (before[lesson.lesson_id].text, before[lesson.lesson_id].state)
        != (lesson.text, lesson.state)
    ]
    age = len(ws.calendar.days(newest_day, horizon)) - 1 if newest_day else 0
    texts = {lesson.lesson_id: lesson.text for lesson in shown}
    quarantined: list[QuarantineRow] = ws.lake.read_table("quarantine")
    return Morning(
        day=horizon,
        newest_day=newest_day,
        newest_age_days=age,
        failures=failures(ws, horizon, blocked) + model_notes(ws),
        projects=len({project for _, project, _ in _on(ws, "sessions", new_days)}),
        sessions=len({row.session_id for row in sessions}),
        turns=turns,
        episodes=dict(sorted(Counter(str(row.kind) for row in episodes).items())),
        lessons=dict(sorted(Counter(str(lesson.state) for lesson in shown).items())),
        learnt=[_told(lesson) for lesson in learnt],
        changed=[_told(lesson) for lesson in changed],
        merged=[
            MorningMerge(
                old_id=short_id(row.old_id),
                new_id=short_id(row.new_id),
                text=texts.get(row.new_id, ""),
                why=row.why,
            )
            for day, _, row in ws.history.rows("merges")
            if since < day <= horizon
        ],
        disputed=[_told(lesson) for lesson in shown if lesson.state is State.DISPUTED],
        predictions=_predictions(ws, horizon),
        review=_review(shown),
        quarantined=dict(sorted(Counter(row.reason for row in quarantined).items())),
        quarantine_at='everest sql "select * from quarantine"' if quarantined else "",
        strongest=strongest_of_last_month(ws, newest_day, shown) if age >= OLD_IMPORT_DAYS else (),
        repeated_errors=_repeated(ws, new_days),
        why_nothing="" if learnt or changed else _why_nothing(ws, horizon, episodes),
    )


def failures(ws: Workspace, horizon: Day, blocked: Sequence[GateResult]) -> list[str]:
    """What was left behind, a sentence each with the command that mends it."""
    files: list[FileRow] = ws.lake.read_table("files")
    found = [f"{row.path} {row.error}: everest doctor" for row in left_files(files)]
    for gate in blocked:
        where = f" for {gate.project}" if gate.project else ""
        found.append(f"gate {gate.gate}{where}: {gate.sentence}: {gate.next_command}")
    found += [
        f"stage {row.stage} of {row.day} was left open: everest night"
        for row in Days.load(ws.lake).rows()
        if row.state == "open" and row.day <= horizon
    ]
    return found


def model_notes(ws: Workspace) -> list[str]:
    """What the last night could not have of a model, and what it did instead."""
    used, told = spaces.in_use(ws.home), wording.last(ws.home)
    notes: list[str] = []
    if used.why and used.asked == spaces.asked_for(ws.home, ws.settings):
        nights = "night" if used.failures == 1 else "nights in a row"
        notes.append(
            f"embedding model {used.asked} could not be used ({used.failures} {nights}); lessons"
            f" were joined with {used.model}: {used.why}"
        )
    if told.why and wording.model_of(ws):
        notes.append(f"writing model {wording.model_of(ws)} worded {told.kept}: {told.why}")
    return notes


def left_files(files: Sequence[FileRow]) -> list[FileRow]:
    """Files that could not be read and are still there: of the others nothing can be had."""
    return [row for row in files if row.error and os.path.lexists(row.path)]


def _on(ws: Workspace, table: str, days: Sequence[Day]) -> list[tuple[Day, ProjectKey, Any]]:
    wanted = frozenset(days)
    return [row for row in ws.history.rows(table) if row[0] in wanted]


def _days(ws: Workspace) -> list[Day]:
    return [row.day for row in Days.load(ws.lake).rows("transcripts") if row.rows]


def _told(lesson: LessonRevision) -> MorningLesson:
    return MorningLesson(
        short_id=short_id(lesson.lesson_id),
        text=lesson.text,
        project=lesson.scope,
        state=lesson.state,
        quote=lesson.quote,
        seen=lesson.seen,
        strength=lesson.strength,
    )


def _review(shown: Sequence[LessonRevision]) -> list[MorningReview]:
    waiting = [one for one in shown if one.state in (State.DISPUTED, State.STATED)]
    waiting.sort(key=lambda one: (one.state is not State.DISPUTED, -one.strength, one.lesson_id))
    return [
        MorningReview(
            text=one.text,
            command=f"everest wrong {short_id(one.lesson_id)}",
            why="disputed" if one.state is State.DISPUTED else "unreviewed; if it is wrong",
        )
        for one in waiting[:MAX_REVIEW]
    ]


def _predictions(ws: Workspace, horizon: Day) -> Predictions:
    made: list[Prediction] = [r for day, _, r in ws.history.rows("predictions") if day <= horizon]
    done: list[Verification] = [
        r for day, _, r in ws.history.rows("verifications") if day <= horizon
    ]
    scored = score(done)
    came = scored.came_true if scored else 0
    return Predictions(
        made=len(made),
        came_true=came,
        did_not=len(done) - came,
        open=len(made) - len(done),
        brier=scored.brier if scored else None,
        base_brier=scored.base_brier if scored else None,
    )


def strongest_of_last_month(
    ws: Workspace, newest_day: Day, shown: Sequence[LessonRevision]
) -> list[MorningLesson]:
    """The strongest lessons of the month before the newest record, archived since or not."""
    last = ws.calendar.day_end(newest_day)
    month = 30 * 86_400 * 1_000_000
    revisions: list[LessonRevision] = [
        row for day, _, row in ws.history.rows("lessons") if day <= newest_day
    ]
    # The decisions of later hold: what the owner rejected is not told again.
    decisions = ledger.read(ws.home).entries
    then = trust.visible(revisions, decisions, overlay.hidden(ws.home), at=last)
    recent = [one for one in then if one.last_seen_at >= last - month]
    recent.sort(key=lambda one: (-one.strength, one.lesson_id))
    return [_told(one) for one in recent[:STRONGEST]]


def _repeated(ws: Workspace, days: Sequence[Day]) -> list[RepeatedError]:
    """The errors that came most often, over sessions: candidates for a lesson."""
    times: dict[tuple[ProjectKey, str], list[Episode]] = defaultdict(list)
    for _, project, row in _on(ws, "episodes", days):
        if row.kind is EpisodeKind.ERROR:
            times[project, row.sub].append(row)
    most = sorted(times.items(), key=lambda one: (-len(one[1]), one[0]))
    return [
        RepeatedError(
            text=sub, project=project, times=len(rows), sessions=len({r.session_id for r in rows})
        )
        for (project, sub), rows in most[:TOP_ERRORS]
        if len(rows) > 1
    ]


def _why_nothing(ws: Workspace, horizon: Day, episodes: Sequence[Episode]) -> str:
    if not _days(ws):
        return "no transcripts were found"
    if not episodes:
        return "no new records up to this day"
    said = sum(1 for one in episodes if one.kind in (EpisodeKind.CORRECTION, EpisodeKind.NOTE))
    return (
        f"{said} things were said by you, none of them a rule that outlives its task,"
        " and nothing came up again in a second session"
    )
