"""What a session has been shown, and which family it belongs to: two small files in the home.

A cache for hooks, not a record: the ledger knows all of it. Whoever deletes the files makes a
session see a lesson twice.
"""

from __future__ import annotations

from everest_pipelines.text import bare
from everest_pipelines.text.bare import system

_HEAD = 65_536  # bytes of a transcript's start that are searched for its first record
KEPT_DAYS = 30  # as long as agents keep a transcript to resume


def plain_id(session: str) -> str:
    """A session's id, fit for a file name and the ledger: itself, or its digest."""
    if 0 < len(session) <= 64 and session.isascii() and session.replace("-", "").isalnum():
        return session
    return bare.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class Session:
    """One session's state. Use it under the ledger's lock."""

    def __init__(self, root: str, session: str, transcript: str) -> None:
        self._path = f"{root}/hooks/sessions/{session}"
        self._notes: list[str] = []
        text = bare.read_file(self._path)
        lines = text.decode("utf-8", "replace").split("\n")[:-1] if text else []
        self._known = set(lines)
        self.shown = {line[6:] for line in lines if line.startswith("shown ")}
        self._before = set(self.shown)
        self.family = next((line[7:] for line in lines if line.startswith("family ")), "")
        self._root_path = ""
        if "rooted" not in self._known:
            self._find_family(root, session, transcript)

    def _find_family(self, root: str, session: str, transcript: str) -> None:
        """Copies of a session begin with the same record: who came first gives the family.

        A session's first prompt comes before its transcript: then it is its own family until the
        record is there, and the record is kept under that name.
        """
        record = _first_record(transcript)
        if record:
            path = f"{root}/hooks/roots/{record}"
            known = bare.read_file(path)
            if known and not self.family:
                self.family = known.decode("ascii", "replace")
            elif known is None:
                self._root_path = path
            self._notes.append("rooted")
        if not self.family:
            self.family = session
        if f"family {self.family}" not in self._known:
            self._notes.append(f"family {self.family}")

    def note(self, key: str) -> bool:
        """Remember a decision; False when the session had it before."""
        if key in self._known:
            return False
        self._known.add(key)
        self._notes.append(key)
        return True

    def save(self) -> None:
        """Add what is new to the file. Raises OSError as the system does."""
        lines = [*self._notes, *(f"shown {one}" for one in sorted(self.shown - self._before))]
        if lines:
            _add(self._path, "".join(f"{line}\n" for line in lines).encode())
        if self._root_path:
            _add(self._root_path, self.family.encode())


def _first_record(transcript: str) -> str:
    """The uuid of a transcript's first record; "" when there is none yet."""
    if not transcript:
        return ""
    try:
        descriptor = system.open(transcript, system.O_RDONLY)
    except (OSError, ValueError):
        return ""
    try:
        data = system.read(descriptor, _HEAD)
    finally:
        system.close(descriptor)
    _, found, rest = data.partition(b'"uuid":"')
    record = rest[:64].partition(b'"')[0].decode("ascii", "replace") if found else ""
    return record if record.replace("-", "").isalnum() and record.isascii() else ""


def _add(path: str, data: bytes) -> None:
    flags = system.O_WRONLY | system.O_CREAT | system.O_APPEND
    try:
        descriptor = system.open(path, flags, 0o600)
    except FileNotFoundError:
        bare.make_dir(path.rpartition("/")[0])
        descriptor = system.open(path, flags, 0o600)
    try:
        system.write(descriptor, data)
    finally:
        system.close(descriptor)


def prune(root: str, *, now: int) -> int:
    """Delete the files of sessions untouched for `KEPT_DAYS`; returns how many. `now` in micros."""
    gone = 0
    for kind in ("sessions", "roots"):
        folder = f"{root}/hooks/{kind}"
        try:
            names = system.listdir(folder)
        except OSError:
            continue
        for name in names:
            path = f"{folder}/{name}"
            if system.stat(path).st_mtime * 1e6 < now - KEPT_DAYS * 86_400e6:
                system.unlink(path)
                gone += 1
    return gone
