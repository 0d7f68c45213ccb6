"""Commands that work on the lake in this process: ingest, publish, rebuild, rezone."""

from __future__ import annotations

import json
import os
import shutil
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from everest_pipelines.cli.context import agreed, answer, is_person, opened, tell
from everest_pipelines.cli.person import agent_around
from everest_pipelines.cli.progress import shown
from everest_pipelines.text.errors import CallerError, MissingError

if TYPE_CHECKING:
    from everest_pipelines.lake.operational import FileRow
    from everest_pipelines.night.workspace import Failure, StageResult, Workspace
    from everest_pipelines.text.settings import Settings

DERIVED = (
    "sessions", "offers", "episodes", "vectors", "lessons", "merges", "predictions",
    "verifications",
)  # fmt: skip


def ingest(arguments: Namespace) -> int:
    """Read some files now, and the days that they touch up to the episodes; say what they were."""
    from everest_pipelines.lake.lock import held
    from everest_pipelines.night import derive
    from everest_pipelines.night.ingest import ingest as read
    from everest_pipelines.night.look import Look, PendingFile

    place, settings = opened()
    pending: list[PendingFile] = []
    for name in arguments.files:
        path = Path(name).expanduser().absolute()
        try:
            status = path.stat()
        except OSError as error:
            raise MissingError(f"{path} cannot be read: {error.strerror}.") from error
        pending.append(PendingFile(str(path), "", status.st_size, status.st_mtime_ns))
    if arguments.dry_run:
        return _recognise(arguments, [Path(one.path) for one in pending], settings)
    with held(place.ensure(), "everest ingest", on_wait=_waits):
        ws = _open(place, settings)
        results = [read(ws, Look(pending=pending, seen=len(pending)))]
        rows: dict[str, FileRow] = {row.path: row for row in ws.lake.read_table("files")}
        results += [stage(ws, None) for stage in (derive.sessions, derive.episodes, derive.vectors)]
    if not arguments.json:
        for one in pending:
            if (row := rows.get(one.path)) is not None and not row.error:
                sessions = len({session for session, _, _ in row.sessions}) or int(row.turns > 0)
                counts = (sessions, row.turns, row.events, row.bad_lines)
                print(_told(one.path, row.format, row.agent, *counts, dict(row.unknown)))
    return _done(arguments, results, "everest night folds and publishes it.")


def _recognise(arguments: Namespace, paths: list[Path], settings: Settings) -> int:
    """Say what files are and store nothing; 1 when one is in no format that is known."""
    from msgspec.structs import asdict

    from everest_pipelines.core.transcripts.times import parse
    from everest_pipelines.night.recognise import recognise

    found = [recognise(path, parse(settings.start) or 0) for path in paths]
    if arguments.json:
        answer({"files": [asdict(one) for one in found]})
    for one in found:
        if not one.format:
            tell(f"not recognised: {one.path}: {one.guess}")
        elif not arguments.json:
            counts = (one.sessions, one.turns, one.events, one.quarantined)
            print(_told(one.path, one.format, one.agent, *counts, one.unknown))
    return int(any(not one.format for one in found))


def _told(
    path: str,
    form: str,
    agent: str,
    sessions: int,
    turns: int,
    events: int,
    quarantined: int,
    unknown: dict[str, int],
) -> str:
    """One line on one file."""
    held = f"{events:,} events" if events else f"{sessions:,} sessions, {turns:,} turns"
    by = f" ({agent})" if agent not in ("", form) else ""
    strange = f" (unknown: {', '.join(unknown)})" if unknown else ""
    return f"{path}: {form or 'empty'}{by}, {held}, {quarantined:,} lines in quarantine{strange}"


def publish(arguments: Namespace) -> int:
    """Publish what is folded; ``--accept`` passes a gate once and keeps the reason."""
    from everest_pipelines.lake.lock import held
    from everest_pipelines.night.publish import publish as swap
    from everest_pipelines.night.render import render

    if arguments.accept and not arguments.why.strip():
        raise CallerError(
            "Accepting a gate needs a reason.",
            f'everest publish --accept {arguments.accept[0]} --why "…"',
        )
    place, settings = opened()
    with held(place.ensure(), "everest publish", on_wait=_waits):
        ws = _open(place, settings)
        by = "person" if is_person() and not agent_around(os.environ) else "pipe"
        done = swap(ws, _horizon(ws), arguments.accept, why=arguments.why, by=by)
        report = render(ws)
    if arguments.json:
        answer(
            {
                "generation": done.generation,
                "horizon": done.horizon,
                "changed": done.changed,
                "lessons": done.by_state,
                "blocked": [gate.gate for gate in done.blocked],
                "rendered": report.written,
            }
        )
    else:
        lessons = sum(done.by_state.values())
        print(f"{done.generation or 'nothing'}: {lessons} lessons up to {done.horizon}.")
    for gate in done.blocked:
        tell(f"not published: {gate.gate} {gate.project}: {gate.sentence}", gate.next_command)
    _complain(report.failures)
    return int(bool(done.blocked or report.failures))


def rebuild(arguments: Namespace) -> int:
    """Delete every derived table and fold it again from the archive and the ledger."""
    from everest_pipelines.lake.lock import held

    place, settings = opened()
    question = f"Delete the derived tables in {place.lake} and fold them again?"
    if not agreed(question, yes=arguments.yes):
        return 0
    with held(place.ensure(), "everest rebuild", on_wait=_waits):
        ws = _open(place, settings)
        horizon = _horizon(ws)
        drop_derived(ws)
        results = refold(ws, horizon)
    return _done(arguments, results, f"Folded again up to {horizon}.")


def rezone(arguments: Namespace) -> int:
    """Count days in another zone, or from another first day: every turn moves to its new day."""
    from everest_pipelines.cli.rezone import move
    from everest_pipelines.lake.lock import held

    place, settings = opened()
    if not place.zone_file.exists():
        raise MissingError("There is no lake yet; set EVEREST_TZ and begin.", "everest night")
    old: dict[str, Any] = json.loads(place.zone_file.read_text(encoding="utf-8"))
    tz = arguments.tz or (settings.tz if settings.given("tz") else None) or old["tz"]
    start = arguments.start or (settings.start if settings.given("start") else old["start"])
    if (tz, start) == (old["tz"], old["start"]):
        print(f"Days are counted in {tz} from {start} already.")
        return 0
    question = f"From {old['tz']}, {old['start']} to {tz}, {start}: fold everything again?"
    if not agreed(question, yes=arguments.yes):
        return 0
    with held(place, "everest rezone", on_wait=_waits):
        ws = move(place, settings, tz=str(tz), start=str(start), progress=shown())
        drop_derived(ws)
        results = refold(ws, _horizon(ws))
    return _done(arguments, results, f"Days are counted in {tz} from {start}.")


def drop_derived(ws: Workspace) -> None:
    """Forget what was derived: the tables' folders and what ``days`` says of their stages."""
    from everest_pipelines.lake.days import Days

    for table in DERIVED:
        shutil.rmtree(ws.home.lake / table, ignore_errors=True)
    days = Days.load(ws.lake)
    for stage in {row.stage for row in days.rows()} - {"transcripts"}:
        days.forget(stage, [row.day for row in days.rows(stage)])


def refold(ws: Workspace, horizon: str) -> list[StageResult]:
    """Every stage after the archive, then a publication."""
    from everest_pipelines.night import derive
    from everest_pipelines.night.publish import publish as swap
    from everest_pipelines.night.publish import stage_result
    from everest_pipelines.night.render import render
    from everest_pipelines.night.sleep import sleep
    from everest_pipelines.night.workspace import Failure

    results = [stage(ws, None) for stage in (derive.sessions, derive.episodes, derive.vectors)]
    results.append(sleep(ws, horizon))
    done = swap(ws, horizon)
    published = stage_result(done)
    published.failures = [Failure(f"gate {g.gate} {g.project}", g.sentence) for g in done.blocked]
    published.failures += render(ws).failures
    return [*results, published]


def _open(place: Any, settings: Any) -> Workspace:
    from everest_pipelines.night.workspace import open_workspace

    return open_workspace(place, settings, progress=shown())


def _horizon(ws: Workspace) -> str:
    """That of the generation in force, so that the same days are folded; else yesterday."""
    from everest_pipelines.lake.generations import current
    from everest_pipelines.night.workspace import horizon_of

    generation = current(ws.home)
    return generation.manifest.horizon if generation else horizon_of(ws)


def _waits(holder: object) -> None:
    tell(f"Waiting for the work of {holder} to end.")


def _done(arguments: Namespace, results: list[StageResult], words: str) -> int:
    failures = [failure for result in results for failure in result.failures]
    if arguments.json:
        answer(
            {
                "stages": {result.stage: result.counts for result in results},
                "seconds": {result.stage: result.seconds for result in results},
                "failures": [{"where": one.where, "what": one.what} for one in failures],
            }
        )
    else:
        for result in results:
            counts = ", ".join(f"{count:,} {name}" for name, count in result.counts.items())
            print(f"{result.stage:<12} {counts or 'nothing'}")
        print(words)
    _complain(failures)
    return int(bool(failures))


def _complain(failures: list[Failure]) -> None:
    for failure in failures:
        tell(f"left behind: {failure.where}: {failure.what}")
