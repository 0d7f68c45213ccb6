"""Where an installed hook begins: descriptors in, descriptors out."""

from __future__ import annotations

from everest_pipelines.recall import prime
from everest_pipelines.text import bare
from everest_pipelines.text.bare import system


def main(folder: str) -> None:
    """Answer the event on stdin. `folder`: the ``hooks`` folder of the home that installed this.

    EVEREST_HOME in the agent's environment moves the home, as it does for every command.
    """
    import time

    environ = bare.environment()
    root = environ.get("EVEREST_HOME") or folder.rpartition("/")[0]
    said = prime.answer(bare.read_all(0), environ, root, now=time.time_ns() // 1000)
    while said:
        said = said[system.write(1, said) :]
