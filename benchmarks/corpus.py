"""A large corpus: the real files replayed under new ids, days and projects.

Every copy is a memory of its own: no id is shared between copies, so nothing is deduplicated away
that would not be in life.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

_UUID = re.compile(rb"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_STAMP = re.compile(rb'("timestamp":\s*")(\d{4}-\d{2}-\d{2})(?=T)')
_CWD = re.compile(rb'("cwd":\s*"(?:/|[A-Z]:\\\\))')


def replay(root: Path, target: Path, *, bytes_wanted: int, days_apart: int = 7) -> int:
    """Write copies of the transcripts below ``root`` until there are ``bytes_wanted``; bytes."""
    files = sorted(path for path in root.rglob("*.jsonl") if path.stat().st_size)
    written = copy = 0
    while written < bytes_wanted:
        for path in files:
            data = renamed(path.read_bytes(), copy, days_apart)
            place = target / str(path.relative_to(root)).replace("projects/", f"projects/-c{copy}")
            place = place.with_name(_renamed_name(place.name, copy))
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
            written += len(data)
            if written >= bytes_wanted:
                break
        copy += 1
    return written


def renamed(data: bytes, copy: int, days_apart: int) -> bytes:
    """One file's bytes as another person's: ids, days and directories are its own."""
    if not copy:
        return data
    tag = b"%06d" % copy
    data = _UUID.sub(lambda match: _uuid(match[0], copy), data)
    data = data.replace(b'"msg_01', b'"msg_' + tag).replace(b'"toolu_01', b'"toolu_' + tag)
    data = _CWD.sub(rb"\g<1>copy" + tag + b"/", data)
    return _STAMP.sub(lambda match: match[1] + _shifted(match[2], copy * days_apart), data)


def _renamed_name(name: str, copy: int) -> str:
    return _UUID.sub(lambda match: _uuid(match[0], copy), name.encode()).decode() if copy else name


@lru_cache(maxsize=1 << 18)
def _uuid(old: bytes, copy: int) -> bytes:
    fresh = hashlib.md5(old + b"%d" % copy, usedforsecurity=False).hexdigest()
    return f"{fresh[:8]}-{fresh[8:12]}-{fresh[12:16]}-{fresh[16:20]}-{fresh[20:]}".encode()


@lru_cache(maxsize=4096)
def _shifted(day: bytes, by: int) -> bytes:
    return (dt.date.fromisoformat(day.decode()) - dt.timedelta(days=by)).isoformat().encode()


def blocks(path: Path, size: int = 1 << 20) -> Iterator[bytes]:
    """A file in blocks."""
    with path.open("rb") as file:
        while block := file.read(size):
            yield block
