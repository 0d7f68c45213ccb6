"""Rendering into the agents' own folders: between our markers, with a backup."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from everest_pipelines.core.records import EVERYWHERE, LessonRevision, ProjectKey, moment
from everest_pipelines.core.render import BrokenMarkersError, splice, unsplice
from everest_pipelines.lake.operational import ProjectRow
from everest_pipelines.night import published
from everest_pipelines.night.workspace import Failure, Workspace
from everest_pipelines.text import ledger
from everest_pipelines.text.atomic import write_atomic

MEMORY_FILE = "MEMORY.md"
LESSON_FILES = "everest-*.md"


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
    for folder, projects in sorted(folders_of(ws).items()):
        memory = ws.settings.claude_dir / "projects" / folder / "memory"
        if not memory.parent.is_dir():
            continue  # the agent's folder went; what it held is not ours to make again
        if len(projects) > 1:
            report.shared_folders.append(folder)
            continue
        source = generation.path / "render" / next(iter(projects))
        _render_folder(ws, source, memory, generation.name, report)
    return report


def _render_folder(
    ws: Workspace, source: Path, memory: Path, generation: str, report: RenderReport
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
            if path.name not in wanted:
                _back_up(ws, path)
                path.unlink()
                report.removed.append(str(path))
    except BrokenMarkersError as error:
        report.failures.append(Failure(str(memory / MEMORY_FILE), error.message))
        return
    except OSError as error:
        report.failures.append(Failure(str(memory), f"cannot be written: {error.strerror}"))
        return
    report.folders.append(str(memory))
    changed = [one for one in (*report.written, *report.removed) if one.startswith(str(memory))]
    if changed:
        entry = {
            "folder": str(memory),
            "generation": generation,
            "files": {
                name: hashlib.sha256(content).hexdigest()
                for name, content in sorted(wanted.items())
            },
            "section": hashlib.sha256(section.encode()).hexdigest(),
        }
        ledger.append(ws.home, "render", entry, now=ws.now())


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
    else:
        write_atomic(path, after.encode("utf-8"))
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
    folders = {
        str(entry["folder"])
        for entry in ledger.read(ws.home, ("render",)).entries
        if entry.get("folder")
    }
    for folder in sorted(folders):
        memory = Path(folder)
        if memory.is_dir():
            _render_folder(ws, memory / ".nothing", memory, "", report)
            if not any(memory.iterdir()):
                memory.rmdir()
    return report


def counts_by_folder(shown: Sequence[LessonRevision]) -> dict[ProjectKey, int]:
    """How many lessons each project would be rendered with."""
    return dict(Counter(lesson.scope for lesson in shown if lesson.scope != EVERYWHERE))
