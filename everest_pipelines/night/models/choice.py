"""``model.json``: which models the owner, or ``everest model`` for them, chose."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from everest_pipelines.text.atomic import write_atomic
from everest_pipelines.text.errors import DamagedError
from everest_pipelines.text.home import Home


class Choice(Struct, frozen=True):
    """Configured names; empty: none. ``table`` is the date of the table that recommended them."""

    embed: str = ""
    write: str = ""
    table: str = ""


def chosen(home: Home) -> Choice:
    """The choice, empty before the first. Raises DamagedError for a file that is none."""
    try:
        return msgspec.json.decode(_path(home).read_bytes(), type=Choice)
    except FileNotFoundError:
        return Choice()
    except msgspec.DecodeError as error:
        raise DamagedError(f"{_path(home)}: {error}.", "everest model") from None


def choose(home: Home, choice: Choice) -> None:
    """Write the choice in one step."""
    write_atomic(_path(home), msgspec.json.format(msgspec.json.encode(choice), indent=2) + b"\n")


def _path(home: Home) -> Path:
    return home.root / "model.json"
