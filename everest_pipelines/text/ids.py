"""Identifiers: content digests for what is derived, UUIDv7 for what happened."""

from __future__ import annotations

import hashlib

from everest_pipelines.text.uuid7 import uuid7, uuid7_ms

__all__ = ["digest", "uuid7", "uuid7_ms"]


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
