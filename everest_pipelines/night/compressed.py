"""Transcripts that their agent has compressed: Codex does so with rollouts that lie untouched."""

from __future__ import annotations

from pathlib import Path
from typing import IO, cast

SUFFIX = ".zst"


def opened(path: str) -> IO[bytes]:
    """The bytes of a transcript as its agent wrote them, in a stream that is to be closed.

    Raises OSError when the file cannot be opened; reading it may raise that where it is damaged.
    """
    if not path.endswith(SUFFIX):
        return Path(path).open("rb")
    import pyarrow as pa

    return cast("IO[bytes]", pa.input_stream(path, compression="zstd"))
