"""Every setting has one name, one place, and a mistake that says where it is."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from everest_pipelines.text.errors import SettingsError
from everest_pipelines.text.settings import SETTINGS, Settings, load, load_lenient

ENVIRON = {"HOME": "/home/dev", "PATH": "/bin"}
# Binding for other work: names, variables and defaults.
BINDING = {
    "EVEREST_CLAUDE_DIR": Path("/home/dev/.claude"),
    "EVEREST_CODEX_DIR": Path("/home/dev/.codex"),
    "EVEREST_COPILOT_DIR": Path("/home/dev/.copilot"),
    "EVEREST_GEMINI_DIR": Path("/home/dev/.gemini"),
    "EVEREST_CHATS_DIR": None,
    "EVEREST_TZ": None,
    "EVEREST_START": "2022-11-01",
    "EVEREST_RAW_DAYS": 90,
    "EVEREST_RENDER": False,
    "EVEREST_OFF": False,
    "EVEREST_HOLDOUT": 0.5,
    "EVEREST_WITHHOLD": 0,
    "EVEREST_EMBED_MODEL": None,
    "EVEREST_WRITE_MODEL": None,
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def test_the_defaults_are_the_agreed_ones(config: Path) -> None:
    settings = load(ENVIRON, config)
    by_variable = {setting.variable: setting.name for setting in SETTINGS}
    for variable, value in BINDING.items():
        assert getattr(settings, by_variable[variable]) == value, variable
    assert settings.inbox == config.parent / "inbox"
    assert not settings.given("start")
    assert "EVEREST_HOME" in by_variable


def test_the_registry_and_the_settings_have_the_same_names() -> None:
    names = [setting.name for setting in SETTINGS if setting.in_file]
    assert [f.name for f in dataclasses.fields(Settings)] == [*names, "sources"]
    assert len({setting.variable for setting in SETTINGS}) == len(SETTINGS)
    assert all(setting.doc.endswith(".") for setting in SETTINGS)
    assert all(setting.variable == f"EVEREST_{setting.name.upper()}" for setting in SETTINGS)


def test_a_variable_beats_the_file_and_the_source_is_known(config: Path) -> None:
    config.write_text('# mine\nraw_days = 7\nholdout = 0\nstart = 2024-02-29\ninbox = "box"\n')
    settings = load({**ENVIRON, "EVEREST_RAW_DAYS": "0", "EVEREST_INBOX": "~/in"}, config)
    assert (settings.raw_days, settings.holdout, settings.start) == (0, 0.0, "2024-02-29")
    assert settings.inbox == Path("/home/dev/in")
    assert settings.sources["raw_days"] == "EVEREST_RAW_DAYS"
    assert settings.sources["holdout"] == f"{config}:3"
    assert load(ENVIRON, config).inbox == config.parent / "box"


def test_an_empty_variable_counts_as_not_set(config: Path) -> None:
    assert load({**ENVIRON, "EVEREST_RENDER": "", "EVEREST_CHATS_DIR": " "}, config) == load(
        ENVIRON, config
    )


def test_an_unknown_name_is_an_error_that_names_the_nearest(config: Path) -> None:
    with pytest.raises(SettingsError, match=r"EVEREST_HOLD_OUT .* EVEREST_HOLDOUT\?"):
        load({**ENVIRON, "EVEREST_HOLD_OUT": "1"}, config)
    config.write_text('tz = "UTC"\n\nraw_day = 3\n')
    with pytest.raises(SettingsError, match=rf"{config}:3: raw_day .* raw_days\?"):
        load(ENVIRON, config)
    config.write_text('[claude]\ndir = "x"\n')
    with pytest.raises(SettingsError, match=rf"{config}:1: claude "):
        load(ENVIRON, config)
    config.write_text('home = "x"\n')
    with pytest.raises(SettingsError, match="only by EVEREST_HOME"):
        load(ENVIRON, config)


def test_known_variables_of_tests_and_scripts_are_no_errors(config: Path) -> None:
    load(
        {**ENVIRON, "EVEREST_SHARED": "/x", "EVEREST_CHECKOUT": "/y", "EVEREST_HOME": "/z"}, config
    )


@pytest.mark.parametrize(
    ("variable", "bad", "good"),
    [
        ("EVEREST_HOLDOUT", "1.5", "1"),
        ("EVEREST_HOLDOUT", "nan", "0.25"),
        ("EVEREST_RAW_DAYS", "-1", "30"),
        ("EVEREST_RAW_DAYS", "1e3", "0"),
        ("EVEREST_START", "2023-02-30", "2023-02-28"),
        ("EVEREST_START", "yesterday", "2023-01-01"),
        ("EVEREST_TZ", "Mars/Olympus", "UTC"),
        ("EVEREST_TZ", "../etc/passwd", "UTC"),
        ("EVEREST_RENDER", "maybe", "Yes"),
        ("EVEREST_PORT", "0", "3001"),
    ],
)
def test_a_value_that_does_not_fit_names_its_place(
    config: Path, variable: str, bad: str, good: str
) -> None:
    with pytest.raises(SettingsError, match=f"^{variable}: must be"):
        load({**ENVIRON, variable: bad}, config)
    load({**ENVIRON, variable: good}, config)


@pytest.mark.parametrize("line", ["raw_days = true", "holdout = 'much'", "render = 2", "tz = 5"])
def test_a_value_of_the_wrong_kind_in_the_file_names_file_and_line(config: Path, line: str) -> None:
    config.write_text(f"\n{line}\n")
    with pytest.raises(SettingsError, match=rf"^{config}:2: "):
        load(ENVIRON, config)


def test_hooks_ignore_what_is_wrong_and_are_told(config: Path) -> None:
    config.write_text("raw_dayz = 1\nholdout = 7\nwithhold = 0.5\n")
    settings, ignored = load_lenient({**ENVIRON, "EVEREST_NONSENSE": "1"}, config)
    assert len(ignored) == 3
    assert (settings.holdout, settings.withhold) == (0.5, 0.5)
    for broken in (b"raw_days = = 1", b"\xff\xfe", b"[[["):
        config.write_bytes(broken)
        settings, ignored = load_lenient(ENVIRON, config)
        assert settings.raw_days == 90 and len(ignored) == 1
        with pytest.raises(SettingsError):
            load(ENVIRON, config)
