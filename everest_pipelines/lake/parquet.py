"""The one way in and out of Parquet files: the same rows give the same bytes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from everest_pipelines.lake.columns import ArrowSchema, ArrowTable, TableSpec, check_schema
from everest_pipelines.text.atomic import FILE_MODE, make_dir, sync_folder, temporary_name
from everest_pipelines.text.errors import DamagedError

MONTH_LEVEL = 6  # zstd
# Where a filter is likely. Statistics of other columns cost more bytes than small files hold.
_FILTERED = ("day", "project", "occurred_at", "kind", "lesson_id")
_BLOCK = 1 << 20


def writer(
    sink: Any, spec: TableSpec, schema: ArrowSchema, level: int = 0, *, cell: bool = False
) -> pq.ParquetWriter:
    """A writer of `schema` with every setting fixed; the caller writes whole row groups.

    A `cell` is small and written and read often: LZ4 without dictionaries takes half the CPU of
    zstd with them, whose every column costs time however little it holds, for a quarter more bytes.
    """
    dictionary: Any = False if cell else spec.dictionary_columns
    codecs: Any = "lz4" if cell else "zstd"
    levels: Any = None if cell else level
    statistics: Any = [name for name in schema.names if name in _FILTERED]
    made = pq.ParquetWriter(
        sink,
        schema,
        compression=codecs,
        compression_level=levels,
        use_dictionary=dictionary,
        write_statistics=statistics,
        store_schema=False,  # would double a small file; the metadata below takes its place
        version="2.6",
        data_page_version="1.0",
    )
    made.add_key_value_metadata(spec.metadata)
    return made


def to_bytes(spec: TableSpec, table: ArrowTable) -> bytes:
    """One cell or operational table as a Parquet file."""
    sink = pa.BufferOutputStream()
    with writer(sink, spec, spec.schema, cell=True) as out:
        out.write_table(table, row_group_size=spec.row_group)
    return sink.getvalue().to_pybytes()


def read(spec: TableSpec, path: Path) -> ArrowTable:
    """A Parquet file, its schema and version checked.

    Raises FileNotFoundError when there is none, and DamagedError, naming the file, when it is no
    Parquet file or not of this table and version.
    """
    try:
        with pq.ParquetFile(path) as file:
            metadata: dict[bytes, bytes] = file.metadata.metadata or {}
            check_schema(spec, file.schema_arrow, metadata)
            return file.read(use_threads=False)
    except FileNotFoundError:
        raise
    except DamagedError as error:
        raise DamagedError(f"{path}: {error.message}", error.next_command) from error
    except (pa.ArrowException, OSError) as error:
        raise DamagedError(
            f"{path} is no whole Parquet file ({error}).", "everest doctor"
        ) from error


def file_sha256(path: Path) -> str:
    """Hex SHA-256 of a file's bytes."""
    total = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            total.update(block)
    return total.hexdigest()


class Growing:
    """A file that is written bit by bit under a temporary name, see `growing`."""

    def __init__(self, waiting: Path, file: IO[bytes]) -> None:
        self.waiting = waiting
        self.file = file
        self.path: Path | None = None
        self.sync = True

    def keep(self, path: Path, *, sync: bool = True) -> None:
        """Let it appear as `path` (in the same folder) at the end of the block.

        Without `sync` its name is durable only after the folder's next sync: for a caller that
        writes another file there at once.
        """
        self.path = path
        self.sync = sync


@contextmanager
def growing(folder: Path, name: str) -> Generator[Growing]:
    """A new file in `folder` that appears, whole and durable, only if `keep` was called.

    For what is too large to hold in memory or is named by its content; everything else goes
    through text.atomic.write_atomic.
    """
    make_dir(folder)
    waiting = temporary_name(folder / name)
    descriptor = os.open(waiting, os.O_RDWR | os.O_CREAT | os.O_EXCL, FILE_MODE)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            made = Growing(waiting, file)
            yield made
            if made.path is not None:
                file.flush()
                os.fsync(file.fileno())
        if made.path is None:
            waiting.unlink()
        else:
            waiting.replace(made.path)
            if made.sync:
                sync_folder(folder)
    except BaseException:  # also Ctrl-C: leave nothing half-written behind
        waiting.unlink(missing_ok=True)
        raise
