"""Identifiers sort by time, never repeat, and do not depend on where parts are cut."""

from __future__ import annotations

import hashlib
import re
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everest_pipelines.text.ids import digest, uuid7, uuid7_ms


def test_parts_are_kept_apart() -> None:
    assert digest("a", "b") != digest("ab") != digest("ab", "")
    assert digest("a", "b") == digest("a", "b")
    raw = (1).to_bytes(8, "big") + b"a"
    assert digest("a", size=8) == hashlib.sha256(raw).hexdigest()[:16]
    assert len(digest("\ud800")) == 32
    with pytest.raises(ValueError, match="size"):
        digest("a", size=33)


@given(st.lists(st.integers(min_value=0, max_value=2**47), min_size=1, max_size=40))
def test_ids_sort_as_they_were_made_whatever_the_clock_does(clock: list[int]) -> None:
    last: str | None = None
    latest = 0
    for now in clock:
        identifier = uuid7(now, last)
        parsed = uuid.UUID(identifier)
        assert str(parsed) == identifier and parsed.version == 7 and parsed.variant == uuid.RFC_4122
        assert last is None or identifier > last
        latest = max(latest, now)
        assert uuid7_ms(identifier) == latest
        last = identifier


def test_a_full_counter_moves_to_the_next_millisecond() -> None:
    full = "00000000-0005-7fff-bfff-ffffffffffff"
    following = uuid7(5, full)
    assert following > full and uuid7_ms(following) == 6


def test_what_is_no_uuid_is_refused() -> None:
    with pytest.raises(ValueError, match="no UUID"):
        uuid7(5, "nonsense")
    with pytest.raises(ValueError, match="no time"):
        uuid7(-1)
    assert re.fullmatch(r"[0-9a-f-]{36}", uuid7(0))
