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
import hmac
import os
import secrets
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from everest_pipelines.text import chain
from everest_pipelines.text.atomic import make_dir, write_atomic
from everest_pipelines.text.chain import KINDS
from everest_pipelines.text.errors import CallerError, DamagedError, MissingError
from everest_pipelines.text.home import Home
from everest_pipelines.text.redact import redact

RESERVED = frozenset({"id", "kind", "recorded_at", "chain", "forgotten"})

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
    """Add one entry, durable on return (a recall: with the next entry of another kind), and return
    it as it was written.

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
        written = chain.append(str(home.ledger), [(kind, content)], now=now)
        if written is None:
            mend_tails(home)
            written = chain.append(str(home.ledger), [(kind, content)], now=now)
    if not written:
        raise DamagedError(f"{home.ledger} ends in half a line again.", "everest doctor")
    return written[0]


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
    key = chain.key(str(home.ledger), make=False)
    if not key:
        return [*problems, "The key of the chain (.key) is gone: nothing can be verified."]
    found.sort(key=lambda pair: pair[0]["id"])
    previous: Entry = {"id": "", "chain": ""}
    for entry, where in found:
        if entry["id"] == previous["id"]:
            problems.append(f"{where} has the id of another entry: {entry['id']}.")
        if not hmac.compare_digest(chain.link(key, previous["chain"], entry), entry["chain"]):
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
        key = chain.key(str(home.ledger))
        for path in _files(home, KINDS):
            kept: list[bytes] = []
            before = changed
            for _, entry in _lines(path):
                if isinstance(entry, Torn):
                    continue
                names = set(fields_of(_without_forgotten(entry))) & entry.keys() - RESERVED
                names = {name for name in names if not chain.is_forgotten(entry[name])}
                for name in names:
                    entry[name] = {chain.FORGOTTEN: chain.value_digest(key, entry[name])}
                changed += bool(names)
                kept.append(chain.dump(entry))
            if changed > before:
                write_atomic(path, b"".join(kept))
    return changed


def _without_forgotten(entry: Entry) -> Entry:
    gone = [name for name, value in entry.items() if chain.is_forgotten(value)]
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
        if all(isinstance(name, str) for name, _ in items) and not chain.is_forgotten(value):
            return {_clean(name, where): _clean(item, where) for name, item in items}
    raise CallerError(f"The ledger cannot hold the value of {where!r} ({type(value).__name__}).")


# --- the files ---


def _files(home: Home, kinds: Iterable[str]) -> list[Path]:
    return [path for kind in kinds for path in sorted((home.ledger / kind).glob("*.jsonl"))]


def _lines(path: Path) -> Iterator[tuple[int, Entry | Torn]]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    yield number, Torn(path, number, "cut off", tail=True)
                    continue
                found = chain.parse(line)
                yield (
                    number,
                    Torn(path, number, found, tail=False) if isinstance(found, str) else found,
                )
    except FileNotFoundError:  # gone since it was listed
        return


def mend_tails(home: Home) -> None:
    """Set aside what a dead writer left after the last newline of each kind's last file.

    The caller holds the ledger's lock.
    """
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


@contextlib.contextmanager
def _locked(home: Home) -> Generator[None]:
    home.ensure()
    make_dir(home.ledger)
    try:
        with chain.Lock(str(home.ledger)):
            yield
    except ImportError:
        raise MissingError(
            "The ledger needs file locks, which this system lacks.", "use Everest inside WSL"
        ) from None
