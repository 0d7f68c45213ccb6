"""Which models fit a machine: a dated table kept as data, and the memory that there is."""

from __future__ import annotations

import os
from collections.abc import Collection
from functools import lru_cache
from importlib import resources
from pathlib import Path

import msgspec
from msgspec import Struct

GIB = 1 << 30


class Known(Struct, frozen=True, rename={"purpose": "for"}):
    """One model: ``gib`` is what it takes while it answers, ``rank`` orders by quality."""

    name: str
    purpose: str  # embed or write
    gib: float
    languages: str
    rank: int
    prefix: str = ""  # what an embedding model wants before every text


class Table(Struct, frozen=True):
    """``share_of_memory``: what models may take together, of all that the machine has."""

    date: str
    source: str
    share_of_memory: float
    models: tuple[Known, ...]


class Pick(Struct, frozen=True):
    """A recommendation; ``installed`` tells which of the two need no pull."""

    embed: str
    write: str
    installed: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def table() -> Table:
    """The packaged table."""
    file = resources.files("everest_pipelines.night.models").joinpath("models.json")
    return msgspec.json.decode(file.read_bytes(), type=Table)


def prefix_of(model: str) -> str:
    """What an embedding model wants before every text; empty for one that is not known."""
    name = model.removesuffix(":latest")
    return next((one.prefix for one in table().models if one.name == name), "")


def pick(memory: int, installed: Collection[str]) -> Pick:
    """The best pair for ``memory`` bytes: what is installed and fits comes first.

    A purpose for which nothing fits stays empty.
    """
    there = {name.removesuffix(":latest") for name in installed}
    room = memory * table().share_of_memory / GIB
    chosen: dict[str, str] = {}
    for purpose in ("embed", "write"):
        fitting = [one for one in table().models if one.purpose == purpose and one.gib <= room]
        if fitting:
            best = max(fitting, key=lambda one: (one.name in there, one.rank))
            chosen[purpose] = best.name
            room -= best.gib
    names = tuple(name for name in chosen.values() if name in there)
    return Pick(chosen.get("embed", ""), chosen.get("write", ""), names)


def memory_of_machine(root: Path = Path("/")) -> int:
    """Bytes that processes here may use: the machine's, or less where a container limits them.

    Limits are read from cgroup v2 (``memory.max``) and v1 (``memory.limit_in_bytes``).
    """
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if os.name != "nt" else 0
    limits = [pages or 8 * GIB]
    for name in ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = (root / name).read_text().strip()
        except OSError:
            continue
        if text.isdecimal():
            limits.append(int(text))
    return min(limits)
