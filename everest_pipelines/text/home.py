"""The one path object: where everything that belongs to a memory lives."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from everest_pipelines.text.atomic import FOLDER_MODE, make_dir

HOME_VARIABLE = "EVEREST_HOME"
_OUR_PROJECT = re.compile(r'^name\s*=\s*["\']everest-pipelines["\']', re.MULTILINE)


def absolute_path(text: str, environ: Mapping[str, str], base: Path | None = None) -> Path:
    """`text` as an absolute path: ``~`` by the HOME of `environ`, relative to `base` or the cwd.

    Symbolic links are kept.
    """
    person = environ.get("HOME")
    if person and (text == "~" or text.startswith("~/")):
        text = person + text[1:]
    path = Path(text).expanduser()
    return Path(os.path.abspath((base or Path.cwd()) / path))  # normalised, links not followed


def find_checkout(beside: Path | None = None) -> Path | None:
    """The checkout that this package runs from, or None when it is installed."""
    folder = beside or Path(__file__).resolve().parents[2]
    try:
        text = (folder / "pyproject.toml").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return folder if _OUR_PROJECT.search(text) else None


@dataclass(frozen=True)
class Home:
    """Every location of one memory, from one root. Nothing else joins paths below the root."""

    root: Path

    @staticmethod
    def resolve(environ: Mapping[str, str], checkout: Path | None = None) -> Home:
        """The home in force: EVEREST_HOME, else the checkout's ``data``, else ``~/.everest``.

        `checkout` is looked for beside the package when not given. Nothing is created.
        """
        chosen = environ.get(HOME_VARIABLE, "")
        if chosen:
            return Home(absolute_path(chosen, environ))
        found = checkout or find_checkout()
        if found is not None:
            return Home(absolute_path(str(found / "data"), environ))
        return Home(absolute_path("~/.everest", environ))

    def ensure(self) -> Home:
        """Make the root, readable by the owner alone. Returns self.

        A folder that was there and holds other things keeps its mode: only what is ours, or empty,
        is closed to others.
        """
        make_dir(self.root)
        is_open = os.name != "nt" and self.root.stat().st_mode & 0o777 != FOLDER_MODE
        if is_open and (self.lake.is_dir() or not any(self.root.iterdir())):
            self.root.chmod(FOLDER_MODE)
        return self

    @property
    def lake(self) -> Path:
        """The truth: one Parquet file a cell."""
        return self.root / "lake"

    @property
    def zone_file(self) -> Path:
        """Zone and first day of the lake, written at first run."""
        return self.lake / "_zone.json"

    @property
    def models(self) -> Path:
        """Vectors and model texts by content: never derived."""
        return self.root / "models"

    @property
    def ledger(self) -> Path:
        """What people and machines did: append-only."""
        return self.root / "ledger"

    @property
    def published(self) -> Path:
        """Generations."""
        return self.root / "published"

    @property
    def published_files(self) -> Path:
        """Immutable month files, named by content."""
        return self.published / "files"

    @property
    def current(self) -> Path:
        """The symbolic link whose replacement is the commit."""
        return self.published / "current"

    @property
    def duckdb(self) -> Path:
        """Views over the current generation."""
        return self.root / "everest.duckdb"

    @property
    def raw(self) -> Path:
        """Redacted raw lines, kept for EVEREST_RAW_DAYS."""
        return self.root / "raw"

    @property
    def quarantine(self) -> Path:
        """What could not be read."""
        return self.root / "quarantine"

    @property
    def inbox(self) -> Path:
        """Where events are dropped, unless EVEREST_INBOX says otherwise."""
        return self.root / "inbox"

    @property
    def overlay(self) -> Path:
        """What hides lessons at once."""
        return self.root / "overlay.json"

    @property
    def lock(self) -> Path:
        """The one lock of the lake."""
        return self.root / "lake.lock"

    @property
    def config(self) -> Path:
        """The owner's settings."""
        return self.root / "config.toml"

    @property
    def dagster(self) -> Path:
        """Storage of the Dagster instance."""
        return self.root / "dagster"

    @property
    def backups(self) -> Path:
        """Copies of what we changed outside the home."""
        return self.root / "backups"

    @property
    def installed(self) -> Path:
        """Which files of agents set-up changed, to take it back."""
        return self.root / "installed.json"

    @property
    def logs(self) -> Path:
        """Log files."""
        return self.root / "logs"

    @property
    def off_switch(self) -> Path:
        """Its presence silences every hook."""
        return self.root / "off"

    @property
    def ignore(self) -> Path:
        """Projects that the owner keeps out."""
        return self.root / "ignore.json"
