"""Publishing: from the lake to a generation that readers see whole, or not at all."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from everest_pipelines.core.records import Day, Micros, ProjectKey, moment
from everest_pipelines.lake import generations, months, parquet, views
from everest_pipelines.lake.columns import Kind, Row
from everest_pipelines.lake.generations import BUILDING, DATABASE, MANIFEST, Generation, Manifest
from everest_pipelines.lake.lake import Lake
from everest_pipelines.lake.months import PublishedFile
from everest_pipelines.lake.operational import LedgerRow
from everest_pipelines.lake.schemas import TABLES
from everest_pipelines.text.atomic import FOLDER_MODE, make_dir, sync_folder, temporary_name
from everest_pipelines.text.errors import CallerError, DamagedError
from everest_pipelines.text.ids import digest

# Entries that publishing, rendering and recalling leave behind: they make no new generation, or
# each would ask for the next.
QUIET_KINDS = frozenset({"publication", "render", "recall"})
_VIEWS_SQL = "views.sql"
_OWN_FILES = frozenset({MANIFEST, DATABASE, _VIEWS_SQL})


@dataclass(frozen=True)
class Candidate:
    """A generation that is built and not yet seen by anybody. `folder` holds its files."""

    folder: Path
    manifest: Manifest


def publish(
    lake: Lake,
    *,
    horizon: Day,
    lessons_now: Sequence[Row] = (),
    entries: Sequence[Mapping[str, Any]] = (),
    extra_files: Mapping[str, bytes] | None = None,
    write_extra: Callable[[Path], None] | None = None,
    held: Collection[ProjectKey] = (),
    now: Micros | None = None,
) -> Generation:
    """Build a generation and let `current` name it; see `build` and `commit`.

    Only for whoever holds the lock. The same content gives the same generation: then nothing is
    swapped and `changed` is False.
    """
    candidate = build(
        lake,
        horizon=horizon,
        lessons_now=lessons_now,
        entries=entries,
        extra_files=extra_files,
        write_extra=write_extra,
        held=held,
    )
    return commit(lake, candidate, now=now)


def build(
    lake: Lake,
    *,
    horizon: Day,
    lessons_now: Sequence[Row] = (),
    entries: Sequence[Mapping[str, Any]] = (),
    extra_files: Mapping[str, bytes] | None = None,
    write_extra: Callable[[Path], None] | None = None,
    held: Collection[ProjectKey] = (),
) -> Candidate:
    """Everything that a generation needs, out of sight; `commit` or `discard` it.

    `lessons_now`: the visible lessons. `entries`: the ledger's, in the order of their ids.
    `extra_files`: path in the generation -> content; `write_extra` is given the folder and writes
    more. Rows of `held` projects stay as the current generation has them. Raises DamagedError when
    a cell cannot be read.
    """
    tables = _tables(lake, lessons_now, entries, held)
    folder = temporary_name(lake.home.published / BUILDING[1:])
    make_dir(lake.home.published)
    folder.mkdir(mode=FOLDER_MODE)
    try:
        for name, content in sorted((extra_files or {}).items()):
            _write_extra_file(folder, name, content)
        if write_extra is not None:
            write_extra(folder)
        extra = _digests(folder)
        derived = _derived(horizon, tables, extra)
        loud = [str(e["id"]) for e in entries if e["kind"] not in QUIET_KINDS]
        state = [f.name for n in _of_kind(Kind.OPERATIONAL) for f in tables[n]]
        manifest = Manifest(
            generation=f"g-{horizon}-{digest(derived, *loud, *state)[:12]}",
            horizon=horizon,
            last_entry=str(entries[-1]["id"]) if entries else "",
            derived=derived,
            tables=tables,
            extra=extra,
        )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    lake.save_digests()
    return Candidate(folder, manifest)


def discard(candidate: Candidate) -> None:
    """Let a candidate go; its month files are collected at the next commit."""
    shutil.rmtree(candidate.folder, ignore_errors=True)


def commit(lake: Lake, candidate: Candidate, *, now: Micros | None = None) -> Generation:
    """Give a candidate its name, let `current` name it, and collect what nobody can be reading.

    `now` in microseconds UTC. Readers see the old generation or the new one, never parts.
    """
    home, manifest = lake.home, candidate.manifest
    instant = time.time_ns() // 1000 if now is None else now
    path = home.published / manifest.generation
    if (path / MANIFEST).is_file():
        discard(candidate)
        manifest = generations.manifest_of(path)
    else:
        made = views.statements(manifest.tables, home.published_files)
        sql = "".join(f"{statement};\n\n" for statement in made)
        (candidate.folder / _VIEWS_SQL).write_text(sql, encoding="utf-8")
        views.write_database(candidate.folder / DATABASE, made)
        content = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
        (candidate.folder / MANIFEST).write_bytes(content + b"\n")
        generations.settle(candidate.folder)
        candidate.folder.rename(path)
        sync_folder(home.published)
    changed = generations.make_current(home, manifest.generation, instant)
    generations.collect(home, instant)
    return Generation(name=path.name, path=path, changed=changed, manifest=manifest)


def ledger_rows(entries: Sequence[Mapping[str, Any]]) -> list[LedgerRow]:
    """Ledger entries as rows of the audit trail; what has no column of its own is in `detail`."""
    return [
        LedgerRow(
            id=str(entry["id"]),
            kind=str(entry["kind"]),
            recorded_at=int(entry["recorded_at"]),
            actor=_word(entry, "actor"),
            lesson_id=_word(entry, "lesson_id"),
            chain=_word(entry, "chain"),
            detail=json.dumps(
                {k: v for k, v in entry.items() if k not in _OWN_COLUMNS},
                ensure_ascii=False,
                sort_keys=True,
            ),
        )
        for entry in entries
    ]


_OWN_COLUMNS = frozenset({"id", "kind", "recorded_at", "actor", "lesson_id", "chain"})


def _word(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name)
    return "" if value is None else str(value)


def _tables(
    lake: Lake,
    lessons_now: Sequence[Row],
    entries: Sequence[Mapping[str, Any]],
    held: Collection[ProjectKey],
) -> dict[str, tuple[PublishedFile, ...]]:
    known = _known(lake, required=bool(held))
    tables: dict[str, tuple[PublishedFile, ...]] = {}
    for name, spec in TABLES.items():
        if spec.kind is Kind.PARTITIONED:
            files = months.month_files(lake, spec, known, held)
        elif spec.kind is Kind.OPERATIONAL:
            files = months.table_file(lake, spec)
        elif name == "ledger":
            files = []
            trail = sorted(ledger_rows(entries), key=_month)
            for month, some in itertools.groupby(trail, _month):
                files += months.rows_file(lake, spec, list(some), known, month)
        else:
            files = months.rows_file(lake, spec, lessons_now, known)
        tables[name] = tuple(files) or (months.empty_file(lake, spec),)
    return tables


def _known(lake: Lake, *, required: bool) -> dict[tuple[str, str], PublishedFile]:
    """The files of the current generation; none before the first, or when it is damaged."""
    try:
        before = generations.current(lake.home)
    except DamagedError:
        if required:
            raise
        return {}
    files = before.files if before is not None else {}
    return {(table, file.month): file for table, of in files.items() for file in of}


def _month(row: LedgerRow) -> str:
    return f"{moment(row.recorded_at):%Y-%m}"


def _of_kind(kind: Kind) -> list[str]:
    return [name for name, spec in TABLES.items() if spec.kind is kind]


def _derived(
    horizon: Day, tables: Mapping[str, Sequence[PublishedFile]], extra: Mapping[str, str]
) -> str:
    """Digest of what transcripts, ledger and horizon alone decide."""
    chosen = [*_of_kind(Kind.PARTITIONED), "lessons_now"]
    parts = [f.name for name in chosen for f in tables[name]]
    return digest(horizon, *parts, "extra", *(p for item in sorted(extra.items()) for p in item))


def _write_extra_file(folder: Path, name: str, content: bytes) -> None:
    path = folder / name
    if name in _OWN_FILES or not path.resolve().is_relative_to(folder.resolve()):
        raise CallerError(f"A generation cannot hold an extra file {name!r}.")
    make_dir(path.parent)
    path.write_bytes(content)


def _digests(folder: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for root, _, files in os.walk(folder):
        for name in files:
            path = Path(root) / name
            found[path.relative_to(folder).as_posix()] = parquet.file_sha256(path)
    return dict(sorted(found.items()))
