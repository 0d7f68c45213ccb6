"""Rows for the tests: small ones by hand, and any row of any table by hypothesis."""

from __future__ import annotations

import enum
import types
import typing
from typing import Any

import msgspec
from hypothesis import strategies as st

from everest_pipelines.core.records import (
    Channel,
    LessonKind,
    LessonRevision,
    Origin,
    Role,
    State,
    Turn,
)
from everest_pipelines.lake.columns import TableSpec

NOON = 1_780_315_200_000_000  # 2026-06-01 12:00 UTC


def turn(number: int, text: str = "", **changes: Any) -> Turn:
    fields: dict[str, Any] = {
        "turn_id": f"t{number:04}",
        "session_id": "s1",
        "role": Role.HUMAN,
        "channel": Channel.PROMPT,
        "occurred_at": NOON + number * 1_000_000,
        "text": text or f"turn {number}",
    }
    return Turn(**(fields | changes))


def lesson(number: int, text: str, **changes: Any) -> LessonRevision:
    fields: dict[str, Any] = {
        "lesson_id": f"l{number}",
        "revision": 1,
        "text": text,
        "lesson_kind": LessonKind.RULE,
        "scope": "p-1",
        "state": State.STATED,
        "strength": 1.0,
        "seen": 1,
        "first_seen_at": NOON,
        "last_seen_at": NOON,
        "source_episode_ids": ("e1",),
        "valid_from": NOON,
        "value_key": text,
        "origin": Origin.HUMAN,
    }
    return LessonRevision(**(fields | changes))


_MICROS = st.integers(0, 4_102_444_800_000_000)
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def any_row(spec: TableSpec) -> st.SearchStrategy[Any]:
    """Any row that the struct allows."""
    hints = typing.get_type_hints(spec.struct)
    dates = {c.name for c in spec.columns if str(c.type) == "date32[day]"}
    parts = {name: st.dates().map(str) if name in dates else _value(hints[name]) for name in hints}
    return st.fixed_dictionaries(parts).map(lambda given: spec.struct(**given))


def _value(hint: Any) -> st.SearchStrategy[Any]:
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        present = next(part for part in typing.get_args(hint) if part is not type(None))
        return st.none() | _value(present)
    if typing.get_origin(hint) is tuple:
        parts = typing.get_args(hint)
        if parts[-1] is Ellipsis:
            return st.lists(_value(parts[0]), max_size=3).map(tuple)
        if parts == (str, str):  # (day, project)
            return st.tuples(st.dates().map(str), _TEXTS)
        return st.tuples(*[_value(part) for part in parts])
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return st.sampled_from(hint)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        hints = typing.get_type_hints(hint)
        return st.builds(hint, **{name: _value(part) for name, part in hints.items()})
    simple: dict[Any, st.SearchStrategy[Any]] = {
        str: _TEXTS,
        int: _MICROS,
        bool: st.booleans(),
        float: st.floats(width=32, allow_nan=False),
        bytes: st.binary(max_size=9),
    }
    return simple[hint]
