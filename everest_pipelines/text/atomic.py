"""The one atomic writer: a reader sees the whole old file or the whole new one."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

FILE_MODE = 0o600
FOLDER_MODE = 0o700


def make_dir(path: Path) -> Path:
    """Make a folder and its missing parents, each readable by the owner alone. Returns it.

    A folder that exists keeps its mode.
    """
    if not path.is_dir():
        if path.parent != path:
            make_dir(path.parent)
        path.mkdir(mode=FOLDER_MODE, exist_ok=True)
    return path


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable. Windows cannot, and needs not."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte, however little the system takes at a time."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def temporary_name(path: Path) -> Path:
    """Where a file waits, in its own folder, until it is whole: ``.<name>.<pid>-<rand>.tmp``."""
    return path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")


def write_atomic(path: Path, data: bytes, mode: int = FILE_MODE) -> None:
    """Replace `path` by `data` in one step, durable on return. Missing folders are made.

    A process killed on the way leaves at most a ``.tmp`` file. Raises OSError as the system does;
    then the old file is untouched.
    """
    make_dir(path.parent)
    waiting = temporary_name(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(waiting, flags, mode)
    try:
        try:
            if hasattr(os, "fchmod"):
                os.fchmod(descriptor, mode)  # the umask may have taken bits away
            write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        waiting.replace(path)
    except BaseException:  # also Ctrl-C: leave nothing half-written behind
        waiting.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
