"""A small memory for the acceptance tests: sessions and notes in, every surface out."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from everest_pipelines.cli.work import drop_derived, refold
from everest_pipelines.core.records import LessonRevision, micros
from everest_pipelines.core.transcripts.projects import project_key
from everest_pipelines.lake import lock, views
from everest_pipelines.night import published
from everest_pipelines.night.publish import Publication, publish
from everest_pipelines.night.render import render
from everest_pipelines.night.run import run
from everest_pipelines.night.workspace import Workspace
from everest_pipelines.recall import overlay
from everest_pipelines.recall.search import search
from everest_pipelines.recall.snapshot import open_snapshot
from everest_pipelines.text import ledger
from everest_pipelines_tests.night.homes import workspace

FIRST = dt.date(2026, 3, 2)


def day_of(number: int) -> str:
    return (FIRST + dt.timedelta(days=number)).isoformat()


def at(number: int, hour: int = 12, second: int = 0) -> dt.datetime:
    day = FIRST + dt.timedelta(days=number)
    return dt.datetime(day.year, day.month, day.day, hour, 0, second, tzinfo=dt.UTC)


class Memory:
    """One home over one folder of Claude Code transcripts, with a clock that the test moves."""

    def __init__(self, root: Path) -> None:
        self.root, self.claude, self.home = root, root / "claude", root / "home"
        self.today = 0

    def path(self, project: str) -> str:
        return f"/srv/{project}"

    def key(self, project: str) -> str:
        return project_key(self.path(project))

    def memory_folder(self, project: str) -> Path:
        return self.claude / "projects" / f"-srv-{project}" / "memory"

    def ws(self) -> Workspace:
        ws = workspace(self.home, self.claude, EVEREST_RENDER="1", EVEREST_RAW_DAYS="0")
        ws.now = lambda: micros(at(self.today, 23, 30))
        return ws

    def session(
        self, project: str, name: str, day: int, said: Sequence[str], *, agent: str = "Done."
    ) -> Path:
        """A transcript in which the person says these sentences, one turn each."""
        folder = self.claude / "projects" / f"-srv-{project}"
        folder.mkdir(parents=True, exist_ok=True)
        lines: list[dict[str, Any]] = []
        parent: str | None = None
        for number, text in enumerate(said):
            for role in ("user", "assistant"):
                uuid = f"{name}-{role}-{number}"
                second = 2 * number + (role == "assistant")
                stamp = at(day, 10, second).isoformat().replace("+00:00", "Z")
                content: Any = text if role == "user" else [{"type": "text", "text": agent}]
                message = {"role": role, "content": content}
                if role == "assistant":
                    message |= {"id": f"m-{uuid}", "model": "m", "type": "message"}
                lines.append(
                    {
                        "type": role,
                        "uuid": uuid,
                        "parentUuid": parent,
                        "sessionId": name,
                        "timestamp": stamp,
                        "cwd": self.path(project),
                        "version": "2.1.0",
                        "isSidechain": False,
                        "userType": "external",
                        "message": message,
                    }
                )
                parent = uuid
        path = folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        return path

    def note(self, project: str, text: str, day: int, channel: str = "terminal") -> dict[str, Any]:
        """What ``everest remember`` enters; the channel is that of the caller."""
        return ledger.append(
            self.ws().home,
            "note",
            {"text": text, "project": self.key(project), "channel": channel},
            now=micros(at(day)),
        )

    def event(self, project: str, text: str, day: int) -> None:
        """What another program leaves in the inbox, said by two agents."""
        inbox = self.ws().home.inbox
        inbox.mkdir(parents=True, exist_ok=True)
        body = {"project": self.key(project), "text": text, "occurred_at": at(day).isoformat()}
        lines = [json.dumps(body | {"agent": agent}) + "\n" for agent in ("one", "two")]
        with (inbox / "left.jsonl").open("a", encoding="utf-8") as file:
            file.writelines(lines)

    def review(self, lesson: LessonRevision, action: str, day: int, **more: Any) -> None:
        """What ``everest review`` enters when the person has decided."""
        ledger.append(
            self.ws().home,
            "review",
            {
                "action": action,
                "actor": "person",
                "channel": "terminal",
                "lesson_id": lesson.lesson_id,
                "value_key": lesson.value_key,
                "scope": lesson.scope,
                "sources": list(lesson.source_episode_ids),
                **more,
            },
            now=micros(at(day, 13)),
        )

    def night(self, day: int) -> Publication:
        """The night after ``day``; it must leave nothing behind."""
        self.today = day + 1
        results, done = run(self.ws(), day_of(day))
        assert [f for one in results for f in one.failures] == []
        assert done.blocked == []
        return done

    def publish(self, day: int) -> Publication:
        ws = self.ws()
        with lock.held(ws.home, "the tests"):
            done = publish(ws, day_of(day))
            render(ws)
        return done

    def rebuild(self, day: int) -> None:
        """Drops everything derived, vectors of the cache and generations too, and folds anew."""
        ws = self.ws()
        drop_derived(ws)
        shutil.rmtree(ws.home.models, ignore_errors=True)
        shutil.rmtree(ws.home.published, ignore_errors=True)
        with lock.held(ws.home, "the tests"):
            refold(self.ws(), day_of(day))

    # -- surfaces ------------------------------------------------------------------------------

    def lessons(self, project: str = "") -> list[LessonRevision]:
        ws = self.ws()
        rows = published.lessons(ws.home, published.current(ws.home))
        return [row for row in rows if not project or row.scope == self.key(project)]

    def lesson(self, text: str) -> LessonRevision:
        return next(row for row in self.lessons() if text in row.text)

    def revisions(self) -> list[LessonRevision]:
        return [row for _, _, row in self.ws().lake.read("lessons")]

    def recall(self, project: str, query: str, k: int = 5) -> list[str]:
        """Texts that recall gives to a caller in a project (a key, or what it claims to be one)."""
        home = self.ws().home
        asked = self.key(project) if project.isalnum() else project
        with open_snapshot(home) as snapshot:
            hits = search(snapshot, query, project=asked, k=k, hidden=overlay.hidden(home))
        return [hit.text for hit in hits]

    def files(self, project: str) -> str:
        """All that was rendered into a project's folder."""
        found = sorted(self.memory_folder(project).glob("*.md"))
        return "\n".join(path.read_text(encoding="utf-8") for path in found)

    def sql(self, query: str) -> list[tuple[Any, ...]]:
        with views.connect(self.ws().home) as connection:
            return connection.execute(query).fetchall()

    def surfaces(self, project: str, query: str) -> dict[str, str]:
        """What each surface shows to a project about a query."""
        scopes = f"('{self.key(project)}', 'everywhere')"
        rows = self.sql(f"SELECT text FROM lessons_now WHERE scope IN {scopes}")
        return {
            "recall": "\n".join(self.recall(project, query)),
            "files": self.files(project),
            "sql": "\n".join(str(row[0]) for row in rows),
        }

    def lessons_of(self, scope: str) -> list[LessonRevision]:
        return [row for row in self.lessons() if row.scope == scope]
