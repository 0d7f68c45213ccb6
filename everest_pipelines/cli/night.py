"""``everest night``: the main job in one process, recorded in the same Dagster instance."""

from __future__ import annotations

import datetime as dt
from argparse import Namespace
from typing import TYPE_CHECKING

from everest_pipelines.cli import first_import, sample
from everest_pipelines.cli.context import agreed, answer, is_person, opened, program, tell
from everest_pipelines.cli.progress import shown
from everest_pipelines.text.errors import CallerError, MissingError
from everest_pipelines.text.home import Home
from everest_pipelines.text.settings import Settings

if TYPE_CHECKING:
    from everest_pipelines.night.summary import Summary


def run(arguments: Namespace) -> int:
    """Read what is new, fold it, publish it, and say what came of it."""
    place, settings = opened()
    through = _day(arguments.through)
    thrown = False
    if arguments.sample or (arguments.or_sample and not _has_transcripts(settings)):
        if not arguments.sample:
            tell(f"No transcripts in {settings.claude_dir}: the bundled sample is used instead.")
        thrown = True
        tell(f"A throw-away home: {sample.throw_away()}")
        place, settings = opened()
        through = through or sample.LAST_DAY
    elif not _agreed_to_import(place, settings, arguments):
        tell("Nothing was read.")
        return 0
    _check(place, settings, through)
    summary = _work(place, settings, through)
    if arguments.json:
        from msgspec import to_builtins

        answer(to_builtins(summary) | {"home": str(place.root), "sample": thrown})
    else:
        _print(summary, place, thrown)
    for failure in summary.failures:
        tell(f"left behind: {failure.where}: {failure.what}")
    for gate in summary.blocked:
        tell(f"not published: {gate}")
    for note in summary.notes:
        tell(f"note: {note}")
    return int(summary.left_behind)


def _work(place: Home, settings: Settings, through: str | None) -> Summary:
    from everest_pipelines.defs import launch
    from everest_pipelines.night.summary import summary
    from everest_pipelines.night.workspace import open_workspace

    done = launch.run_night(place, settings, through=through, progress=shown(), on_wait=_waits)
    ws = open_workspace(place, settings)
    return summary(ws, done.results, done.publication, done.rendered)


def _check(place: Home, settings: Settings, through: str | None) -> None:
    """Refuse a day that is not over, and a named folder of transcripts that is not there."""
    from everest_pipelines.night.workspace import horizon_of, open_workspace

    ws = open_workspace(place, settings)
    last = horizon_of(ws)
    if through is not None and through > last:
        raise CallerError(f"{through} is not over; the last closed day is {last}.", "everest night")
    folder = settings.claude_dir / "projects"
    if folder.is_dir():
        return
    missing = settings.given("claude_dir") and not settings.claude_dir.is_dir()
    if missing and not ws.lake.read_table("files"):
        raise MissingError(f"{settings.claude_dir} is not there.", "everest config")
    tell(f"{folder} is not there: nothing new can be read.")


def _waits(holder: object) -> None:
    tell(f"Waiting for the work of {holder} to end.")


def _day(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        day = dt.date.fromisoformat(text).isoformat()
    except ValueError as error:
        raise CallerError(f"{text!r} is no day.", "everest night --through YYYY-MM-DD") from error
    return day


def _has_transcripts(settings: Settings) -> bool:
    from everest_pipelines.night.look import roots

    found = (next(root.rglob(name), None) for _, root, name in roots(settings) if root.is_dir())
    return any(path is not None for path in found)


def _agreed_to_import(place: Home, settings: Settings, arguments: Namespace) -> bool:
    """Ask before a large first import; keep out the projects that were not chosen."""
    from everest_pipelines.night.look import look
    from everest_pipelines.night.projects import add_ignored
    from everest_pipelines.night.workspace import open_workspace

    ws = open_workspace(place, settings)
    if ws.lake.read_table("files"):
        if arguments.projects:
            raise CallerError("--projects chooses for a first import only.", "everest ignore PATH")
        return True
    looked = look(ws)
    found = first_import.grouped((one.path, one.size) for one in looked.pending)
    large = first_import.is_large(len(looked.pending), looked.pending_bytes)
    if not large and not arguments.projects:
        return True
    first_import.describe(found)
    others: list[first_import.Found] = []
    if arguments.projects:
        _, others = first_import.named(found, arguments.projects)
    elif not arguments.yes:
        if not is_person():
            return agreed("Read them?", yes=False)  # says what to type instead
        choice = first_import.chosen(found)
        if choice is None:
            return False
        _, others = choice
    for one in others:
        if one.cwd:
            add_ignored(place, one.cwd)
            tell(f"kept out: {one.cwd}")
    return True


def _print(summary: Summary, place: Home, thrown: bool) -> None:
    seconds = sum(summary.seconds.values())
    kinds = ", ".join(f"{count} {kind}" for kind, count in summary.episodes.items()) or "none"
    states = ", ".join(f"{count} {state}" for state, count in summary.lessons.items()) or "none"
    print(f"The memory is up to date to {summary.horizon} ({seconds:.1f} s of work).")
    print(
        f"  sessions     {summary.sessions:,}, {summary.turns:,} turns, {summary.files:,} new files"
    )
    print(f"  episodes     {kinds}")
    print(f"  lessons      {states}")
    gone = f", {summary.removed} no longer shown" if summary.removed else ""
    news = f"{summary.new} new, {summary.changed} changed, {summary.merged} merged{gone}"
    print(f"               {news}")
    if summary.quarantined:
        print(f'  quarantined  {summary.quarantined} lines: everest sql "from quarantine"')
    if summary.why_nothing:
        print(f"  Nothing was learnt: {summary.why_nothing}")
    if summary.is_old and not thrown:
        print(f"  The newest record is of {summary.newest_day}; the strongest lessons of then:")
    elif summary.strongest:
        print("  The strongest:")
    for line in summary.strongest:
        print(f"    - {line[:160]}")
    print(f"\nFiles     {place.current.resolve()}")
    everest = f"EVEREST_HOME={place.root} {program()}" if thrown else program()
    print(f"Next      {everest} lessons")
    print(f'          {everest} sql "select * from lessons_now"')
    print(f"          {everest} up")
    if not thrown:
        print(f"          {everest} setup     so that agents read the lessons by themselves")
