"""The stage ``transcripts``: files that are new or grew become turns in the lake."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from everest_pipelines.core.records import Day, ProjectKey, Turn
from everest_pipelines.core.transcripts.merge import merge_turn
from everest_pipelines.core.transcripts.reading import Reading
from everest_pipelines.lake import raw
from everest_pipelines.lake.columns import sorted_rows
from everest_pipelines.lake.days import OPEN, Days
from everest_pipelines.lake.lake import CellResult
from everest_pipelines.lake.operational import DayRow, FileRow, QuarantineRow
from everest_pipelines.lake.schemas import spec_of
from everest_pipelines.night.derive import day_row
from everest_pipelines.night.families import family_roots
from everest_pipelines.night.ignoring import follow_marks
from everest_pipelines.night.inbox import record
from everest_pipelines.night.look import READER_VERSION, Look, PendingFile, look
from everest_pipelines.night.projects import ProjectBook
from everest_pipelines.night.recognise import what_it_is_not
from everest_pipelines.night.scan import Scan, scan_for
from everest_pipelines.night.source import Located, Read, read_file
from everest_pipelines.night.workspace import (
    Failure,
    StageResult,
    Stopwatch,
    Workspace,
    rare_collections,
)
from everest_pipelines.text.errors import DamagedError

STAGE = "transcripts"
_SPEC = spec_of(STAGE)
BATCH_BYTES = 24 << 20  # source bytes whose turns are held at once


def ingest(ws: Workspace, looked: Look | None = None) -> StageResult:
    """Read every pending file and merge its turns into the cells of their days.

    A file that cannot be read is a failure of its own; the others go on. Bookmarks are written
    after the cells, so that a kill makes the same files pending again.
    """
    watch = Stopwatch()
    came_back = follow_marks(ws)
    looked = look(ws) if looked is None or came_back else looked
    result = StageResult(stage=STAGE, failures=list(looked.unreadable))
    run = _Ingest(ws, result, scan_for(looked.pending_bytes))
    ws.progress.begin(STAGE, looked.pending_bytes, "bytes")
    with rare_collections():
        for batch in _batches(looked.pending):
            run.batch(batch)
        run.mend_families()
        run.close()
    ws.progress.end()
    result.seconds = watch.seconds
    return result


def _batches(pending: list[PendingFile]) -> Iterator[list[PendingFile]]:
    batch: list[PendingFile] = []
    held = 0
    for one in pending:
        if batch and held + one.size > BATCH_BYTES:
            yield batch
            batch, held = [], 0
        batch.append(one)
        held += one.size
    if batch:
        yield batch


class _Ingest:
    """The state of one ingest: bookmarks, projects, quarantine and the days it touched."""

    def __init__(self, ws: Workspace, result: StageResult, scan: Scan) -> None:
        self.ws = ws
        self.scan = scan
        self.result = result
        self.files: dict[str, FileRow] = {row.path: row for row in ws.lake.read_table("files")}
        self.initial = family_roots(self.files.values())
        self.families = dict(self.initial)
        self.written: dict[str, set[str]] = defaultdict(set)
        self.links: dict[str, set[str]] = defaultdict(set)
        self.book = ProjectBook(ws.lake, ws.home)
        self.days = Days.load(ws.lake)
        self.fresh_events = 0
        self.interrupted = bool(self._open_days())  # a run died: trust no bookmark
        self.touched: dict[tuple[Day, ProjectKey], CellResult] = {}
        self.start = ws.calendar.day_start(ws.calendar.start)

    def _open_days(self) -> list[Day]:
        return [row.day for row in self.days.rows(STAGE) if row.state == OPEN]

    def batch(self, batch: list[PendingFile]) -> None:
        with raw.bundle(self.ws.home) as bundle:
            reads = [read for one in batch if (read := self._read(one, bundle)) is not None]
        for read in reads:
            self._locate(read)
        if any(read.located for read in reads):
            self._merge(reads)
        for read in reads:
            if read.reading.events:
                self.fresh_events += record(self.ws, self.book, read.reading)
        self._quarantine(reads)
        for read in reads:
            self._bookmark(read)
            self._count(read)
        self.book.save()
        self.ws.lake.write_table("files", list(self.files.values()))

    def _read(self, one: PendingFile, bundle: raw.Bundle) -> Read | None:
        old = self.files.get(one.path)
        try:
            read = read_file(
                self.ws, one, old, self.start, scan=self.scan, bundle=bundle, keeps=self._keeps
            )
        except (OSError, DamagedError) as error:  # also of the lake's own copy, of one that went
            what = error.message if isinstance(error, DamagedError) else error.strerror or error
            self._left_behind(one, f"cannot be read: {what}")
            self.ws.progress.advance(one.size)
            return None
        if read is None:
            self._left_behind(one, what_it_is_not(one.path))
        self.ws.progress.advance(one.size)
        return read

    def _left_behind(self, one: PendingFile, what: str) -> None:
        old = self.files.get(one.path) or FileRow(path=one.path, format=one.format)
        if one.format or one.path in self.files:  # a slip of the hand leaves no trace
            self.files[one.path] = replace(
                old, size=one.size, mtime_ns=one.mtime_ns, error=what, attempts=old.attempts + 1
            )
        self.result.failures.append(Failure(one.path, what))

    def _locate(self, read: Read) -> None:
        folder = _agent_folder(self.ws, read)
        for turn in read.reading.turns:
            key = self.book.key(turn.cwd, read.reading.first_cwd, folder)
            if not self.book.is_ignored(key):
                read.located.append((self.ws.calendar.day_of(turn.occurred_at), key, turn))
        if not read.located and not self._keeps(read.reading):
            raw.forget(self.ws.home, read.pending.path)
            read.reading.bad.clear()

    def _keeps(self, reading: Reading) -> bool:
        """Whether any of a file may be kept: not all of it lies in places that are left out."""
        first = reading.first_cwd
        places = {turn.cwd for turn in reading.turns} or {first}
        return not first or not all(
            self.book.is_ignored(self.book.key(place, first, "")) for place in places
        )

    def _merge(self, reads: list[Read]) -> None:
        days = {day for read in reads for day, _, _ in read.located}
        for read in reads:
            old = self.files.get(read.pending.path)
            days |= {day for day, _ in old.cells} if old else set()
        known: dict[str, Located] = {}
        for cell in self.ws.lake.cells("transcripts", days=days):
            for turn in self.ws.lake.read_cell("transcripts", cell.day, cell.project):
                known[turn.turn_id] = (cell.day, cell.project, turn)
        before: dict[str, Located] = dict(known)
        for read in reads:
            for place in read.located:
                self._merge_one(known, place)
        dirty = {
            (place[0], place[1])
            for turn_id in known
            if known[turn_id] is not before.get(turn_id)
            for place in (known[turn_id], before.get(turn_id, known[turn_id]))
        }
        self._relink(reads)
        self._write(known, dirty)

    def _merge_one(self, known: dict[str, Located], place: Located) -> None:
        day, project, turn = place
        stored = known.get(turn.turn_id)
        if stored is None:
            known[turn.turn_id] = place
            return
        if stored[2].session_id != turn.session_id:
            self.links[turn.session_id].add(stored[2].session_id)
        merged = merge_turn(stored[2], replace(turn, family_id=stored[2].family_id))
        if merged == stored[2] and stored[:2] == (day, project):
            return
        is_owner = merged.source_path == turn.source_path
        home = (day, project) if is_owner else stored[:2]
        if merged != stored[2] or home != stored[:2]:
            known[turn.turn_id] = (*home, merged)

    def _relink(self, reads: list[Read]) -> None:
        """Families as they are with this batch, before its cells are written."""
        for read in reads:
            row = self._row(read)
            self.files[row.path] = replace(
                self.files.get(row.path, FileRow(path=row.path, format=row.format)),
                session_id=row.session_id,
                session_started_at=row.session_started_at,
            )
        self.families = family_roots(self.files.values(), self.links)

    def _write(self, known: dict[str, Located], dirty: set[tuple[Day, ProjectKey]]) -> None:
        if not dirty:
            return
        cells: dict[tuple[Day, ProjectKey], list[Turn]] = {cell: [] for cell in dirty}
        for day, project, turn in known.values():
            if (day, project) in cells:
                row = self._in_family(turn)
                self.written[row.session_id].add(row.family_id)
                cells[day, project].append(row)
        self.days.open(STAGE, sorted({day for day, _ in dirty}))
        for (day, project), rows in sorted(cells.items()):
            rows = sorted_rows(_SPEC, rows)
            cell = self.ws.lake.write_cell("transcripts", day, project, rows)
            if all(map(_is_writable, {turn.source_path for turn in rows})):
                self.ws.remember(cell, rows)
            self._put(cell)

    def _put(self, cell: CellResult) -> None:
        earlier = self.touched.get((cell.day, cell.project))
        changed = cell.changed or (earlier is not None and earlier.changed)
        self.touched[cell.day, cell.project] = replace(cell, changed=changed)

    def _quarantine(self, reads: list[Read]) -> None:
        fresh = {
            read.pending.path: [QuarantineRow.of(line) for line in read.reading.bad]
            for read in reads
        }
        rewritten = {read.pending.path for read in reads if not read.same_prefix}
        stored: list[QuarantineRow] = self.ws.lake.read_table("quarantine")
        kept = [
            row for row in stored if row.source_path not in fresh or row.source_path in rewritten
        ]
        rows = {
            (row.source_path, row.byte_offset, row.content): row
            for row in [*kept, *(row for rows in fresh.values() for row in rows)]
        }
        if list(rows.values()) != stored:
            self.ws.lake.write_table("quarantine", list(rows.values()))

    def _row(self, read: Read) -> FileRow:
        path = read.pending.path
        return FileRow(
            path=path,
            agent=read.agent,
            format=read.format,
            size=read.pending.size,
            mtime_ns=read.pending.mtime_ns,
            head_sha=read.head_sha,
            tail_sha=read.prefix_sha,
            complete_offset=read.reading.complete_offset,
            lines=read.reading.lines,
            records=read.reading.records,
            turns=len(read.reading.turns),
            events=len(read.reading.events),
            session_id=read.reading.session_id,
            session_started_at=read.reading.session_started_at,
            last_at=read.reading.last_at,
            unknown=tuple(sorted(read.reading.unknown.items())),
            bad_lines=read.reading.bad_lines,
            machine=read.reading.machine,
            reader_version=READER_VERSION,
        )

    def _bookmark(self, read: Read) -> None:
        old = self.files.get(read.pending.path)
        cells = {(day, project) for day, project, _ in read.located}
        linked = self.links.get(read.reading.session_id, set())
        self.files[read.pending.path] = replace(
            self._row(read),
            linked_sessions=tuple(sorted(linked | set(old.linked_sessions if old else ()))),
            cells=tuple(sorted(cells | self._standing(read))),
            sessions=_sessions(read, old),
        )

    def _standing(self, read: Read) -> set[tuple[Day, ProjectKey]]:
        """Cells of turns that a rewritten file, or the lake's copy, lacks: they stay."""
        old = self.files.get(read.pending.path)
        return set(old.cells) if old and (read.pending.gone or not read.same_prefix) else set()

    def _count(self, read: Read) -> None:
        counts = self.result.counts
        for name, amount in (
            ("files", 1),
            ("bytes", read.reading.size),
            ("lines", read.reading.lines),
            ("turns", len(read.located)),
            ("quarantined", read.reading.bad_lines),
            ("machine_files", int(bool(read.reading.machine))),
        ):
            counts[name] = counts.get(name, 0) + amount

        counts["events"] = self.fresh_events

    def mend_families(self) -> None:
        """A copy that came later may join two families: their turns get the one root."""
        self.families = family_roots(self.files.values(), self.links)
        suspects = {
            session
            for session, root in self.families.items()
            if self.interrupted
            or self.initial.get(session, root) != root
            or self.written.get(session, {root}) != {root}
        }
        cells = {
            cell for row in self.files.values() if row.session_id in suspects for cell in row.cells
        }
        for day, project in sorted(cells):
            stored = self.ws.lake.read_cell("transcripts", day, project)
            rows = [self._in_family(turn) for turn in stored]
            if rows != stored:
                self.days.open(STAGE, [day])
                self._put(self.ws.lake.write_cell("transcripts", day, project, rows))

    def _in_family(self, turn: Turn) -> Turn:
        family = self.families.get(turn.session_id, turn.session_id)
        return turn if turn.family_id == family else replace(turn, family_id=family)

    def close(self) -> None:
        """Close every day that was opened, by this run or by one that died."""
        open_days = set(self._open_days())
        days = sorted(open_days | {day for day, _ in self.touched})
        rows: list[DayRow] = []
        for day in days:
            rows.append(day_row(self.ws, STAGE, (STAGE,), day, "", written=self.touched))
        if rows:
            self.days.close(rows)
        self.result.cells = [self.touched[key] for key in sorted(self.touched)]


def _is_writable(path: str) -> bool:
    """Whether a table holds a path unchanged: one that is no UTF-8 is mended there."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _sessions(read: Read, old: FileRow | None) -> tuple[tuple[str, Day, ProjectKey], ...]:
    """Where the turns of each session are, for a file that holds more than one."""
    found = {(turn.session_id, day, project) for day, project, turn in read.located}
    found |= set(old.sessions) if old else set()
    return tuple(sorted(found)) if len({session for session, _, _ in found}) > 1 else ()


def _agent_folder(ws: Workspace, read: Read) -> str:
    """The agent's own folder of a Claude Code transcript: ``projects/<folder>/…``."""
    root = ws.settings.claude_dir / "projects"
    path = Path(read.pending.path)
    return path.relative_to(root).parts[0] if path.is_relative_to(root) else ""
