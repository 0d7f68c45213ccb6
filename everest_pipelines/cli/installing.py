"""Planning, writing and taking back our entries in the agents' settings files."""

from __future__ import annotations

import difflib
import hashlib
import json
import stat
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from everest_pipelines.cli import edit_json, edit_toml
from everest_pipelines.cli.agents import Form, Place, is_ours
from everest_pipelines.cli.edit_json import BrokenFileError
from everest_pipelines.text.atomic import write_atomic
from everest_pipelines.text.errors import BusyError, CallerError, SettingsError
from everest_pipelines.text.home import Home

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Change:
    """One file as it is and as it shall be; None: it is not there."""

    agent: str
    file: Path
    before: bytes | None
    after: bytes | None

    def diff(self) -> str:
        """The change as a unified diff."""
        old, new = (_lines(one) for one in (self.before, self.after))
        name = str(self.file)
        return "\n".join(difflib.unified_diff(old, new, name, name, lineterm="", n=2))


def _lines(data: bytes | None) -> list[str]:
    return data.decode("utf-8", "replace").splitlines() if data else []


@dataclass(frozen=True)
class Done:
    """What the home remembers of a file that we changed, to take it back."""

    agent: str
    file: str
    backup: str  # "" when the file was not there
    after: str  # SHA-256 of what we wrote


def plan(places: Iterable[Place]) -> list[Change]:
    """What to change so that every place holds its value, and no older one of ours.

    Files that hold it already are left out. Raises SettingsError, naming file and line, for a file
    that its agent could not read, and CallerError where something else stands in our place.
    """
    return _planned(places, _with)


def plan_removal(home: Home, places: Sequence[Place]) -> list[Change]:
    """What to change so that nothing of ours is left.

    A file that nobody changed since gets back the bytes that it had before; of any other only our
    own entries are taken out. Raises SettingsError as `plan` does.
    """
    known = {one.file: one for one in remembered(home)}
    by_file = _by_file(places)
    changes: list[Change] = []
    for file, own in by_file.items():
        before = _read(file)
        if before is None:
            continue
        done = known.get(str(file))
        if done is not None and hashlib.sha256(before).hexdigest() == done.after:
            after = Path(done.backup).read_bytes() if done.backup else None
            if after is not None:  # made when an older entry of ours stood in the file
                kept = after
                after = _edited(own, kept, partial(_without, original=kept))
        else:
            original = Path(done.backup).read_bytes() if done and done.backup else None
            after = _edited(own, before, partial(_without, original=original))
            if done is not None and not done.backup and not after.strip(b"{}\r\n\t \xef\xbb\xbf"):
                after = None
        if after != before:
            changes.append(Change(own[0].agent, file, before, after))
    return changes


def held(places: Iterable[Place]) -> list[tuple[Place, Any]]:
    """Every entry of ours that is in the files, of any version, with the place that it holds.

    Raises SettingsError as `plan` does.
    """
    found: list[tuple[Place, Any]] = []
    for file, own in _by_file(places).items():
        data = _read(file)
        if data is None:
            continue
        for place in own:
            try:
                text = data.removeprefix(_BOM).decode("utf-8")
                if place.form is Form.TOML:
                    value = _at(edit_toml.read(text), place.key)
                    values = [value]
                elif place.key[-1] == -1:
                    values = _listed(text, place)
                else:
                    node = edit_json.read(text, comments=place.form is Form.JSONC).at(place.key)
                    values = [node.value] if node else []
            except UnicodeDecodeError:
                raise _broken(file, 1, "is no UTF-8") from None
            except BrokenFileError as error:
                raise _broken(file, error.line, error.what) from None
            found += [(place, value) for value in values if is_ours(value)]
    return found


def _by_file(places: Iterable[Place]) -> dict[Path, list[Place]]:
    found: dict[Path, list[Place]] = {}
    for place in places:
        found.setdefault(place.file, []).append(place)
    return found


def _planned(places: Iterable[Place], edit: Any) -> list[Change]:
    changes: list[Change] = []
    for file, own in _by_file(places).items():
        before = _read(file)
        after = _edited(own, before, edit)
        if after != before:
            changes.append(Change(own[0].agent, file, before, after))
    return changes


def _read(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None


def _edited(places: Sequence[Place], data: bytes | None, edit: Any) -> bytes:
    """The file after `edit(text, place)` for each of its places."""
    file = places[0].file
    mark = _BOM if data and data.startswith(_BOM) else b""
    try:
        text = (data or b"")[len(mark) :].decode("utf-8")
        for place in places:
            text = edit(text, place)
    except UnicodeDecodeError:
        raise _broken(file, 1, "is no UTF-8") from None
    except BrokenFileError as error:
        raise _broken(file, error.line, error.what) from None
    return mark + text.encode()


def _broken(file: Path, line: int, what: str) -> SettingsError:
    return SettingsError(
        f"{file}:{line}: {what}. Nothing was changed.", "mend the file, then: everest setup"
    )


def _with(text: str, place: Place) -> str:
    if place.form is Form.TOML:
        path = tuple(str(key) for key in place.key)
        held = _at(edit_toml.read(text), path)
        if held == place.value:
            return text
        if held is not None:
            _refuse_others(place, held)
            text = edit_toml.remove(text, path)
        return edit_toml.add(text, path, place.value)
    comments = place.form is Form.JSONC
    if not text.strip():
        text = "{}\n"
    if place.key[-1] != -1:
        node = edit_json.read(text, comments=comments).at(place.key)
        if node is not None:
            if node.value == place.value:
                return text
            _refuse_others(place, node.value)
            text = edit_json.remove(text, place.key, comments=comments)
        return edit_json.add(text, place.key, place.value, comments=comments)
    listed = _listed(text, place)
    ours = [index for index, value in enumerate(listed) if is_ours(value)]
    right = [index for index in ours if listed[index] == place.value][:1]
    for index in reversed([one for one in ours if one not in right]):
        text = edit_json.remove(text, (*place.key[:-1], index), comments=comments)
    if right:
        return text
    return edit_json.add(text, place.key, place.value, comments=comments)


def _without(text: str, place: Place, original: bytes | None) -> str:
    """The text without our entry and without the containers that became empty by it.

    A container that was there before us (in `original`) stays, empty or not.
    """
    if place.form is Form.TOML:
        path = tuple(str(key) for key in place.key)
        held = _at(edit_toml.read(text), path)
        return edit_toml.remove(text, path) if held is not None and is_ours(held) else text
    comments = place.form is Form.JSONC
    if not text.strip():
        return text
    if place.key[-1] == -1:
        listed = _listed(text, place)
        ours = [index for index, value in enumerate(listed) if is_ours(value)]
    else:
        node = edit_json.read(text, comments=comments).at(place.key)
        ours = [place.key[-1]] if node is not None and is_ours(node.value) else []
    for index in reversed(ours):
        text = edit_json.remove(text, (*place.key[:-1], index), comments=comments)
    before = _was(original, comments=comments)
    for depth in range(len(place.key) - 1, 0, -1):
        path = place.key[:depth]
        node = edit_json.read(text, comments=comments).at(path)
        if ours and node is not None and not node.value and _at(before, path) is None:
            text = edit_json.remove(text, path, comments=comments)
    return text


def _was(original: bytes | None, *, comments: bool) -> Any:
    try:
        text = (original or b"{}").removeprefix(_BOM).decode("utf-8")
        return edit_json.read(text, comments=comments).value if text.strip() else {}
    except (UnicodeDecodeError, BrokenFileError):
        return {}


def _listed(text: str, place: Place) -> list[Any]:
    node = edit_json.read(text, comments=place.form is Form.JSONC).at(place.key[:-1])
    return list(node.value) if node is not None and isinstance(node.value, list) else []


def _at(value: Any, path: Iterable[Any]) -> Any:
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return value


def _refuse_others(place: Place, held: Any) -> None:
    if not is_ours(held):
        name = ".".join(map(str, place.key))
        raise CallerError(
            f"{place.file}: {name} is there already and is not ours. Nothing was changed.",
            "rename it, then: everest setup",
        )


def write(home: Home, change: Change, *, day: str) -> None:
    """Back the file up, then put the new bytes in its place, by its link and with its mode.

    Raises BusyError when the file is no longer what the plan was made of.
    """
    if _read(change.file) != change.before:
        raise BusyError(f"{change.file} changed meanwhile.", "everest setup")
    backup = ""
    if change.before is not None:
        digest = hashlib.sha256(change.before).hexdigest()[:12]
        copy = home.backups / "settings" / change.agent / f"{change.file.name}.{day}.{digest}"
        if not copy.exists():
            write_atomic(copy, change.before)
        backup = str(copy)
    known = {one.file: one for one in remembered(home)}
    name = str(change.file)
    if change.after is None:
        change.file.unlink()
        known.pop(name, None)
    else:
        target = change.file.resolve()
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o600
        write_atomic(target, change.after, mode=mode)
        first = known.get(name)
        if first is not None and change.before is not None:
            same = hashlib.sha256(change.before).hexdigest() == first.after
            backup = first.backup if same else backup
        known[name] = Done(change.agent, name, backup, hashlib.sha256(change.after).hexdigest())
    _remember(home, known.values())


def forget(home: Home, files: Iterable[Path]) -> None:
    """Take files out of what is remembered: nothing of ours is in them any more."""
    gone = {str(file) for file in files}
    _remember(home, [one for one in remembered(home) if one.file not in gone])


def remembered(home: Home) -> list[Done]:
    """The files that we changed; empty when nothing is known."""
    try:
        body = json.loads(home.installed.read_text(encoding="utf-8"))
        return [Done(**one) for one in body["files"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _remember(home: Home, files: Iterable[Done]) -> None:
    listed = [asdict(one) for one in files]
    if not listed:
        home.installed.unlink(missing_ok=True)
        return
    body = {"version": 1, "files": listed}
    write_atomic(home.installed, (json.dumps(body, indent=1) + "\n").encode())
