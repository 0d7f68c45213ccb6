"""UUIDv7: identifiers of what happened, in the order in which it happened (RFC 9562)."""

from __future__ import annotations

from everest_pipelines.text.bare import system

_COUNTER_BITS = 74  # 12 bits of rand_a and 62 of rand_b
_FRESH_BITS = 73  # a new millisecond starts in the lower half, which leaves room to count up
_STEP_BITS = 32  # within a millisecond the next id is a random step further, so not guessable


def uuid7(now_ms: int, last: str | None = None) -> str:
    """A UUIDv7 for `now_ms` (milliseconds UTC); sorts after `last`, even if the clock went back.

    Raises ValueError when `last` is no UUID.
    """
    moment, counter = now_ms, _random(_FRESH_BITS)
    if last is not None:
        last_moment, last_counter = _parts(last)
        if now_ms <= last_moment:
            moment = last_moment
            counter = last_counter + 1 + _random(_STEP_BITS)
            if counter >> _COUNTER_BITS:
                moment, counter = last_moment + 1, _random(_FRESH_BITS)
    if not 0 <= moment < 1 << 48:
        raise ValueError(f"{moment} is no time in milliseconds")
    high = (moment << 16) | 0x7000 | (counter >> 62)
    low = (0b10 << 62) | (counter & ((1 << 62) - 1))
    text = f"{high:016x}{low:016x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def uuid7_ms(identifier: str) -> int:
    """The milliseconds UTC that a UUIDv7 carries. Raises ValueError when it is no UUID."""
    return _parts(identifier)[0]


def _random(bits: int) -> int:
    size = (bits + 7) // 8
    return int.from_bytes(system.urandom(size), "big") >> (8 * size - bits)


def _parts(identifier: str) -> tuple[int, int]:
    text = identifier.replace("-", "")
    if len(text) != 32:
        raise ValueError(f"{identifier!r} is no UUID")
    value = int(text, 16)
    counter = ((value >> 64) & 0xFFF) << 62 | (value & ((1 << 62) - 1))
    return value >> 80, counter
