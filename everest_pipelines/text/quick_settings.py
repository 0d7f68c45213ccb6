"""The settings that a hook needs, read without a TOML parser where the file is plain."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

OFF_VARIABLE = "EVEREST_OFF"
MEANS_NO = frozenset({"", "0", "false", "no", "off"})
# Name -> (variable, default). The registry of all settings takes its defaults from here.
NUMBERS: dict[str, tuple[str, float]] = {
    "holdout": ("EVEREST_HOLDOUT", 0.5),
    "withhold": ("EVEREST_WITHHOLD", 0.0),
    "budget": ("EVEREST_BUDGET", 600),
}


def silenced(environ: Mapping[str, str]) -> bool:
    """Whether the environment asks for silence. A value that nobody understands does."""
    return environ.get(OFF_VARIABLE, "").strip().lower() not in MEANS_NO


def numbers(environ: Mapping[str, str], config: str, path: str) -> dict[str, float]:
    """`NUMBERS` as they are in force; what does not fit is ignored, as hooks ignore it.

    `config` is the text of config.toml at `path`.
    """
    found = {name: default for name, (_, default) in NUMBERS.items()}
    if any(name in config for name in NUMBERS):
        plain = _plain(config)
        if plain is None:
            return _parsed(environ, path)
        for name, text in plain.items():
            _take(found, name, text)
    for name, (variable, _) in NUMBERS.items():
        if environ.get(variable, "").strip():
            _take(found, name, environ[variable].strip())
    return found


def _plain(config: str) -> dict[str, str] | None:
    """Our keys, when they stand as ``name = number`` before any table; None: a parser must look."""
    if '"""' in config or "'''" in config or "\\" in config:
        return None
    found: dict[str, str] = {}
    for line in config.split("\n"):
        line = line.strip()
        if line.startswith("[") and not line.startswith("[["):
            return None if any(name in line for name in NUMBERS) else found
        if not any(name in line for name in NUMBERS) or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        name, value = name.strip(), value.partition("#")[0].strip()
        if not equals or name not in NUMBERS or not value.replace(".", "", 1).isdecimal():
            return None
        found[name] = value
    return found


def _take(found: dict[str, float], name: str, text: str) -> None:
    try:
        value = float(text)
    except ValueError:
        return
    if name == "budget":
        if value == int(value) >= 0:
            found[name] = int(value)
    elif 0 <= value <= 1:
        found[name] = value


def _parsed(environ: Mapping[str, str], path: str) -> dict[str, float]:
    from pathlib import Path

    from everest_pipelines.text.settings import load_lenient

    settings, _ = load_lenient(environ, Path(path))
    return {name: getattr(settings, name) for name in NUMBERS}
