"""What an agent may ask of the memory: recall, look, remember, ask why. Nothing here can decide.

Every answer obeys the off switch and the overlay as they are at that moment, and the project that
this side resolved; no argument can name another.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from everest_pipelines.recall import format
from everest_pipelines.recall.episodes import search_episodes
from everest_pipelines.recall.left_out import left_out
from everest_pipelines.recall.project import project_of
from everest_pipelines.recall.search import Hit, search
from everest_pipelines.recall.snapshot import EVERYWHERE, Lesson, Snapshot, open_snapshot
from everest_pipelines.recall.switch import is_off
from everest_pipelines.text import ledger
from everest_pipelines.text.errors import CallerError, DamagedError, MissingError
from everest_pipelines.text.home import Home

RECALLED = 5
LISTED = 50
BUDGET = 2000  # tokens of one answer: it was asked for, unlike what a hook shows
LONGEST_NOTE = 2000  # characters: a note is a sentence or two, not a file
QUOTES = 8  # pieces of evidence, the newest first


class Answers:
    """The tools and resources of one client. `folders`: where it works, by roots or directory.

    `project_of_folder` names the project of a folder that no snapshot knows yet. `now`:
    microseconds UTC.
    """

    def __init__(
        self,
        home: Home,
        environ: Mapping[str, str],
        folder: str,
        *,
        project_of_folder: Callable[[str], str],
        now: Callable[[], int],
    ) -> None:
        self._home = home
        self._environ = environ
        self._project_of_folder = project_of_folder
        self._now = now
        self.folders = [folder]

    def call(self, name: str, given: Mapping[str, Any]) -> str:
        """The text that a tool answers; "" while Everest is off. Raises EverestError."""
        if is_off(self._home, self._environ):
            return ""
        match name:
            case "recall":
                return self._recall(given["query"], given.get("k", RECALLED), given.get("kind"))
            case "lessons":
                return self._lessons(given.get("k", LISTED))
            case "remember":
                return self._remember(given["text"])
            case "why":
                return self._why(given["id"])
            case _:
                raise CallerError(f"There is no tool {name!r}.")

    def resource(self, name: str) -> str:
        """The text of a resource; "" while Everest is off. Raises EverestError."""
        if is_off(self._home, self._environ):
            return ""
        with open_snapshot(self._home) as snapshot:
            project = self._project(snapshot)
            gone = self._gone(snapshot, project)
            others = _keys(snapshot) - {project, EVERYWHERE}
            folder = snapshot.path.rpartition("/")[0]
        try:
            with open(f"{folder}/{name}", encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            raise MissingError(f"There is no {name} in {folder}.", "everest publish") from None
        if name == "morning.md":
            return _own_lines(text, project, others)
        return self._own_lessons(text, project, gone)

    def _recall(self, query: str, k: int, kind: str | None) -> str:
        with open_snapshot(self._home) as snapshot:
            project = self._project(snapshot)
            gone = self._gone(snapshot, project)
            if kind == "episode":
                hidden = snapshot.sources_of(gone)
                found = search_episodes(snapshot, query, project=project, k=k, hidden=hidden)
                return format.episode_block(found, budget=BUDGET)
            hits = search(snapshot, query, project=project, k=k, kind=kind, hidden=gone)
        return self._shown(hits, project)

    def _lessons(self, k: int) -> str:
        with open_snapshot(self._home) as snapshot:
            project = self._project(snapshot)
            gone = self._gone(snapshot, project)
            kept = [one for one in snapshot.lessons(project) if one.keys().isdisjoint(gone)]
        return self._shown([_as_hit(one) for one in kept[:k]], project)

    def _shown(self, hits: Sequence[Hit], project: str) -> str:
        text, shown = format.block(hits, budget=BUDGET)
        if shown:
            entry = {
                "surface": "mcp",
                "project": project,
                "lesson_ids": [hit.lesson_id for hit in shown],
                "reason": "shown",
                "rendered": True,
            }
            ledger.append(self._home, "recall", entry, now=self._now())
        return text

    def _remember(self, text: str) -> str:
        said = text.strip()
        if not said or len(said) > LONGEST_NOTE:
            raise CallerError(f"A note has 1 to {LONGEST_NOTE} characters; this has {len(said)}.")
        try:
            with open_snapshot(self._home) as snapshot:
                project = self._known(snapshot)
        except MissingError:
            project = None  # nothing is published yet
        project = project or self._project_of_folder(self.folders[0] if self.folders else "")
        note = {"text": said, "project": project, "channel": "mcp"}
        ledger.append(self._home.ensure(), "note", note, now=self._now())
        return f"Noted for {project} as a candidate; the next night folds it."

    def _why(self, identifier: str) -> str:
        with open_snapshot(self._home) as snapshot:
            project = self._project(snapshot)
            gone = self._gone(snapshot, project)
            lesson = snapshot.lesson(identifier, scopes=(project, EVERYWHERE))
            if lesson is None or not lesson.keys().isdisjoint(gone):
                raise CallerError(f"This project has no lesson {identifier[:40]!r}.")
            sources = snapshot.episodes(lesson.sources)
        lines = [
            f"- {_day(one.occurred_at)}, session {one.session[:8]}, {one.kind}:"
            f" {one.quote or one.gist or one.title}"
            for one in sorted(sources, key=lambda one: (-one.occurred_at, one.id))[:QUOTES]
        ]
        head = (
            f"[{lesson.short_id}] {lesson.text} | {lesson.kind}, {lesson.state},"
            f" seen {lesson.seen} times, last on {_day(lesson.last_seen_at)}"
        )
        return format.fenced([head, *lines])

    def _gone(self, snapshot: Snapshot, project: str) -> frozenset[str]:
        return left_out(self._home, self._environ, snapshot, project, now=self._now())

    def _project(self, snapshot: Snapshot) -> str:
        return self._known(snapshot) or EVERYWHERE

    def _known(self, snapshot: Snapshot) -> str | None:
        """The project of the first folder that belongs to a known one."""
        known = (project_of(snapshot, folder) for folder in self.folders)
        return next((project for project in known if project), None)

    def _own_lessons(self, text: str, project: str, gone: frozenset[str]) -> str:
        kept: list[str] = []
        for line in text.splitlines():
            try:
                lesson = json.loads(line)
                keys = {lesson["id"], lesson["short_id"], lesson["value_key"]}
                own = lesson["scope"] in (project, EVERYWHERE)
            except (ValueError, KeyError, TypeError) as error:
                raise DamagedError("lessons.jsonl cannot be read.", "everest publish") from error
            if own and keys.isdisjoint(gone):
                kept.append(line + "\n")
        return "".join(kept)


def _own_lines(report: str, project: str, others: set[str]) -> str:
    """The report without the entries that name another project."""
    kept: list[str] = []
    dropping = False
    for line in report.splitlines(keepends=True):
        if not line.startswith(("  ", "\t")):
            dropping = any(other in line for other in others)
            if line.startswith("- `") and project not in line and EVERYWHERE not in line:
                dropping = True  # a lesson that does not say whose it is
        if not dropping:
            kept.append(line)
    return "".join(kept)


def _keys(snapshot: Snapshot) -> set[str]:
    rows = snapshot.connection.execute(
        "SELECT project FROM projects UNION SELECT scope FROM ranges"
    )
    return {str(row[0]) for row in rows}


def _as_hit(lesson: Lesson) -> Hit:
    return Hit(
        lesson_id=lesson.id,
        short_id=lesson.short_id,
        text=lesson.text,
        score=0.0,
        state=lesson.state,
        why="",
        kind=lesson.kind,
        scope=lesson.scope,
        fix=lesson.fix,
        quote=lesson.quote,
    )


def _day(micros: int) -> str:
    return dt.datetime.fromtimestamp(micros / 1_000_000, dt.UTC).strftime("%Y-%m-%d")
