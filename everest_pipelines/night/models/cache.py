"""What models said, by the content that they were given: kept, never derived.

``models/answers.sqlite``: vectors by space and text, sentences by model, question and text. A rerun
finds the same answers there and needs no model. Only the holder of the lake's lock writes.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everest_pipelines.text.atomic import make_dir
from everest_pipelines.text.home import Home

Matrix = NDArray[np.float32]

FILE_MODE = 0o600
_AT_ONCE = 500  # values in one query; SQLite takes 999 at least
_TABLES = """
create table if not exists vectors (
    space text not null, text_sha256 text not null, vector blob not null,
    primary key (space, text_sha256)) without rowid;
create table if not exists sentences (
    model text not null, question text not null, text_sha256 text not null, answer text not null,
    primary key (model, question, text_sha256)) without rowid;
"""


class Answers:
    """The cache of one home; made at its first write."""

    def __init__(self, home: Home) -> None:
        self.path: Path = home.models / "answers.sqlite"

    def vectors(self, space: str, digests: Sequence[str]) -> dict[str, Matrix]:
        """Of the texts with these SHA-256 (hex) the vectors that are known."""
        found: dict[str, Matrix] = {}
        for rows in self._select(
            "select text_sha256, vector from vectors where space = ? and text_sha256 in",
            [space],
            digests,
        ):
            found.update((name, np.frombuffer(blob, dtype="<f4")) for name, blob in rows)
        return found

    def keep_vectors(self, space: str, made: Mapping[str, Matrix]) -> None:
        """Vectors by the SHA-256 of their text; one that is known stays as it is."""
        rows = [(space, name, np.asarray(row, "<f4").tobytes()) for name, row in made.items()]
        with self._open() as db, db:
            db.executemany("insert or ignore into vectors values (?, ?, ?)", sorted(rows))

    def sentences(self, model: str, question: str, digests: Sequence[str]) -> dict[str, str]:
        """The answers that are known to one question (its own digest) of one model."""
        found: dict[str, str] = {}
        for rows in self._select(
            "select text_sha256, answer from sentences"
            " where model = ? and question = ? and text_sha256 in",
            [model, question],
            digests,
        ):
            found.update(rows)
        return found

    def keep_sentence(self, model: str, question: str, text_sha256: str, answer: str) -> None:
        """One answer; one that is known stays as it is."""
        row = (model, question, text_sha256, answer)
        with self._open() as db, db:
            db.execute("insert or ignore into sentences values (?, ?, ?, ?)", row)

    def sentences_digest(self, question: str) -> str:
        """Names all answers to one question, of all models."""
        total = hashlib.sha256()
        if self.path.exists():
            with self._open() as db:
                for row in db.execute(
                    "select model, text_sha256, answer from sentences where question = ?"
                    " order by model, text_sha256",
                    [question],
                ):
                    total.update(repr(row).encode("utf-8", "surrogatepass"))
        return total.hexdigest()[:16]

    def forget(self, digests: Iterable[str]) -> int:
        """Take out all that was said of these texts, and every byte of it; returns the rows."""
        if not self.path.exists():
            return 0
        names = [(name,) for name in sorted(set(digests))]
        with self._open() as db:
            before = db.total_changes
            with db:
                db.executemany("delete from vectors where text_sha256 = ?", names)
                db.executemany("delete from sentences where text_sha256 = ?", names)
            removed = db.total_changes - before
            if removed:
                db.execute("vacuum")
        return removed

    def _select(
        self, question: str, first: list[str], digests: Sequence[str]
    ) -> Iterator[list[tuple[str, Any]]]:
        if not self.path.exists():
            return
        with self._open() as db:
            for start in range(0, len(digests), _AT_ONCE):
                part = list(digests[start : start + _AT_ONCE])
                marks = ",".join("?" * len(part))
                yield db.execute(f"{question} ({marks})", [*first, *part]).fetchall()

    @contextlib.contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        make_dir(self.path.parent)
        if not self.path.exists():
            os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, FILE_MODE))
        db = sqlite3.connect(self.path, timeout=30)
        try:
            db.execute("pragma secure_delete = on")
            db.executescript(_TABLES)
            yield db
        finally:
            db.close()
