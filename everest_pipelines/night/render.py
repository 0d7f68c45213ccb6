"""Rendering into the agents' own folders: between our markers, with a backup."""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from everest_pipelines.core.records import LessonRevision, ProjectKey, moment
from everest_pipelines.core.render import BrokenMarkersError, splice, unsplice
from everest_pipelines.core.render.edited import texts_of_section
from everest_pipelines.core.render.plain import file_name
from everest_pipelines.lake.operational import ProjectRow
from everest_pipelines.night import published
from everest_pipelines.night.workspace import Failure, Workspace
from everest_pipelines.text import ledger
from everest_pipelines.text.atomic import write_atomic

MEMORY_FILE = "MEMORY.md"
LESSON_FILES = "everest-*.md"
_NOTHING = ".nothing"  # a folder that never is: rendering it takes everything of ours back
_OURS = re.compile(r"everest-[0-9a-f]{8,64}\.md")  # an owner's everest-notes.md is not


class RenderReport(Struct, kw_only=True):
    """What was written outside the home."""

    enabled: bool = False
    folders: list[str] = []
    written: list[str] = []
    removed: list[str] = []
    shared_folders: list[str] = []  # that more than one project maps to: left alone
    failures: list[Failure] = []


def folders_of(ws: Workspace) -> dict[str, set[ProjectKey]]:
    """Agent folder -> the projects that map to it, ignored projects left out."""
    rows: list[ProjectRow] = ws.lake.read_table("projects")
    found: dict[str, set[ProjectKey]] = {}
    for row in rows:
        for folder in row.folders:
            if not row.ignored:
                found.setdefault(folder, set()).add(row.project)
    return found


def _memory(ws: Workspace, folder: str) -> Path:
    return ws.settings.claude_dir / "projects" / folder / "memory"


def render(ws: Workspace) -> RenderReport:
    """Bring every project's agent memory folder to what the generation in force says.

    Nothing is written unless rendering was switched on. Only the section between our markers and
    our own ``everest-<id>.md`` files are touched; a file whose markers are broken is a failure and
    stays as it is.
    """
    report = RenderReport(enabled=ws.settings.render)
    generation = published.current(ws.home)
    if not ws.settings.render or generation is None:
        return report
    folders = folders_of(ws)
    known = _lessons(published.lessons(ws.home, generation))
    for memory in _left(ws, {_memory(ws, folder) for folder in folders}):
        _render_folder(ws, memory / _NOTHING, memory, generation.name, report)
    for folder, projects in sorted(folders.items()):
        memory = _memory(ws, folder)
        if not memory.parent.is_dir():
            continue  # the agent's folder went; what it held is not ours to make again
        if len(projects) > 1:
            report.shared_folders.append(folder)
            continue
        source = generation.path / "render" / next(iter(projects))
        _render_folder(ws, source, memory, generation.name, report, known)
    return report


def _lessons(lessons: Iterable[LessonRevision]) -> dict[str, dict[str, str]]:
    """What the ledger keeps of each lesson that has a file, by the file's name."""
    return {
        file_name(one.lesson_id): {"lesson_id": one.lesson_id, "value_key": one.value_key}
        for one in lessons
    }


def _left(ws: Workspace, wanted: set[Path]) -> list[Path]:
    """Folders that were rendered into and whose project is kept out since."""
    rendered = {Path(str(entry["folder"])) for entry in _renders(ws)}
    root = ws.settings.claude_dir / "projects"
    return sorted(one for one in rendered - wanted if one.is_dir() and one.is_relative_to(root))


def _render_folder(
    ws: Workspace,
    source: Path,
    memory: Path,
    generation: str,
    report: RenderReport,
    known: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> None:
    wanted = {path.name: path.read_bytes() for path in source.glob(LESSON_FILES)}
    section_file = source / MEMORY_FILE
    section = section_file.read_text(encoding="utf-8") if section_file.exists() else ""
    try:
        if _write_section(ws, memory / MEMORY_FILE, section):
            report.written.append(str(memory / MEMORY_FILE))
        for name, content in sorted(wanted.items()):
            if not (memory / name).exists() or (memory / name).read_bytes() != content:
                write_atomic(memory / name, content)
                report.written.append(str(memory / name))
        for path in sorted(memory.glob(LESSON_FILES)):
            if path.name not in wanted and _OURS.fullmatch(path.name):
                _back_up(ws, path)
                path.unlink()
                report.removed.append(str(path))
    except BrokenMarkersError as error:
        report.failures.append(Failure(str(memory / MEMORY_FILE), error.message))
        return
    except UnicodeDecodeError:
        report.failures.append(Failure(str(memory / MEMORY_FILE), "is no UTF-8 and stays as it is"))
        return
    except OSError as error:
        report.failures.append(Failure(str(memory), f"cannot be written: {error.strerror}"))
        return
    report.folders.append(str(memory))
    changed = [one for one in (*report.written, *report.removed) if one.startswith(str(memory))]
    entry = {
        "folder": str(memory),
        "generation": generation,
        "files": {
            name: hashlib.sha256(content).hexdigest() for name, content in sorted(wanted.items())
        },
        "section": hashlib.sha256(section.encode()).hexdigest(),
        # so that what is done to the files later can be told, lesson by lesson
        "lessons": {name: known[name] for name in sorted(wanted) if name in known},
        "lines": {
            name: hashlib.sha256(line.encode()).hexdigest()
            for name, line in sorted((texts_of_section(section) or {}).items())
        },
    }
    # Also when nothing was written: a render that was killed has left files and no entry.
    if changed or not _is_known(ws, entry):
        ledger.append(ws.home, "render", entry, now=ws.now())


def _is_known(ws: Workspace, entry: dict[str, Any]) -> bool:
    """Whether the ledger's last word on the folder says the same; nothing there needs no word."""
    said = [one for one in _renders(ws) if one["folder"] == entry["folder"]]
    if not said:
        return not entry["files"]
    return all(said[-1].get(name) == entry[name] for name in ("files", "section", "lessons"))


def _renders(ws: Workspace) -> list[dict[str, Any]]:
    return [one for one in ledger.read(ws.home, ("render",)).entries if one.get("folder")]


def _write_section(ws: Workspace, path: Path, section: str) -> bool:
    existing = path.read_bytes().decode("utf-8") if path.exists() else None
    if existing is None and not section:
        return False
    after = splice(existing, section) if section else unsplice(existing or "")
    if after == existing:
        return False
    if existing is not None:
        _back_up(ws, path)
    if after is None:
        path.unlink()
    elif existing is None:
        write_atomic(path, after.encode("utf-8"))
    else:  # the owner's file: where a link leads, with the mode that it has
        target = path.resolve()
        write_atomic(target, after.encode("utf-8"), mode=stat.S_IMODE(target.stat().st_mode))
    return True


def _back_up(ws: Workspace, path: Path) -> None:
    """A copy by content under the home: the same state is kept once, however often it recurs."""
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:12]
    day = moment(ws.now()).strftime("%Y-%m-%d")
    folder = path.parent.parent.name
    copy = ws.home.backups / folder / f"{path.name}.{day}.{digest}"
    if not copy.exists():
        write_atomic(copy, content)


def take_back(ws: Workspace) -> RenderReport:
    """Remove our section and files from every agent folder that a render ever wrote to."""
    report = RenderReport(enabled=ws.settings.render)
    folders = {str(entry["folder"]) for entry in _renders(ws)}
    folders |= {str(_memory(ws, folder)) for folder in folders_of(ws)}  # of a killed render
    for folder in sorted(folders):
        memory = Path(folder)
        if memory.is_dir():
            before = len(report.removed) + len(report.written)
            _render_folder(ws, memory / _NOTHING, memory, "", report)
            if len(report.removed) + len(report.written) > before and not any(memory.iterdir()):
                memory.rmdir()
    return report
