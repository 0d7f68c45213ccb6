"""Which raw lines may hold a secret, asked of a native scanner where one is installed.

The scanner (Hyperscan, the extra ``fast``) looks for all rules at once, some eight times as fast as
the anchors do. It only says where a rule might fire: cutting stays with ``text.redact``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from everest_pipelines.text.redact import may_hold_secret, redact_bytes, rule_table

# Making the scanner costs 0.1 CPU s, which it saves over some 20 MB.
WORTH_BYTES = 24 << 20
_COUNTED = re.compile(r"\{(\d+),(\d+)\}\??")
_LONG = 64  # a longer repetition is taken for an endless one: the exact ones take 0.6 CPU s more


class Scan(Struct, frozen=True):
    """How lines are redacted; ``suspects`` is asked of whole blocks, False is certain."""

    redact: Callable[[bytes], bytes] = redact_bytes
    suspects: Callable[[bytes], bool] = may_hold_secret


def scan_for(size: int) -> Scan:
    """The cheapest way for so many bytes; each gives the same lines."""
    native = native_suspects() if size >= WORTH_BYTES else None
    if native is None:
        return Scan()
    return Scan(lambda line: redact_bytes(line) if native(line) else line, native)


def native_suspects() -> Callable[[bytes], bool] | None:
    """Whether any rule may fire in these bytes, or None where no native scanner can tell."""
    try:
        import hyperscan
    except ImportError:
        return None
    library: Any = hyperscan  # its types are not complete
    patterns = [_wider(rule.body).encode() for rule in rule_table()[1]]
    flags: int = (
        library.HS_FLAG_PREFILTER | library.HS_FLAG_SINGLEMATCH | library.HS_FLAG_ALLOWEMPTY
    )
    database = library.Database()
    try:
        database.compile(expressions=patterns, flags=[flags] * len(patterns))
    except library.HyperscanError:  # a rule that it cannot express
        return None

    def suspects(data: bytes) -> bool:
        try:
            database.scan(data, match_event_handler=_stop)
        except library.ScanTerminated:
            return True
        return False

    return suspects


def _stop(*_: object) -> bool:
    return True


def _wider(body: str) -> str:
    """The pattern, or one that matches wherever it does."""
    return _COUNTED.sub(lambda m: f"{{{m[1]},}}" if int(m[2]) > _LONG else m[0], body)
