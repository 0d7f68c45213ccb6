"""Project keys: one function mints them, from the canonical path of the project's root.

A folder name under the agent's own directory is never decoded: the agent replaces every
non-alphanumeric character, so different projects collide there. The path comes from the
records' ``cwd``. Nothing here touches the disk: what the git root is, the caller knows.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import unicodedata
from collections.abc import Callable

from everest_pipelines.core.records import ProjectKey

_DRIVE = re.compile(r"^[A-Za-z]:(?=[\\/]|$)")
_WORKTREE = re.compile(r"^(.+?)/(?:\.claude/worktrees|\.worktrees|worktrees)/[^/]+(?:/.*)?$")
SLUG_LENGTH = 40  # a key stays below 50 characters: readable in a path, a grid and a table
SLUG_PARTS = 2  # "devenv-cli" tells projects apart where "cli" does not
UNKNOWN_PATH = "(unknown)"  # stands for records that name no directory


def canonical(path: str) -> str:
    """The one spelling of a path: forward slashes, no trailing slash, drive letter in capitals.

    Lexical only, case kept. ``D:\\x\\`` becomes ``D:/x``, ``\\\\server\\share`` becomes
    ``//server/share``; an empty path becomes ``(unknown)``.
    """
    text = unicodedata.normalize("NFC", path.strip())
    if not text:
        return UNKNOWN_PATH
    if text.startswith("\\\\?\\"):
        text = text[4:]
        text = "\\\\" + text[4:] if text.startswith("UNC\\") else text
    windows = _DRIVE.match(text) is not None or text.startswith("\\\\")
    if windows:
        text = text.replace("\\", "/")
    text = posixpath.normpath(text)  # keeps two leading slashes: a share
    if _DRIVE.match(text):
        text = text[0].upper() + text[1:] + ("/" if len(text) == 2 else "")
    return text


def project_key(path: str) -> ProjectKey:
    """Readable slug of the last path parts, a dash, 8 hex digits of the canonical path's SHA-256.

    Only ``A-Z a-z 0-9 . _ -`` occur in a key, so it is safe in a path and as a partition name.
    """
    whole = canonical(path)
    parts = [part for part in re.split(r"[/:]+", whole) if part]
    plain = unicodedata.normalize("NFKD", "-".join(parts[-SLUG_PARTS:]))
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", plain.encode("ascii", "ignore").decode())
    slug = re.sub(r"-{2,}", "-", slug).strip("-._")[-SLUG_LENGTH:].strip("-._") or "project"
    return f"{slug}-{hashlib.sha256(whole.encode('utf-8', 'replace')).hexdigest()[:8]}"


def worktree_parent(path: str) -> str | None:
    """The repository that a worktree's path belongs to, or None where the path shows none.

    Known places: ``<repo>/.worktrees/x``, ``<repo>/worktrees/x``, ``<repo>/.claude/worktrees/x``.
    """
    found = _WORKTREE.match(canonical(path))
    return found.group(1) if found else None


def is_under(path: str, root: str) -> bool:
    """Whether a path is the root or lies below it (both in any spelling)."""
    inner, outer = canonical(path), canonical(root)
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")


def root_for(cwd: str, first_cwd: str, known_root: Callable[[str], str | None]) -> str:
    """The canonical path of the project that a record's working directory belongs to.

    The git root where ``known_root`` knows one; else the session's first directory when the
    record's lies under it; else the record's own. ``known_root`` gets canonical paths.
    """
    here = canonical(cwd or first_cwd)
    root = known_root(here)
    if root:
        return canonical(root)
    if first_cwd and is_under(here, first_cwd):
        return canonical(first_cwd)
    return here
