"""The stages between transcripts and sleep: sessions and offers, episodes, vectors.

Each works day by day and only on days that are stale: a day's inputs are named by one hash, which
``days`` keeps beside what was made of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from everest_pipelines.core import embed
from everest_pipelines.core.detect.counts import offers, session_days
from everest_pipelines.core.detect.family import detect
from everest_pipelines.core.detect.registry import VERSIONS
from everest_pipelines.core.records import (
    EVERYWHERE,
    Day,
    Episode,
    EpisodeKind,
    Origin,
    ProjectKey,
    Turn,
    Vector,
)
from everest_pipelines.lake.days import Days, closed
from everest_pipelines.lake.lake import CellResult
from everest_pipelines.lake.operational import CellState, DayRow, FileRow
from everest_pipelines.night.families import family_roots
from everest_pipelines.night.models import spaces
from everest_pipelines.night.workspace import (
    Failure,
    Span,
    StageResult,
    Stopwatch,
    Workspace,
    rare_collections,
)
from everest_pipelines.text import ledger
from everest_pipelines.text.ids import digest

SESSIONS_VERSION = 2  # of what the stage ``sessions`` derives; a new one derives every day again
NOTE_VERSION = 1

Made = dict[str, dict[ProjectKey, list[Any]]]  # table -> project -> rows


class Inputs:
    """What the lake holds of transcripts, by day, and which families reach over which cells."""

    def __init__(self, ws: Workspace) -> None:
        self.ws = ws
        self.days = Days.load(ws.lake)
        self.cells: dict[Day, dict[ProjectKey, str]] = {
            row.day: {cell.project: cell.sha256 for cell in row.cells if cell.rows}
            for row in self.days.rows("transcripts")
        }
        files: list[FileRow] = ws.lake.read_table("files")
        self._reach = _reach(files)
        self._families_on: dict[Day, set[str]] = defaultdict(set)
        for family, cells in self._reach.items():
            for day, _ in cells:
                self._families_on[day].add(family)
        self.notes = _notes(ws)

    def all_days(self) -> list[Day]:
        """Days that hold, or held, turns or notes, in order."""
        return sorted(self.cells.keys() | self.notes.keys())

    def earlier_cells(self, day: Day) -> list[tuple[Day, ProjectKey]]:
        """Cells before ``day`` that hold turns of a family with a turn on ``day``."""
        return sorted(
            {
                cell
                for family in self._families_on[day]
                for cell in self._reach[family]
                if cell[0] < day and cell[1] in self.cells.get(cell[0], {})
            }
        )

    def hash(self, day: Day, version: str) -> str:
        """Names all that the episodes of ``day`` are made of."""
        return digest(
            version,
            *(f"{project}:{sha}" for project, sha in sorted(self.cells.get(day, {}).items())),
            *(
                f"{earlier}:{project}:{self.cells[earlier][project]}"
                for earlier, project in self.earlier_cells(day)
            ),
        )

    def turns_by_family(self, day: Day) -> dict[str, list[Turn]]:
        """All turns up to the end of ``day`` of every family with a turn on it."""
        found: dict[str, list[Turn]] = defaultdict(list)
        for project, sha in sorted(self.cells.get(day, {}).items()):
            for turn in self.ws.turns(day, project, sha):
                found[turn.family_id].append(turn)
        for earlier, project in self.earlier_cells(day):
            for turn in self.ws.turns(earlier, project, self.cells[earlier][project]):
                if turn.family_id in found:
                    found[turn.family_id].append(turn)
        return found

    def project_of_turns(self, day: Day) -> dict[str, ProjectKey]:
        """turn_id -> project for every turn that ``turns_by_family`` gives."""
        cells = [(day, project) for project in self.cells.get(day, {})]
        return {
            turn.turn_id: project
            for of_day, project in [*self.earlier_cells(day), *cells]
            for turn in self.ws.turns(of_day, project, self.cells[of_day][project])
        }


def _reach(files: Iterable[FileRow]) -> dict[str, set[tuple[Day, ProjectKey]]]:
    """Family -> every cell that a file of one of its sessions touches."""
    rows = [row for row in files if row.session_id]
    root = family_roots(rows)
    reach: dict[str, set[tuple[Day, ProjectKey]]] = defaultdict(set)
    for row in rows:
        if not row.sessions:
            reach[root[row.session_id]].update(row.cells)
        for session, day, project in row.sessions:
            reach[root.get(session, session)].add((day, project))
    return reach


def _notes(ws: Workspace) -> dict[Day, list[tuple[ProjectKey, Episode]]]:
    """Note episodes of the ledger's notes and events, by the day on which they were recorded."""
    found: dict[Day, list[tuple[ProjectKey, Episode]]] = defaultdict(list)
    for entry in ledger.read(ws.home, ("note", "event")).entries:
        text = str(entry.get("text", ""))
        if not text:
            continue  # forgotten since
        human = entry.get("channel") == "terminal"
        at = int(entry.get("occurred_at") or entry["recorded_at"])
        episode = Episode(
            episode_id=digest("note", str(entry["id"])),
            kind=EpisodeKind.NOTE,
            sub=str(entry["kind"]),
            title=text,
            gist=text,
            quote=text,
            quote_to=len(text),
            origin=Origin.HUMAN if human else Origin.ASSISTANT,
            standing=True,
            sure=human,
            score=1.0,
            occurred_at=at,
            session_id=str(entry["id"]),
            family_id=str(entry["id"]),
            source_path="ledger",
            detector="note",
            detector_version=NOTE_VERSION,
            reason="ledger",
            settled_at=at,
        )
        day = ws.calendar.day_of(at)
        found[day].append((str(entry.get("project") or EVERYWHERE), episode))
    return found


def sessions(ws: Workspace, days: Span | None = None) -> StageResult:
    """Counts per session and day, and the offers that agents made."""

    def make(inputs: Inputs, day: Day) -> Made:
        project_of = inputs.project_of_turns(day)
        first: dict[str, tuple[int, str]] = {}
        made: Made = {"sessions": defaultdict(list), "offers": defaultdict(list)}
        for turns in inputs.turns_by_family(day).values():
            for turn in turns:
                if ws.calendar.day_of(turn.occurred_at) == day:
                    place = (turn.occurred_at, turn.turn_id)
                    first[turn.session_id] = min(first.get(turn.session_id, place), place)
            for on, row in session_days(turns, day_of=ws.calendar.day_of):
                if on == day and row.session_id in first:
                    made["sessions"][project_of[first[row.session_id][1]]].append(row)
            when = {turn.turn_id: ws.calendar.day_of(turn.occurred_at) for turn in turns}
            for offer in offers(turns):
                if day in (when.get(offer.turn_id), when.get(offer.answer_turn_id)):
                    made["offers"][project_of[offer.turn_id]].append(offer)
        return made

    return _derive(ws, "sessions", ("sessions", "offers"), days, make)


def episodes(ws: Workspace, days: Span | None = None) -> StageResult:
    """What is worth remembering: by the day of the turn that triggered it.

    A fix or concession of a later day is a further row, with the same episode_id, in that day's
    cell: state on a day never shows what came after it.
    """

    def make(inputs: Inputs, day: Day) -> Made:
        project_of = inputs.project_of_turns(day)
        made: Made = {"episodes": defaultdict(list)}
        for project, note in inputs.notes.get(day, ()):
            made["episodes"][project].append(note)
        for turns in inputs.turns_by_family(day).values():
            for episode in detect(turns, day_of=ws.calendar.day_of):
                settled = max(episode.settled_at, episode.occurred_at)
                if day in (
                    ws.calendar.day_of(episode.occurred_at),
                    ws.calendar.day_of(settled),
                ):
                    made["episodes"][project_of[episode.turn_id]].append(episode)
        return made

    return _derive(ws, "episodes", ("episodes",), days, make)


def _detectors() -> str:
    return ",".join(f"{name}:{version}" for name, version in sorted(VERSIONS.items()))


def _note_digests(inputs: Inputs, day: Day) -> list[str]:
    return [f"{project}:{note.episode_id}" for project, note in inputs.notes.get(day, ())]


def vectors(ws: Workspace, days: Span | None = None) -> StageResult:
    """The embedding of every episode that joins others, in the space that is asked for.

    When its model does not answer, in the last good space, else in the built-in one: the count
    ``model_failures`` and ``space.json`` say so, and the night goes on.
    """

    def needed(space: str) -> list[str]:
        inputs = Inputs(ws)
        found = {
            embed.text_of(episode): None
            for day in _work(inputs, "vectors", days, _vector_days(inputs, space))
            for project in _projects(inputs.days, "episodes", day)
            for episode in _embedded(ws, day, project)
        }
        ws.progress.begin("vectors", len(found), "texts")
        return list(found)

    embedder, used = spaces.settle(
        ws.home, ws.settings, needed, server=ws.model_server, advance=ws.progress.advance
    )

    def make(inputs: Inputs, day: Day) -> Made:
        made: Made = {"vectors": {}}
        for project in _projects(inputs.days, "episodes", day):
            chosen = _embedded(ws, day, project)
            texts = [embed.text_of(episode) for episode in chosen]
            made["vectors"][project] = [
                Vector(
                    episode_id=episode.episode_id,
                    space=embedder.space,
                    text_sha256=digest(text, size=32),
                    vector=tuple(float(value) for value in row),
                )
                for episode, text, row in zip(chosen, texts, embedder.embed(texts), strict=True)
            ]
        return made

    result = _derive(ws, "vectors", ("vectors",), days, make)
    result.counts["model_failures"] = int(bool(used.why))
    return result


def _embedded(ws: Workspace, day: Day, project: ProjectKey) -> list[Episode]:
    """The episodes of a cell that have a vector."""
    return [
        episode
        for episode in ws.lake.read_cell("episodes", day, project)
        if embed.lesson_kind_of(episode) is not None
    ]


STAGES = ("sessions", "episodes", "vectors")


def wanted(inputs: Inputs, stage: str) -> dict[Day, str]:
    """Day -> input hash for every day that a stage must have made."""
    if stage == "sessions":
        version = f"sessions-{SESSIONS_VERSION}"
        return {day: inputs.hash(day, version) for day in sorted(inputs.cells)}
    if stage == "episodes":
        return {
            day: digest(inputs.hash(day, _detectors()), *_note_digests(inputs, day))
            for day in inputs.all_days()
        }
    return _vector_days(inputs, spaces.space_of(inputs.ws.home, inputs.ws.settings))


def _vector_days(inputs: Inputs, space: str) -> dict[Day, str]:
    return {
        row.day: digest(space, row.output_hash)
        for row in inputs.days.rows("episodes")
        if row.state == "closed"
    }


def stale_days(inputs: Inputs, stage: str) -> list[Day]:
    """Days whose inputs differ from what a stage made of them last, or whose files are not good."""
    return [
        day
        for day, input_hash in wanted(inputs, stage).items()
        if not inputs.days.good(stage, day, input_hash)
    ]


def _projects(days: Days, stage: str, day: Day) -> list[ProjectKey]:
    """The projects in which a stage made rows of a day."""
    row = days.row(stage, day)
    return [cell.project for cell in row.cells if cell.rows] if row else []


def _derive(
    ws: Workspace,
    stage: str,
    tables: tuple[str, ...],
    asked: Span | None,
    make: Callable[[Inputs, Day], Made],
) -> StageResult:
    """Bring every stale day (and every asked one) of a stage up to date."""
    with rare_collections():
        return _derived(ws, stage, tables, asked, make)


def _derived(
    ws: Workspace,
    stage: str,
    tables: tuple[str, ...],
    asked: Span | None,
    make: Callable[[Inputs, Day], Made],
) -> StageResult:
    watch = Stopwatch()
    result = StageResult(stage=stage)
    inputs = Inputs(ws)
    hashes = wanted(inputs, stage)
    work = _work(inputs, stage, asked, hashes)
    ws.progress.begin(stage, len(work), "days")
    if work:
        inputs.days.open(stage, work)
    done: list[DayRow] = []
    for day in work:
        try:
            made = make(inputs, day)
        except Exception as error:  # whatever one day's rows trigger is that day's failure alone
            # Only the kind of the error and its place: its words may quote a transcript.
            what = f"{type(error).__name__} in {_place(error)}"
            result.failures.append(Failure(f"{stage} {day}", what))
            continue
        cells = write_day(ws, day, {table: made.get(table, {}) for table in tables})
        result.cells += cells
        for table in tables:
            rows = sum(cell.rows for cell in cells if cell.table == table)
            result.counts[table] = result.counts.get(table, 0) + rows
        done.append(closed(stage, day, input_hash=hashes[day], cells=cells))
        ws.progress.advance()
    if done:
        inputs.days.close(done)
    ws.progress.end()
    result.counts["days"] = len(done)
    result.seconds = watch.seconds
    return result


def _work(inputs: Inputs, stage: str, asked: Span | None, hashes: Mapping[Day, str]) -> list[Day]:
    return [
        day
        for day, input_hash in hashes.items()
        if (asked is not None and day in asked) or not inputs.days.good(stage, day, input_hash)
    ]


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "unknown"
    code = trace.tb_frame.f_code
    return f"{Path(code.co_filename).name}:{trace.tb_lineno} {code.co_name}"


def write_day(ws: Workspace, day: Day, made: Made) -> list[CellResult]:
    """Write what was made of a day; a cell that has no rows any more becomes a zero-row file."""
    written: list[CellResult] = []
    for table, by_project in made.items():
        there = {cell.project for cell in ws.lake.cells(table, days=[day])}
        for project in sorted(there | by_project.keys()):
            written.append(ws.lake.write_cell(table, day, project, by_project.get(project, [])))
    return written


def day_row(
    ws: Workspace,
    stage: str,
    tables: Sequence[str],
    day: Day,
    input_hash: str,
    prev_hash: str = "",
    written: Mapping[tuple[Day, ProjectKey], CellResult] | None = None,
) -> DayRow:
    """The closed row of a day, from what its files are now.

    ``written``: what the caller itself wrote last of a stage with one table; it is believed.
    """
    known = written or {}
    cells = [
        known.get((day, cell.project)) or cell_state(ws, table, day, cell.project)
        for table in tables
        for cell in ws.lake.cells(table, days=[day])
    ]
    return closed(stage, day, input_hash=input_hash, prev_hash=prev_hash, cells=cells)


def cell_state(ws: Workspace, table: str, day: Day, project: ProjectKey) -> CellState:
    """What the file of a cell is now."""
    path = ws.lake.path(table, day, project)
    return CellState(
        table,
        project,
        ws.lake.cell_digest(table, day, project),
        path.stat().st_size,
        row_count(path),
    )


def row_count(path: Path) -> int:
    """Rows of a Parquet file, from its footer."""
    import pyarrow.parquet as pq

    return pq.read_metadata(path).num_rows
