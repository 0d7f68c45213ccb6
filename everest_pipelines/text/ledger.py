"""The append-only ledger: what people and machines did, in the order in which they did it.

Files ``ledger/<kind>/<YYYY-MM>.jsonl``, one entry a line. The month is that of the id, which never
goes back, so the last line of a kind's last file is its newest entry. All kinds form one chain:
each entry's keyed digest covers the entry before it. A field's value enters only by its own keyed
digest, so that a value can be forgotten later (replaced by that digest) while the chain still
holds. The chain shows what was altered or taken out between entries; entries cut off at the end
are shown by the generations, which record the last entry that they knew.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from everest_pipelines.text.atomic import make_dir, sync_folder, write_all, write_atomic
from everest_pipelines.text.errors import CallerError, MissingError
from everest_pipelines.text.home import Home
from everest_pipelines.text.ids import uuid7, uuid7_ms
from everest_pipelines.text.redact import redact

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
RESERVED = frozenset({"id", "kind", "recorded_at", "chain", "forgotten"})
_HEAD = frozenset({"id", "kind", "recorded_at", "chain"})
_FORGOTTEN = "forgotten"  # {"forgotten": <digest>} stands where a value was
_BLOCK = 65536

Entry = dict[str, Any]


@dataclass(frozen=True)
class Torn:
    """A line that is no entry. `line` counts from 1; `tail` when no newline ended it."""

    path: Path
    line: int
    reason: str
    tail: bool


@dataclass(frozen=True)
class Ledger:
    """What was read: entries in the order of their ids, and what could not be read.

    An entry is its fields plus id, kind, recorded_at (microseconds UTC) and chain. Values that were
    forgotten are absent; their names stand in its field `forgotten`.
    """

    entries: list[Entry]
    torn: list[Torn]

    @property
    def last_id(self) -> str:
        """The newest entry's id, or an empty text."""
        return self.entries[-1]["id"] if self.entries else ""


def append(home: Home, kind: str, entry: Mapping[str, Any], *, now: int) -> Entry:
    """Add one entry, durable on return, and return it as it was written.

    `now` is in microseconds UTC. Every text is redacted first; lone surrogates become U+FFFD.
    Raises CallerError for an unknown kind, a reserved field or a value that JSON cannot hold, and
    MissingError where the system has no file locks.
    """
    if kind not in KINDS:
        raise CallerError(f"{kind!r} is no kind of ledger entry; there are: {', '.join(KINDS)}.")
    content = {name: _clean(value, name) for name, value in entry.items()}
    taken = RESERVED & content.keys()
    if taken:
        raise CallerError(f"The field {sorted(taken)[0]!r} is the ledger's own.")
    with _locked(home):
        key = _key(home, make=True)
        _mend_tails(home)
        last = _newest(home)
        identifier = uuid7(now // 1000, last["id"] if last else None)
        whole: Entry = {"id": identifier, "kind": kind, "recorded_at": now, **content}
        whole["chain"] = _chain(key, last["chain"] if last else "", whole)
        _write_line(home.ledger / kind / f"{_month(uuid7_ms(identifier))}.jsonl", _dump(whole))
    return whole


def read(home: Home, kinds: Iterable[str] | None = None, until: int | None = None) -> Ledger:
    """Read without waiting for a writer: entries of `kinds` (all by default), sorted by id.

    `until` (microseconds UTC, exclusive) leaves out what was recorded then or later.
    Raises CallerError for an unknown kind.
    """
    chosen = KINDS if kinds is None else tuple(kinds)
    unknown = set(chosen) - set(KINDS)
    if unknown:
        raise CallerError(f"{sorted(unknown)[0]!r} is no kind of ledger entry.")
    entries: list[Entry] = []
    torn: list[Torn] = []
    for path in _files(home, chosen):
        for _, found in _lines(path):
            if isinstance(found, Torn):
                torn.append(found)
            elif until is None or found["recorded_at"] < until:
                entries.append(_without_forgotten(found))
    entries.sort(key=lambda entry: entry["id"])
    return Ledger(entries, torn)


def verify(home: Home) -> list[str]:
    """What is wrong with the chain, one sentence each; empty when it holds.

    A torn last line is no fault: a writer died, and the next append sets it aside.
    """
    problems: list[str] = []
    found: list[tuple[Entry, str]] = []
    for path in _files(home, KINDS):
        for number, line in _lines(path):
            where = f"{path.parent.name}/{path.name}:{number}"
            if not isinstance(line, Torn):
                found.append((line, where))
                if line["kind"] != path.parent.name:
                    problems.append(f"{where} is of the kind {line['kind']!r}.")
            elif not line.tail:
                problems.append(f"{where} is no entry: {line.reason}.")
    if not found:
        return problems
    key = _key(home, make=False)
    if not key:
        return [*problems, "The key of the chain (.key) is gone: nothing can be verified."]
    found.sort(key=lambda pair: pair[0]["id"])
    previous: Entry = {"id": "", "chain": ""}
    for entry, where in found:
        if entry["id"] == previous["id"]:
            problems.append(f"{where} has the id of another entry: {entry['id']}.")
        if not hmac.compare_digest(_chain(key, previous["chain"], entry), entry["chain"]):
            problems.append(f"{where} was altered, or the entry before it is gone: {entry['id']}.")
        previous = entry
    return problems


def blank(home: Home, fields_of: Callable[[Entry], Iterable[str]]) -> int:
    """Forget values: each field that `fields_of(entry)` names is replaced by its digest.

    The chain holds on. Torn lines of a rewritten file go, for they may hold the same text. Returns
    how many entries changed. Raises MissingError as `append` does.
    """
    changed = 0
    with _locked(home):
        key = _key(home, make=True)
        for path in _files(home, KINDS):
            kept: list[bytes] = []
            before = changed
            for _, entry in _lines(path):
                if isinstance(entry, Torn):
                    continue
                names = set(fields_of(_without_forgotten(entry))) & entry.keys() - RESERVED
                names = {name for name in names if not _is_forgotten(entry[name])}
                for name in names:
                    entry[name] = {_FORGOTTEN: _value_digest(key, entry[name])}
                changed += bool(names)
                kept.append(_dump(entry))
            if changed > before:
                write_atomic(path, b"".join(kept))
    return changed


# --- the chain ---


def _chain(key: bytes, previous: str, entry: Entry) -> str:
    content = {
        name: value[_FORGOTTEN] if _is_forgotten(value) else _value_digest(key, value)
        for name, value in entry.items()
        if name not in _HEAD
    }
    content_digest = hashlib.sha256(_canonical(content)).hexdigest()
    head = [previous, entry["id"], entry["kind"], entry["recorded_at"], content_digest]
    return hmac.new(key, _canonical(head), hashlib.sha256).hexdigest()


def _value_digest(key: bytes, value: object) -> str:
    # Keyed: an unkeyed digest of a short forgotten text could be guessed.
    return hmac.new(key, b"value:" + _canonical(value), hashlib.sha256).hexdigest()


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _is_forgotten(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    held = cast("dict[str, object]", value)
    return held.keys() == {_FORGOTTEN} and isinstance(held[_FORGOTTEN], str)


def _without_forgotten(entry: Entry) -> Entry:
    gone = [name for name, value in entry.items() if _is_forgotten(value)]
    if not gone:
        return entry
    kept = {name: value for name, value in entry.items() if name not in gone}
    return {**kept, "forgotten": sorted(gone)}


def _clean(value: object, where: str) -> Any:
    """A copy that JSON holds, every text redacted."""
    if isinstance(value, str):
        return redact(value.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float) and value - value == 0:  # neither infinite nor NaN
        return value
    if isinstance(value, list | tuple):
        return [_clean(item, where) for item in cast("list[object]", value)]
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        if all(isinstance(name, str) for name, _ in items) and not _is_forgotten(value):
            return {_clean(name, where): _clean(item, where) for name, item in items}
    raise CallerError(f"The ledger cannot hold the value of {where!r} ({type(value).__name__}).")


# --- the files ---


def _files(home: Home, kinds: Iterable[str]) -> list[Path]:
    return [path for kind in kinds for path in sorted((home.ledger / kind).glob("*.jsonl"))]


def _month(milliseconds: int) -> str:
    return dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC).strftime("%Y-%m")


def _dump(entry: Entry) -> bytes:
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _parse(line: bytes) -> Entry | str:
    """The entry in a line, or why there is none."""
    try:
        found: object = json.loads(line)
    except (ValueError, RecursionError):
        return "not JSON"
    if not isinstance(found, dict):
        return "not an object"
    entry = cast("Entry", found)
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


def _lines(path: Path) -> Iterator[tuple[int, Entry | Torn]]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    yield number, Torn(path, number, "cut off", tail=True)
                    continue
                found = _parse(line)
                yield (
                    number,
                    Torn(path, number, found, tail=False) if isinstance(found, str) else found,
                )
    except FileNotFoundError:  # gone since it was listed
        return


def _newest(home: Home) -> Entry | None:
    newest: Entry | None = None
    for kind in KINDS:
        for path in reversed(_files(home, [kind])):
            last = _last_entry(path)
            if last is not None:
                if newest is None or last["id"] > newest["id"]:
                    newest = last
                break
    return newest


def _last_entry(path: Path) -> Entry | None:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        length = _BLOCK
        while True:
            start = max(0, size - length)
            file.seek(start)
            lines = file.read(size - start).split(b"\n")
            for line in reversed(lines[1:] if start else lines):
                found = _parse(line)
                if not isinstance(found, str):
                    return found
            if not start:
                return None
            length *= 4


def _mend_tails(home: Home) -> None:
    """Set aside what a dead writer left after the last newline of each kind's last file."""
    for kind in KINDS:
        paths = _files(home, [kind])
        if paths:
            _mend_tail(home, paths[-1])


def _mend_tail(home: Home, path: Path) -> None:
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        if not size:
            return
        file.seek(size - 1)
        if file.read(1) == b"\n":
            return
        file.seek(0)
        data = file.read()
        whole = data.rfind(b"\n") + 1
        name = f"{path.parent.name}-{path.stem}-{whole}-{secrets.token_hex(4)}.torn"
        write_atomic(home.quarantine / "ledger" / name, data[whole:])
        file.truncate(whole)
        os.fsync(file.fileno())


def _write_line(path: Path, line: bytes) -> None:
    make_dir(path.parent)
    fresh = not path.exists()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        write_all(descriptor, line)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if fresh:
        sync_folder(path.parent)
        sync_folder(path.parent.parent)


def _key(home: Home, *, make: bool) -> bytes:
    """The chain's key; made under the lock when `make`, else empty when it is not there."""
    path = home.ledger / ".key"
    with contextlib.suppress(FileNotFoundError):
        return bytes.fromhex(path.read_text("ascii").strip())
    if not make:
        return b""
    key = secrets.token_bytes(32)
    write_atomic(path, key.hex().encode() + b"\n")
    return key


@contextlib.contextmanager
def _locked(home: Home) -> Generator[None]:
    try:
        import fcntl  # absent on native Windows: importing this module must still work there
    except ImportError:
        raise MissingError(
            "The ledger needs file locks, which this system lacks.", "use Everest inside WSL"
        ) from None
    home.ensure()
    make_dir(home.ledger)
    descriptor = os.open(home.ledger / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)  # lets the lock go
