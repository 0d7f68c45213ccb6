"""What was done to rendered files since they were written: by the person, or by an agent.

A lesson's file that the person deleted or edited hides the lesson (a veto in the ledger, and the
overlay) until they decide in review. What an agent did is no decision: the lesson stays, and the
next rendering restores the file. A missing folder, or many files gone at once, is a question.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from everest_pipelines.core import trust
from everest_pipelines.core.records import LessonRevision, Micros
from everest_pipelines.core.render.edited import text_of_file, text_of_line, texts_of_section
from everest_pipelines.core.render.plain import short_id
from everest_pipelines.night import published
from everest_pipelines.night.gates import REMOVED_LEAST, REMOVED_SHARE
from everest_pipelines.night.workspace import Workspace
from everest_pipelines.recall import overlay
from everest_pipelines.text import ledger

MEMORY_FILE = "MEMORY.md"
VIA = "file"
# Tools that only look. A call of another one that names the file counts as the agent's doing.
_LOOKS = frozenset({"read", "grep", "glob", "ls", "view", "read_file", "search", "list_directory"})


class Change(Struct, frozen=True, kw_only=True):
    """One lesson whose file, or line in MEMORY.md, is not as it was rendered."""

    path: str
    lesson: LessonRevision
    what: str  # deleted, edited
    text: str = ""  # what an edited one says now, "" when that cannot be told
    rendered_at: Micros


class Edits(Struct, kw_only=True):
    """What was found, by whose hand."""

    hidden: list[Change] = []
    restored: list[Change] = []  # an agent did it: the next rendering writes it again
    questions: list[str] = []  # sentences: nothing was done


def take(ws: Workspace) -> Edits:
    """What `look` finds, entered into ledger and overlay.

    Only for whoever holds the lake's lock: while another renders, files are neither old nor new.
    """
    found = look(ws)
    for one in found.hidden:
        overlay.hide(
            ws.home,
            one.lesson.lesson_id,
            value_key=one.lesson.value_key,
            why=f"its file was {one.what}",
            at=ws.now(),
        )
        _enter(ws, one, action="hide", why=one.what)
    for one in found.restored:
        overlay.unhide(ws.home, one.lesson.lesson_id)
        _enter(ws, one, action="lift", why=f"{one.what} by an agent")
    return found


def look(ws: Workspace) -> Edits:
    """Compare rendered files with the ledger's last word on each folder; writes nothing."""
    found = Edits()
    generation = published.current(ws.home)
    if not ws.settings.render or generation is None:
        return found
    entries = ledger.read(ws.home, ("render", "veto", "review")).entries
    found.restored += _wrongly_hidden(ws, entries)
    lessons = {one.lesson_id: one for one in published.lessons(ws.home, generation)}
    known = {str(entry.get("lesson_id", "")) for entry in trust.vetoes(entries)}
    for entry in _last_renders(entries):
        folder = Path(str(entry["folder"]))
        written = {name: lessons[one] for name, one in _named(entry).items() if one in lessons}
        if not written:
            continue
        if not folder.is_dir():
            found.questions.append(f"{folder} is gone; nothing was hidden")
            continue
        changes = [
            one
            for one in _changes(folder, entry, written, generation.path / "render")
            if one.lesson.lesson_id not in known
        ]
        by_agent = [one for one in changes if _by_agent(ws, one, until=ws.now())]
        by_person = [one for one in changes if one not in by_agent]
        if len(by_person) >= REMOVED_LEAST and len(by_person) > REMOVED_SHARE * len(written):
            found.questions.append(
                f"{len(by_person)} of {len(written)} lessons went from {folder} at once; nothing"
                " was hidden"
            )
            by_person = []
        found.hidden += by_person
        found.restored += by_agent
    return found


def _last_renders(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    last = {str(one["folder"]): one for one in entries if one.get("kind") == "render"}
    return [last[folder] for folder in sorted(last)]


def _named(entry: dict[str, Any]) -> dict[str, str]:
    """File name -> lesson id, as rendered."""
    return {str(name): str(one["lesson_id"]) for name, one in (entry.get("lessons") or {}).items()}


def _changes(
    folder: Path, entry: dict[str, Any], written: dict[str, LessonRevision], source: Path
) -> Iterator[Change]:
    at = int(entry["recorded_at"])
    lines: dict[str, str] = entry.get("lines") or {}
    section = _section(folder / MEMORY_FILE)
    for name, lesson in sorted(written.items()):
        path = folder / name
        if not path.exists():
            if _is_wanted(source, name):
                yield Change(path=str(path), lesson=lesson, what="deleted", rendered_at=at)
            continue
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        if digest != entry["files"].get(name) and not _is_rendered(source, name, content):
            text = text_of_file(content.decode("utf-8", "replace"))
            yield Change(path=str(path), lesson=lesson, what="edited", text=text, rendered_at=at)
            continue
        short = short_id(lesson.lesson_id)
        if section is None or short not in lines:
            continue  # without our markers the section was taken out whole, which is no verdict
        memory = str(folder / MEMORY_FILE)
        if short not in section:
            yield Change(path=memory, lesson=lesson, what="deleted", rendered_at=at)
        elif hashlib.sha256(section[short].encode()).hexdigest() != lines[short]:
            text = text_of_line(section[short])
            yield Change(path=memory, lesson=lesson, what="edited", text=text, rendered_at=at)


def _section(path: Path) -> dict[str, str] | None:
    """Short id -> line of our section, None without one."""
    with contextlib.suppress(OSError):
        return texts_of_section(path.read_bytes().decode("utf-8", "replace"))
    return None


def _is_wanted(source: Path, name: str) -> bool:
    """Whether the generation in force still has the file: a render that was killed took others."""
    return any(source.glob(f"*/{name}"))


def _is_rendered(source: Path, name: str, content: bytes) -> bool:
    return any(path.read_bytes() == content for path in source.glob(f"*/{name}"))


def _by_agent(ws: Workspace, one: Change, *, until: Micros) -> bool:
    """Whether a tool call since the rendering names the file."""
    name = Path(one.path).name
    needle = name if name != MEMORY_FILE else f"{Path(one.path).parent.name}/{name}"
    first, last = ws.calendar.day_of(one.rendered_at), ws.calendar.day_of(until)
    for _, _, turn in ws.lake.read("transcripts", days=ws.calendar.days(first, last)):
        if not one.rendered_at <= turn.occurred_at <= until:
            continue
        for call in turn.tool_calls:
            if call.refused or call.name.lower() in _LOOKS:
                continue
            if needle in call.input or f"cd {Path(one.path).parent}" in call.input:
                return True
    return False


def _enter(ws: Workspace, one: Change, *, action: str, why: str) -> None:
    lesson = one.lesson
    ledger.append(
        ws.home,
        "veto",
        {
            "action": action,
            "why": why,
            "via": VIA,
            "path": one.path,
            "rendered_at": one.rendered_at,
            "text": one.text,
            "lesson_id": lesson.lesson_id,
            "value_key": lesson.value_key,
            "scope": lesson.scope,
            "sources": list(lesson.source_episode_ids),
        },
        now=ws.now(),
    )


def _wrongly_hidden(ws: Workspace, entries: list[dict[str, Any]]) -> list[Change]:
    """What was hidden before the transcript that shows the agent's hand was read."""
    rows: dict[str, LessonRevision] = {}
    found: list[Change] = []
    for entry in trust.vetoes(entries):
        if entry.get("via") != VIA:
            continue
        rows = rows or trust.newest(row for _, _, row in ws.history.rows("lessons"))
        lesson = rows.get(str(entry["lesson_id"]))
        if lesson is None:
            continue
        one = Change(
            path=str(entry["path"]),
            lesson=lesson,
            what=str(entry["why"]),
            rendered_at=int(entry["rendered_at"]),
        )
        if _by_agent(ws, one, until=int(entry["recorded_at"])):
            found.append(one)
    return found
