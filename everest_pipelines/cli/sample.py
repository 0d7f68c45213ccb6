"""The bundled sample: a throw-away home with transcripts of its own, folded to its last day."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from pathlib import Path

from everest_pipelines.text.atomic import write_atomic
from everest_pipelines.text.home import HOME_VARIABLE, Home
from everest_pipelines.text.settings import SETTINGS, Kind

LAST_DAY = "2026-05-11"  # of the sample's newest record; a test compares
FOLDER = Path(__file__).resolve().parent.parent / "sample" / "projects"


def throw_away() -> Path:
    """Fill a temporary folder with the sample's transcripts and an empty home, and move in.

    It is the same folder each time, emptied. Nothing of the owner's is read, now or by a later
    command on that home: its config.toml points every agent's folder into the temporary one. The
    environment of this process is changed, so that Dagster, too, works there. Returns the home's
    root.
    """
    root = _emptied() or Path(tempfile.mkdtemp(prefix="everest-sample-"))
    shutil.copytree(FOLDER, root / "claude" / "projects")
    folders = {
        setting.name: root / setting.name
        for setting in SETTINGS
        if setting.kind is Kind.PATH and setting.in_file and setting.default is not None
    }
    folders |= {"claude_dir": root / "claude", "inbox": root / "home" / "inbox"}
    place = Home(root / "home").ensure()
    lines = [f"{name} = {json.dumps(str(path))}" for name, path in folders.items()]
    write_atomic(place.config, "\n".join([*lines, 'tz = "UTC"', ""]).encode())
    for variable in list(os.environ):
        if variable.startswith("EVEREST_") or variable == "DAGSTER_HOME":
            del os.environ[variable]
    os.environ[HOME_VARIABLE] = str(place.root)
    return place.root


def _emptied() -> Path | None:
    """This user's folder for the sample, without what the last sample night left in it.

    None when it is somebody else's, or when a run works in it: then another one is to be made.
    """
    from everest_pipelines.lake.lock import holder

    user = os.getuid() if hasattr(os, "getuid") else 0
    root = Path(tempfile.gettempdir()) / f"everest-sample-{user}"
    try:
        root.mkdir(mode=0o700, exist_ok=True)
        found = root.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != user:
            return None
        if holder(Home(root / "home")) is not None:
            return None
        for name in os.listdir(root):
            shutil.rmtree(root / name)
    except OSError:
        return None
    root.chmod(0o700)
    return root
