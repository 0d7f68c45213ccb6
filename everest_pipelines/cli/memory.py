"""What a person asks of the memory: lessons, recall, remember, morning.

Imports the standard library, text and recall only: these answer while nothing else is warm.
"""

from __future__ import annotations

import json
import os
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from everest_pipelines.cli.context import answer, is_person, now, opened, tell
from everest_pipelines.cli.person import agent_around
from everest_pipelines.text.errors import CallerError, DamagedError, MissingError
from everest_pipelines.text.home import Home

if TYPE_CHECKING:
    from everest_pipelines.recall.snapshot import Snapshot
    from everest_pipelines.text.settings import Settings

NAMED = 20  # projects named in one message
MARKS = {"stated": " (unreviewed)", "disputed": " (disputed)"}


def _published(place: Home, name: str) -> bytes:
    """A file of the current generation. Raises MissingError when nothing is published."""
    try:
        return (place.current.resolve(strict=True) / name).read_bytes()
    except FileNotFoundError as error:
        raise MissingError(f"Nothing is published in {place.root} yet.", "everest night") from error


def _published_lessons(place: Home) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in _published(place, "lessons.jsonl").splitlines()]
    except ValueError as error:
        raise DamagedError(f"lessons.jsonl cannot be read: {error}.", "everest publish") from error


def lessons(arguments: Namespace) -> int:
    """The published lessons, without those that somebody called wrong since; or those of a day."""
    from everest_pipelines.recall.format import plain
    from everest_pipelines.recall.overlay import hidden

    place, settings = opened()
    told: dict[str, Any] = {}
    if arguments.valid_at or arguments.known_at:
        found, told = _of_a_day(place, settings, arguments.valid_at, arguments.known_at)
    else:
        gone = hidden(place)
        found = [
            lesson
            for lesson in _published_lessons(place)
            if gone.isdisjoint({lesson["id"], lesson["short_id"], lesson["value_key"]})
        ]
    shown = [
        lesson
        for lesson in found
        if not arguments.project or lesson["scope"].startswith(arguments.project)
    ]
    if arguments.json:
        answer({"lessons": shown, **told})
        return 0
    if told.get("lost"):
        tell(f"{told['lost']} more were shown then; their words were forgotten since.")
    scope = ""
    for lesson in shown:  # by scope, strongest first, as they were published
        if lesson["scope"] != scope:
            scope = lesson["scope"]
            print(f"\n{scope}")
        mark = MARKS.get(lesson["state"], "")
        if lesson["state"] == "disputed":
            mark = f" (disputed, said {lesson['last_seen'][:10]})"
        print(f"  {lesson['short_id']}  {plain(lesson['text'])}{mark}")
    if not shown:
        tell("No lessons here. `everest status` says what was read.")
    return 0


def _of_a_day(
    place: Home, settings: Settings, valid_at: str | None, known_at: str | None
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The lessons valid on one day as they were known on another, and what to say about them."""
    from everest_pipelines.core.render.lessons_jsonl import wire
    from everest_pipelines.night.past import as_of
    from everest_pipelines.night.workspace import open_workspace

    past = as_of(open_workspace(place, settings), valid_at=valid_at, known_at=known_at)
    told = {"valid_at": valid_at, "known_at": known_at, "lost": past.lost}
    return [wire(one) for one in past.lessons], told


def recall(arguments: Namespace) -> int:
    """What shares words with the query, in this directory's project and everywhere."""
    from everest_pipelines.recall.left_out import left_out
    from everest_pipelines.recall.project import project_of
    from everest_pipelines.recall.snapshot import EVERYWHERE, open_snapshot

    place, _ = opened()
    with open_snapshot(place) as snapshot:
        keys = _keys(snapshot)
        asked = arguments.project
        known = _one_of(keys, asked) if asked else project_of(snapshot, Path.cwd())
        project = known or EVERYWHERE
        gone = left_out(place, os.environ, snapshot, project, now=now())
        hits, shown = _asked(snapshot, arguments, project, gone)
    if arguments.json:
        answer({"project": project, "hits": hits})
    elif hits:
        print(shown, end="")
    if known is None:
        tell(
            "This directory belongs to no known project: only lessons for everywhere were asked.",
            f"Projects: {listed(keys)}",
            "Next: everest recall WORD --project KEY",
        )
    elif not hits and not arguments.json:
        tell(f"Nothing in {project} shares a word with that.")
    return 0


def _asked(
    snapshot: Snapshot, arguments: Namespace, project: str, gone: frozenset[str]
) -> tuple[list[dict[str, Any]], str]:
    """The hits as objects, and the same for a terminal."""
    from everest_pipelines.recall.format import terminal, terminal_episodes

    query = " ".join(arguments.query)
    if arguments.kind == "episode":
        from everest_pipelines.recall.episodes import search_episodes

        hidden = snapshot.sources_of(gone)
        past = search_episodes(snapshot, query, project=project, k=arguments.k, hidden=hidden)
        shown = terminal_episodes(past, explain=arguments.explain)
        return [hit.as_dict() for hit in past], shown
    from everest_pipelines.recall.search import search

    hits = search(snapshot, query, project=project, k=arguments.k, kind=arguments.kind, hidden=gone)
    return [hit.as_dict() for hit in hits], terminal(hits, explain=arguments.explain)


def _keys(snapshot: Snapshot) -> list[str]:
    """Every project that recall knows."""
    rows = snapshot.connection.execute(
        "SELECT project FROM projects UNION SELECT scope FROM ranges ORDER BY 1"
    )
    return [str(row[0]) for row in rows]


def _one_of(keys: list[str], start: str) -> str:
    """The one key that is or starts with ``start``. Raises CallerError for none and for several."""
    if start in keys:
        return start
    found = [key for key in keys if key.startswith(start)]
    if len(found) == 1:
        return found[0]
    if found:
        raise CallerError(f"{start!r} is the start of several projects: {listed(found)}.")
    raise CallerError(f"No project's key starts with {start!r}. Projects: {listed(keys)}.")


def listed(keys: list[str]) -> str:
    """The first keys in one line, and how many more there are."""
    more = f" and {len(keys) - NAMED} more" if len(keys) > NAMED else ""
    return (", ".join(keys[:NAMED]) or "none yet") + more


def remember(arguments: Namespace) -> int:
    """A note of the person, for this directory's project; the next night folds it."""
    from everest_pipelines.text import ledger

    if not arguments.text.strip():
        raise CallerError("There is nothing to remember.", 'everest remember "…"')
    place = opened()[0].ensure()
    project = project_at(place, Path(arguments.project or ".").expanduser().absolute())
    entry = ledger.append(
        place,
        "note",
        {
            "text": arguments.text.strip(),
            "project": project,
            # a pipe, and a terminal that an agent drives, are taken for an agent
            "channel": "terminal" if is_person() and not agent_around(os.environ) else "pipe",
        },
        now=now(),
    )
    if arguments.json:
        answer({name: entry[name] for name in ("id", "text", "project", "channel")})
    else:
        print(f"Noted for {project}; the next night folds it.")
        if entry["channel"] == "pipe":
            print(
                "It stays a candidate, which nobody is shown: it came through a pipe, and what did"
                " not come from a terminal may be an agent's own words."
            )
    return 0


def project_at(place: Home, folder: Path) -> str:
    """The key of the project that a directory belongs to, known or not."""
    from everest_pipelines.core.transcripts.projects import project_key
    from everest_pipelines.night.projects import git_root
    from everest_pipelines.recall.project import project_of
    from everest_pipelines.recall.snapshot import open_snapshot

    try:
        with open_snapshot(place) as snapshot:
            known = project_of(snapshot, folder)
    except MissingError:
        known = None  # nothing is published yet
    return known or project_key(git_root(str(folder)) or str(folder))


def morning(arguments: Namespace) -> int:
    """The report of the last night, as published."""
    print(_published(opened()[0], "morning.md").decode(), end="")
    return 0
