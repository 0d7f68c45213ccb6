"""Which project a working directory belongs to. Recall never looks beyond it."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from everest_pipelines.recall.snapshot import Snapshot

_DRIVE = re.compile(r"^([A-Za-z]):(?=/|$)")


def canonical(path: str) -> str:
    """A path as the table holds it: ``/`` everywhere, no trailing one, the drive letter small.

    Steps up (``..``) are taken, so that no path seems to lie in a project that it leaves again.
    """
    if _is_windows(path):
        path = path.replace("\\", "/")
    path = _DRIVE.sub(lambda drive: drive[0].lower(), path)
    if "/." in path:
        path = posixpath.normpath(path)
    return path.rstrip("/") or "/"


def project_of(snapshot: Snapshot, folder: Path | str) -> str | None:
    """The key of the project that `folder` lies in, by the longest known path; None: unknown.

    A known path above the folder's own git root is another project. The person's home folder and
    the root of the file system are projects only for themselves, never for what is below.
    """
    text = str(folder)
    found = _lookup(snapshot, text)
    if found is None and not _is_windows(text):
        real = str(Path(text).resolve())
        found = _lookup(snapshot, real) if real != text else None
    return found


def _lookup(snapshot: Snapshot, folder: str) -> str | None:
    start = canonical(folder)
    home = canonical(str(Path("~").expanduser()))
    path = start
    while True:
        if path == start or path not in (home, "/"):
            row = snapshot.connection.execute(
                "SELECT project FROM projects WHERE path = ?", (path,)
            ).fetchone()
            if row is not None:
                return str(row[0])
        if (Path(path) / ".git").exists():
            return None
        parent = path.rpartition("/")[0] or "/"
        if parent == path or "/" not in path:
            return None
        path = parent


def _is_windows(path: str) -> bool:
    return path.startswith("\\\\") or re.match(r"^[A-Za-z]:[\\/]", path) is not None
