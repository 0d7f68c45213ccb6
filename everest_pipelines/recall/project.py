"""Which project a working directory belongs to. Recall never looks beyond it."""

from __future__ import annotations

from everest_pipelines.text import bare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from everest_pipelines.recall.snapshot import Snapshot


def canonical(path: str) -> str:
    """A path as the table holds it: ``/`` everywhere, no trailing one, the drive letter small.

    Steps up (``..``) are taken, so that no path seems to lie in a project that it leaves again.
    """
    if _is_windows(path):
        path = path.replace("\\", "/")
    if path[1:2] == ":" and path[2:3] in ("", "/") and _is_letter(path[0]):
        path = path[0].lower() + path[1:]
    if "/." in path:
        import posixpath

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
        import os

        real = os.path.realpath(text)
        found = _lookup(snapshot, real) if real != text else None
    return found


def _lookup(snapshot: Snapshot, folder: str) -> str | None:
    start = canonical(folder)
    home = canonical(bare.person())
    path = start
    while True:
        if path == start or path not in (home, "/"):
            row = snapshot.connection.execute(
                "SELECT project FROM projects WHERE path = ?", (path,)
            ).fetchone()
            if row is not None:
                return str(row[0])
        if bare.exists(f"{path}/.git"):
            return None
        parent = path.rpartition("/")[0] or "/"
        if parent == path or "/" not in path:
            return None
        path = parent


def _is_windows(path: str) -> bool:
    drive = _is_letter(path[0:1]) and path[1:2] == ":" and path[2:3] in ("/", "\\")
    return drive or path.startswith("\\\\")


def _is_letter(sign: str) -> bool:
    return sign.isascii() and sign.isalpha()
