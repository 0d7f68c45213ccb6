"""Events that programs left become entries of the ledger, each of them once."""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath

from everest_pipelines.core.records import ProjectKey
from everest_pipelines.core.transcripts.projects import project_key
from everest_pipelines.core.transcripts.reading import Event, Reading
from everest_pipelines.core.transcripts.times import DAY
from everest_pipelines.night.projects import ProjectBook
from everest_pipelines.night.workspace import Workspace
from everest_pipelines.text import ledger

CHANNEL = "inbox"  # no terminal: an agent's word, see ``derive``


def record(ws: Workspace, book: ProjectBook, reading: Reading) -> int:
    """Append the events that the ledger has not met; returns how many are new.

    An event is known by its key, also after its words were forgotten. One of a project that is
    kept out is not taken. A time more than a day ahead is left out: the entry's own stands.
    """
    known = {
        str(entry["event"])
        for entry in ledger.read(ws.home, ("event",)).entries
        if "event" in entry
    }
    fresh = 0
    for event in reading.events:
        project = project_of(event, book)
        if event.key in known or book.is_ignored(project):
            continue
        known.add(event.key)
        fresh += 1
        now = ws.now()
        entry: dict[str, str | int] = {
            "event": event.key,
            "text": event.text,
            "project": project,
            "channel": CHANNEL,
            "sub": event.kind,
            "agent": event.agent,
        }
        if event.occurred_at and event.occurred_at <= now + DAY:
            entry["occurred_at"] = event.occurred_at
        ledger.append(ws.home, "event", entry, now=now)
    return fresh


def project_of(event: Event, book: ProjectBook) -> ProjectKey:
    """The project that an event names: a directory, a key that is known, or a name of its own."""
    name = event.project
    if PurePosixPath(name).is_absolute() or PureWindowsPath(name).is_absolute():
        return book.key(name, name, "")
    return name if name in set(book.keys()) else project_key(name)
