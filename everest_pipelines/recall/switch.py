"""Silence: read before any other configuration, by every hook and every MCP answer."""

from __future__ import annotations

from collections.abc import Mapping

from everest_pipelines.text.atomic import write_atomic
from everest_pipelines.text.home import Home
from everest_pipelines.text.quick_settings import silenced


def is_off(home: Home, environ: Mapping[str, str]) -> bool:
    """Whether hooks and MCP must keep silent. A value that nobody understands means silence."""
    return silenced(environ) or home.off_switch.exists()


def turn_off(home: Home) -> bool:
    """Silence everything until `turn_on`; False when it was off already."""
    if home.off_switch.exists():
        return False
    write_atomic(home.off_switch, b"everest on: hooks speak again\n")
    return True


def turn_on(home: Home) -> bool:
    """End the silence; False when it was on already. EVEREST_OFF in the environment still rules."""
    if not home.off_switch.exists():
        return False
    home.off_switch.unlink(missing_ok=True)
    return True
