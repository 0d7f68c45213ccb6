"""Identifiers: content digests for what is derived, UUIDv7 for what happened."""

from __future__ import annotations

import hashlib
import secrets

_COUNTER_BITS = 74  # 12 bits of rand_a and 62 of rand_b (RFC 9562)
_FRESH_BITS = 73  # a new millisecond starts in the lower half, which leaves room to count up
_STEP_BITS = 32  # within a millisecond the next id is a random step further, so not guessable


def digest(*parts: str, size: int = 16) -> str:
    """Hex SHA-256 over length-prefixed parts, cut to `size` bytes: ("a", "b") is not ("ab",).

    Lone surrogates are allowed in `parts`. Raises ValueError unless 1 <= size <= 32.
    """
    if not 1 <= size <= 32:
        raise ValueError(f"size must be 1 to 32 bytes, not {size}")
    total = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        total.update(len(raw).to_bytes(8, "big"))
        total.update(raw)
    return total.hexdigest()[: 2 * size]


def uuid7(now_ms: int, last: str | None = None) -> str:
    """A UUIDv7 for `now_ms` (milliseconds UTC); sorts after `last`, even if the clock went back.

    Raises ValueError when `last` is no UUID.
    """
    moment, counter = now_ms, secrets.randbits(_FRESH_BITS)
    if last is not None:
        last_moment, last_counter = _parts(last)
        if now_ms <= last_moment:
            moment = last_moment
            counter = last_counter + 1 + secrets.randbits(_STEP_BITS)
            if counter >> _COUNTER_BITS:
                moment, counter = last_moment + 1, secrets.randbits(_FRESH_BITS)
    if not 0 <= moment < 1 << 48:
        raise ValueError(f"{moment} is no time in milliseconds")
    high = (moment << 16) | 0x7000 | (counter >> 62)
    low = (0b10 << 62) | (counter & ((1 << 62) - 1))
    text = f"{high:016x}{low:016x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def uuid7_ms(identifier: str) -> int:
    """The milliseconds UTC that a UUIDv7 carries. Raises ValueError when it is no UUID."""
    return _parts(identifier)[0]


def _parts(identifier: str) -> tuple[int, int]:
    text = identifier.replace("-", "")
    if len(text) != 32:
        raise ValueError(f"{identifier!r} is no UUID")
    value = int(text, 16)
    counter = ((value >> 64) & 0xFFF) << 62 | (value & ((1 << 62) - 1))
    return value >> 80, counter
