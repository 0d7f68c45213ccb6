from __future__ import annotations

from pathlib import Path

import pytest

from everest_pipelines.recall.switch import is_off, turn_off, turn_on
from everest_pipelines.text.home import Home


def test_off_and_on_are_obeyed_at_once(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    assert not is_off(home, {})
    assert turn_off(home)
    assert not turn_off(home)
    assert is_off(home, {})
    assert is_off(home, {"EVEREST_OFF": "0"})
    assert turn_on(home)
    assert not turn_on(home)
    assert not is_off(home, {})


@pytest.mark.parametrize(
    ("value", "off"),
    [("1", True), ("true", True), ("please", True), ("0", False), ("", False), (" No ", False)],
)
def test_the_variable_silences_unless_it_plainly_says_no(
    tmp_path: Path, value: str, off: bool
) -> None:
    assert is_off(Home(tmp_path), {"EVEREST_OFF": value}) is off
