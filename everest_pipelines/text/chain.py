"""The chained writing of the ledger: one lock, one order of ids, one keyed chain.

Apart from ``ledger``, which redacts, reads and verifies, because a hook has to write an entry of
ids and codes within a few milliseconds.
"""

from __future__ import annotations

from everest_pipelines.text import bare
from everest_pipelines.text.bare import system
from everest_pipelines.text.uuid7 import uuid7, uuid7_ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType
    from typing import Any

    Entry = dict[str, Any]

KINDS = (
    "review",
    "veto",
    "note",
    "event",
    "render",
    "recall",
    "publication",
    "forget",
    "received",
    "accept",
)
# Written without waiting for the disk; the next entry of another kind makes them durable too.
UNHURRIED = frozenset({"recall"})
HEAD = frozenset({"id", "kind", "recorded_at", "chain"})
FORGOTTEN = "forgotten"  # {"forgotten": <digest>} stands where a value was
_RETRY_SECONDS = 0.004


class BusyLockError(OSError):
    """Somebody else holds the ledger for longer than the caller wants to wait."""


class Lock:
    """The ledger's lock. `seconds`: how long to wait for it; None: for ever.

    Raises BusyLockError when the time is up, ImportError where the system has no file locks.
    """

    def __init__(self, ledger: str, seconds: float | None = None) -> None:
        self._path = f"{ledger}/.lock"
        self._seconds = seconds
        self._descriptor = -1

    def __enter__(self) -> None:
        self.take()

    def take(self) -> None:
        """Get the lock. Raises as the class says."""
        import fcntl  # absent on native Windows: importing this module must still work there

        self._descriptor = system.open(self._path, system.O_RDWR | system.O_CREAT, 0o600)
        try:
            if self._seconds is None:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX)
                return
            left = self._seconds
            while True:
                try:
                    fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                except BlockingIOError:
                    if left <= 0:
                        raise BusyLockError(f"{self._path} is held") from None
                import time

                time.sleep(_RETRY_SECONDS)
                left -= _RETRY_SECONDS
        except BaseException:
            system.close(self._descriptor)
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def release(self) -> None:
        """Let the lock go."""
        system.close(self._descriptor)


def append(
    ledger: str, items: Sequence[tuple[str, Mapping[str, Any]]], *, now: int
) -> list[Entry] | None:
    """Add (kind, fields) in order, under a `Lock` that the caller holds; `now`: microseconds UTC.

    The fields must be clean: redacted, and such as JSON holds. None, and nothing is written, when a
    writer died and left half a line: mend that first. Durable on return, but for `UNHURRIED` kinds.
    """
    last, torn = newest(ledger)
    if torn:
        return None
    secret = key(ledger)
    written: list[Entry] = []
    before = last
    for kind, fields in items:
        identifier = uuid7(now // 1000, before["id"] if before else None)
        entry: Entry = {"id": identifier, "kind": kind, "recorded_at": now, **fields}
        entry["chain"] = link(secret, before["chain"] if before else "", entry)
        folder = f"{ledger}/{kind}"
        path = f"{folder}/{month(uuid7_ms(identifier))}.jsonl"
        _write(folder, path, dump(entry), durable=kind not in UNHURRIED)
        written.append(entry)
        before = entry
    if any(kind not in UNHURRIED for kind, _ in items):
        for kind in UNHURRIED:
            if name := _last_name(f"{ledger}/{kind}"):
                bare.sync(f"{ledger}/{kind}/{name}")
    return written


def newest(ledger: str) -> tuple[Entry | None, bool]:
    """The entry with the highest id, and whether some file ends in half a line."""
    found: Entry | None = None
    for kind in KINDS:
        folder = f"{ledger}/{kind}"
        names = _names(folder)
        while names:
            last, torn = _tail(f"{folder}/{names.pop()}")
            if torn:
                return None, True
            if last is not None:
                if found is None or last["id"] > found["id"]:
                    found = last
                break
    return found, False


def link(secret: bytes, previous: str, entry: Mapping[str, Any]) -> str:
    """The digest that chains an entry to the one before it; forgotten values count as before."""
    content = {
        name: value[FORGOTTEN] if is_forgotten(value) else value_digest(secret, value)
        for name, value in entry.items()
        if name not in HEAD
    }
    content_digest = bare.sha256(_canonical(content)).hexdigest()
    head = [previous, entry["id"], entry["kind"], entry["recorded_at"], content_digest]
    return bare.hmac_sha256(secret, _canonical(head))


def value_digest(secret: bytes, value: object) -> str:
    """What stands for a value in the chain, and in its place when it is forgotten.

    Keyed: an unkeyed digest of a short forgotten text could be guessed.
    """
    return bare.hmac_sha256(secret, b"value:" + _canonical(value))


def is_forgotten(value: Any) -> bool:
    """Whether a digest stands where a value was."""
    return isinstance(value, dict) and list(value) == [FORGOTTEN] and type(value[FORGOTTEN]) is str


def key(ledger: str, *, make: bool = True) -> bytes:
    """The chain's key; made when `make` (hold the lock), else empty when it is not there."""
    path = f"{ledger}/.key"
    text = bare.read_file(path)
    if text is not None:
        return bytes.fromhex(text.decode("ascii").strip())
    if not make:
        return b""
    from pathlib import Path

    from everest_pipelines.text.atomic import write_atomic

    secret = system.urandom(32)
    write_atomic(Path(path), secret.hex().encode() + b"\n")
    return secret


def dump(entry: Mapping[str, Any]) -> bytes:
    """An entry as its line."""
    return bare.dumps(entry).encode() + b"\n"


def parse(line: bytes) -> Entry | str:
    """The entry in a line, or why there is none."""
    try:
        found = bare.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return "not JSON"
    if not isinstance(found, dict):
        return "not an object"
    entry: Entry = found
    texts = (entry.get("id"), entry.get("kind"), entry.get("chain"))
    if (
        not all(isinstance(text, str) for text in texts)
        or type(entry.get("recorded_at")) is not int
    ):
        return "no id, kind, recorded_at or chain"
    try:
        uuid7_ms(entry["id"])
    except ValueError:
        return "its id is no UUID"
    return entry


def month(milliseconds: int) -> str:
    """The month (UTC) of milliseconds: the name of the file that an entry goes to."""
    import time

    return time.strftime("%Y-%m", time.gmtime(milliseconds // 1000))


def _canonical(value: object) -> bytes:
    return bare.dumps(value, canonical=True).encode()


def _names(folder: str) -> list[str]:
    try:
        return sorted(name for name in system.listdir(folder) if name.endswith(".jsonl"))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _last_name(folder: str) -> str:
    return max(_names(folder), default="")


def _tail(path: str) -> tuple[Entry | None, bool]:
    """The last entry of a file, and whether the file ends in half a line."""
    descriptor = system.open(path, system.O_RDONLY)
    try:
        size = system.fstat(descriptor).st_size
        length = bare.BLOCK // 16  # an entry of a hook has some 400 bytes
        while size:
            start = max(0, size - length)
            data = _read_at(descriptor, start, size - start)
            if not data.endswith(b"\n"):
                return None, True
            lines = data.split(b"\n")
            for line in reversed(lines[1:] if start else lines):
                found = parse(line)
                if not isinstance(found, str):
                    return found, False
            if not start:
                break
            length *= 4
        return None, False
    finally:
        system.close(descriptor)


def _read_at(descriptor: int, start: int, size: int) -> bytes:
    system.lseek(descriptor, start, 0)
    data = b""
    while len(data) < size and (part := system.read(descriptor, size - len(data))):
        data += part
    return data


def _write(folder: str, path: str, line: bytes, *, durable: bool) -> None:
    fresh = not bare.exists(path)
    if fresh:
        bare.make_dir(folder)
    flags = system.O_WRONLY | system.O_CREAT | system.O_APPEND
    descriptor = system.open(path, flags, 0o600)
    try:
        while line:
            line = line[system.write(descriptor, line) :]
        if durable:
            system.fsync(descriptor)
    finally:
        system.close(descriptor)
    if fresh:
        bare.sync(folder)
        bare.sync(folder.rpartition("/")[0])
