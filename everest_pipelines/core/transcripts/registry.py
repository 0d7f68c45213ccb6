"""The formats that can be read; adding one is one line here and one reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from msgspec import Struct

from everest_pipelines.core.records import Micros
from everest_pipelines.core.transcripts import claude, codex
from everest_pipelines.core.transcripts.lines import Redact, Sink, Suspects, unredacted
from everest_pipelines.core.transcripts.reading import Reading

HEAD_BYTES = 64 * 1024  # what a caller should offer to ``format_of``


class Reader(Protocol):
    """Reads a whole file; see ``claude.read``."""

    def __call__(
        self,
        blocks: Iterable[bytes],
        *,
        path: str,
        start: Micros,
        redact: Redact = unredacted,
        suspects: Suspects | None = None,
        sink: Sink | None = None,
    ) -> Reading: ...


class Format(Struct, frozen=True):
    """A file format of an agent, where its files lie, and who reads them."""

    name: str
    agent: str  # what stands in a turn's ``agent``
    root: str  # the setting that names the watched directory
    globs: tuple[str, ...]  # below that directory, each ``folder/**/pattern``
    recognises: Callable[[bytes, str], bool]  # by the file's beginning, not by its name
    read: Reader


FORMATS: tuple[Format, ...] = (
    Format(
        name="claude-code",
        agent=claude.NAME,
        root="claude_dir",
        globs=("projects/**/*.jsonl",),
        recognises=claude.recognises,
        read=claude.read,
    ),
    Format(
        name="codex",
        agent=codex.NAME,
        root="codex_dir",
        globs=(
            "sessions/**/rollout-*.jsonl",
            "sessions/**/rollout-*.jsonl.zst",
            "archived_sessions/**/rollout-*.jsonl",
            "archived_sessions/**/rollout-*.jsonl.zst",
        ),
        recognises=codex.recognises,
        read=codex.read,
    ),
)


def format_of(head: bytes, path: str) -> Format | None:
    """The format whose records a file begins with, or None. An empty file has no format."""
    return next((one for one in FORMATS if one.recognises(head, path)), None)
