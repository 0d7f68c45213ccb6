"""Every setting there is, declared once. The reference page is generated from `SETTINGS`."""

from __future__ import annotations

import datetime as dt
import difflib
import enum
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everest_pipelines.text.errors import SettingsError
from everest_pipelines.text.home import HOME_VARIABLE, Home, absolute_path
from everest_pipelines.text.quick_settings import NUMBERS, OFF_VARIABLE

PREFIX = "EVEREST_"
# Read by the tests and by the start scripts; no setting of the owner.
KNOWN_VARIABLES = frozenset({"EVEREST_SHARED", "EVEREST_CHECKOUT"})
_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"0", "false", "no", "off"})


class Kind(enum.StrEnum):
    """What a value must be; the value is the words of the error."""

    PATH = "a path"
    TEXT = "a text"
    ZONE = "a time zone such as Europe/Berlin"
    DAY = "a day as YYYY-MM-DD"
    COUNT = "a whole number, 0 or more"
    PORT = "a port from 1 to 65535"
    SHARE = "a number from 0 to 1"
    SWITCH = "a switch: 1 or 0, true or false, yes or no, on or off"


Value = str | int | float | bool | Path | None


@dataclass(frozen=True)
class Setting:
    """One setting. `default` is as the owner would write it; None means not set."""

    name: str
    variable: str
    kind: Kind
    default: str | int | float | bool | None
    doc: str
    in_file: bool = True


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "home",
        HOME_VARIABLE,
        Kind.PATH,
        "~/.everest",
        "Where this memory lives; in a checkout its data folder. A variable only.",
        in_file=False,
    ),
    Setting(
        "claude_dir",
        "EVEREST_CLAUDE_DIR",
        Kind.PATH,
        "~/.claude",
        "Claude Code's folder; transcripts are read from its projects folder.",
    ),
    Setting(
        "codex_dir",
        "EVEREST_CODEX_DIR",
        Kind.PATH,
        "~/.codex",
        "Codex's folder; rollouts are read from its sessions and archived_sessions folders.",
    ),
    Setting(
        "copilot_dir",
        "EVEREST_COPILOT_DIR",
        Kind.PATH,
        "~/.copilot",
        "Copilot CLI's folder; event logs are read from its session-state folder.",
    ),
    Setting(
        "gemini_dir",
        "EVEREST_GEMINI_DIR",
        Kind.PATH,
        "~/.gemini",
        "Gemini CLI's folder; chats are read from its tmp folder.",
    ),
    Setting(
        "chats_dir",
        "EVEREST_CHATS_DIR",
        Kind.PATH,
        None,
        "A folder of exported chats and message arrays, read with all below it; none by default.",
    ),
    Setting(
        "inbox",
        "EVEREST_INBOX",
        Kind.PATH,
        "$EVEREST_HOME/inbox",
        "Where programs drop files of events; what they say becomes notes of an agent.",
    ),
    Setting(
        "tz",
        "EVEREST_TZ",
        Kind.ZONE,
        None,
        "The zone that days are counted in; read at first run, the machine's by default.",
    ),
    Setting(
        "start",
        "EVEREST_START",
        Kind.DAY,
        "2022-11-01",
        "The first day; read at first run. An earlier time is taken for a mistake.",
    ),
    Setting(
        "raw_days",
        "EVEREST_RAW_DAYS",
        Kind.COUNT,
        90,
        "Days that redacted raw lines are kept; 0 keeps none.",
    ),
    Setting(
        "render",
        "EVEREST_RENDER",
        Kind.SWITCH,
        False,
        "Whether lessons are written into the agents' own folders.",
    ),
    Setting(
        "off",
        OFF_VARIABLE,
        Kind.SWITCH,
        False,
        "Silences the hooks and MCP answers to come.",
    ),
    Setting(
        "holdout",
        NUMBERS["holdout"][0],
        Kind.SHARE,
        NUMBERS["holdout"][1],
        "Share of sessions in which hooks show nothing, to measure their effect.",
    ),
    Setting(
        "withhold",
        NUMBERS["withhold"][0],
        Kind.SHARE,
        NUMBERS["withhold"][1],
        "Share of unpinned lessons left out of everything for a week, to measure the whole.",
    ),
    Setting(
        "budget",
        NUMBERS["budget"][0],
        Kind.COUNT,
        NUMBERS["budget"][1],
        "Tokens that one answer of a hook may take; a lesson fits whole or stays out.",
    ),
    Setting(
        "embed_model",
        "EVEREST_EMBED_MODEL",
        Kind.TEXT,
        None,
        "What embeds: hashed (the default), wordllama, minilm or ollama:NAME.",
    ),
    Setting(
        "write_model",
        "EVEREST_WRITE_MODEL",
        Kind.TEXT,
        None,
        "What words lessons besides: ollama:NAME or openai:NAME; none by default.",
    ),
    Setting(
        "ollama_host",
        "EVEREST_OLLAMA_HOST",
        Kind.TEXT,
        "http://127.0.0.1:11434",
        "Where Ollama answers. Transcripts' words are sent there, and only there, if asked.",
    ),
    Setting(
        "openai_url",
        "EVEREST_OPENAI_URL",
        Kind.TEXT,
        None,
        "Base of an OpenAI-compatible server, such as http://127.0.0.1:8080/v1.",
    ),
    Setting(
        "model_minutes",
        "EVEREST_MODEL_MINUTES",
        Kind.COUNT,
        20,
        "Minutes a night that the writing model may take; the rest waits for the next.",
    ),
    Setting(
        "ingest_minutes",
        "EVEREST_INGEST_MINUTES",
        Kind.COUNT,
        15,
        "Minutes between two looks of the daemon for new transcripts.",
    ),
    Setting(
        "quiet_seconds",
        "EVEREST_QUIET_SECONDS",
        Kind.COUNT,
        120,
        "Seconds that a transcript must rest before the daemon reads it.",
    ),
    Setting("port", "EVEREST_PORT", Kind.PORT, 3000, "Port of the UI on the loopback address."),
)

_BY_NAME = {setting.name: setting for setting in SETTINGS}
_BY_VARIABLE = {setting.variable: setting for setting in SETTINGS}


@dataclass(frozen=True)
class Settings:
    """The settings in force. Paths are absolute. `sources`: name -> variable or file:line."""

    claude_dir: Path
    codex_dir: Path
    copilot_dir: Path
    gemini_dir: Path
    chats_dir: Path | None
    inbox: Path
    tz: str | None
    start: str
    raw_days: int
    render: bool
    off: bool
    holdout: float
    withhold: float
    budget: int
    embed_model: str | None
    write_model: str | None
    ollama_host: str
    openai_url: str | None
    model_minutes: int
    ingest_minutes: int
    quiet_seconds: int
    port: int
    sources: Mapping[str, str]

    def given(self, name: str) -> bool:
        """Whether the owner set it, rather than the default."""
        return name in self.sources


def load(environ: Mapping[str, str], config_path: Path) -> Settings:
    """Read variables and `config_path` (which may be absent); variables win, empty ones count not.

    Raises SettingsError for an unknown key or EVEREST_ variable, naming the nearest valid one, and
    for a value that does not fit, naming the file and line or the variable.
    """
    settings, problems = _read(environ, config_path)
    if problems:
        raise problems[0]
    return settings


def load_lenient(environ: Mapping[str, str], config_path: Path) -> tuple[Settings, list[str]]:
    """As `load`, for hooks: what is wrong is ignored and returned as sentences. Never raises."""
    settings, problems = _read(environ, config_path)
    return settings, [problem.message for problem in problems]


def _read(environ: Mapping[str, str], config_path: Path) -> tuple[Settings, list[SettingsError]]:
    problems: list[SettingsError] = []
    values: dict[str, Value] = {}
    sources: dict[str, str] = {}
    for setting in SETTINGS:
        if setting.in_file:
            values[setting.name] = _default(setting, environ, config_path)
    file_values, text = _parse_file(config_path, problems)
    for key, raw in file_values.items():
        where = f"{config_path}:{_line_of(key, text)}"
        setting = _BY_NAME.get(key)
        if setting is None:
            problems.append(_unknown(where, "key", key, [s.name for s in SETTINGS if s.in_file]))
        elif not setting.in_file:
            problems.append(
                SettingsError(
                    f"{where}: {key} cannot be set in the file, only by {setting.variable}."
                )
            )
        else:
            _take(setting, raw, where, environ, config_path.parent, values, sources, problems)
    for variable in sorted(name for name in environ if name.startswith(PREFIX)):
        setting = _BY_VARIABLE.get(variable)
        if setting is None:
            if variable not in KNOWN_VARIABLES:
                problems.append(_unknown(variable, "variable", variable, list(_BY_VARIABLE)))
        elif setting.in_file and environ[variable].strip():
            _take(setting, environ[variable], variable, environ, None, values, sources, problems)
    fitting: dict[str, Any] = dict(values)
    return Settings(**fitting, sources=sources), problems


def _default(setting: Setting, environ: Mapping[str, str], config_path: Path) -> Value:
    if setting.name == "inbox":
        return Home(config_path.parent).inbox
    if setting.kind is Kind.PATH and setting.default is not None:
        return absolute_path(str(setting.default), environ)
    return setting.default


def _take(
    setting: Setting,
    raw: object,
    where: str,
    environ: Mapping[str, str],
    base: Path | None,
    values: dict[str, Value],
    sources: dict[str, str],
    problems: list[SettingsError],
) -> None:
    value = _fit(setting.kind, raw, environ, base)
    if value is None:
        name = "" if where == setting.variable else f" {setting.name}"
        problems.append(SettingsError(f"{where}:{name} must be {setting.kind}, not {raw!r}."))
    else:
        values[setting.name] = value
        sources[setting.name] = where


def _fit(kind: Kind, raw: object, environ: Mapping[str, str], base: Path | None) -> Value:
    """`raw` as a value of `kind`, or None when it does not fit."""
    if isinstance(raw, dt.date) and not isinstance(raw, dt.datetime) and kind is Kind.DAY:
        return raw.isoformat()
    if kind is Kind.SWITCH and isinstance(raw, bool):
        return raw
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        return None
    text = str(raw).strip()
    if kind in (Kind.COUNT, Kind.PORT):
        return _fit_count(kind, text)
    if kind is Kind.SHARE:
        return _fit_share(text)
    if kind is Kind.SWITCH:
        folded = text.casefold()
        return True if folded in _YES else False if folded in _NO else None
    if not isinstance(raw, str) or not text or "\0" in text:
        return None
    if kind is Kind.PATH:
        return absolute_path(text, environ, base)
    if kind is Kind.DAY:
        return _fit_day(text)
    if kind is Kind.ZONE:
        return text if _is_zone(text) else None
    return text


def _fit_count(kind: Kind, text: str) -> int | None:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        return None
    count = int(text)
    return None if kind is Kind.PORT and not 1 <= count <= 65535 else count


def _fit_share(text: str) -> float | None:
    try:
        share = float(text)
    except ValueError:
        return None
    return share if math.isfinite(share) and 0 <= share <= 1 else None


def _fit_day(text: str) -> str | None:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return None
    try:
        return dt.date.fromisoformat(text).isoformat()
    except ValueError:
        return None


def _is_zone(text: str) -> bool:
    import zoneinfo

    try:
        zoneinfo.ZoneInfo(text)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _parse_file(path: Path, problems: list[SettingsError]) -> tuple[dict[str, Any], str]:
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return {}, ""
    except (OSError, UnicodeDecodeError) as error:
        problems.append(SettingsError(f"{path}: cannot be read: {error}."))
        return {}, ""
    import tomllib

    try:
        return tomllib.loads(text), text
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        where = f"{path}:{line.group(1)}" if line else str(path)
        problems.append(SettingsError(f"{where}: is not TOML: {error}."))
        return {}, ""


def _line_of(key: str, text: str) -> int:
    pattern = re.compile(rf"^\s*(?:\[+\s*)?[\"']?{re.escape(key)}[\"']?\s*[.=\]]", re.MULTILINE)
    found = pattern.search(text)
    if not found:
        return 1
    return text.count("\n", 0, found.start() + len(found[0]) - len(found[0].lstrip())) + 1


def _unknown(where: str, what: str, name: str, valid: list[str]) -> SettingsError:
    nearest = difflib.get_close_matches(name, valid, n=1, cutoff=0.0)
    shown = where if where == name else f"{where}: {name}"
    return SettingsError(f"{shown} is no {what} of Everest; did you mean {nearest[0]}?")
