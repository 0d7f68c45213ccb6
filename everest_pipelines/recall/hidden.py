"""Which lessons the overlay hides: read by every way of recall before it answers."""

from __future__ import annotations

from everest_pipelines.text import bare
from everest_pipelines.text.errors import DamagedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OVERLAY_VERSION = 1


def entries(path: str) -> list[dict[str, Any]]:
    """The overlay's entries, oldest first; empty when there is no overlay at `path`.

    Raises DamagedError when the file cannot be understood: then show nothing at all rather than a
    lesson that was called wrong.
    """
    data = bare.read_file(path)
    if data is None:
        return []
    try:
        body = bare.loads(data.decode("utf-8"))
        if body["version"] > OVERLAY_VERSION:
            raise ValueError(f"version {body['version']} is newer than this everest")
        return [
            {
                "id": str(entry["id"]),
                "value_key": str(entry["value_key"]),
                "why": str(entry.get("why", "")),
                "at": int(entry.get("at", 0)),
            }
            for entry in body["hidden"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedError(
            f"{path} cannot be read ({error}); nothing is recalled until it is mended.",
            "everest doctor",
        ) from error


def keys(path: str) -> frozenset[str]:
    """The ids and value keys that must not be shown. Raises DamagedError as `entries` does."""
    return frozenset(
        key for entry in entries(path) for key in (entry["id"], entry["value_key"]) if key
    )
