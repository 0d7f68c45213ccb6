"""Where each agent keeps its settings, and what we put there: one table."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from everest_pipelines.recall import bundle
from everest_pipelines.text.home import HOME_VARIABLE, Home
from everest_pipelines.text.settings import Settings

NAME = "everest"  # of our MCP server
# Tools whose calls may meet an error that we know; reading and listing seldom fail twice.
TOOLS = "Bash|Edit|Write|NotebookEdit|mcp__.*"
TIMEOUT = 2  # seconds after which the agent gives up on a hook; it leaves after 0.8 itself


class Form(StrEnum):
    """How a settings file is written."""

    JSON = "json"
    JSONC = "jsonc"
    TOML = "toml"


@dataclass(frozen=True)
class Place:
    """One file of one agent, and the key below which our entry stands (-1: at the list's end)."""

    agent: str
    what: str  # hooks or mcp
    file: Path
    form: Form
    key: tuple[str | int, ...]
    value: Any


@dataclass(frozen=True)
class Agent:
    """An agent that can be set up. `folder` exists where the agent is installed."""

    name: str
    words: str
    folder: Path
    places: tuple[Place, ...]


def agents(home: Home, settings: Settings, environ: Mapping[str, str]) -> dict[str, Agent]:
    """Every agent that we know, by name; `environ` gives HOME and XDG_CONFIG_HOME."""
    person = Path(environ.get("HOME") or Path("~").expanduser())
    claude = settings.claude_dir
    # With a folder of its own (CLAUDE_CONFIG_DIR) Claude Code keeps this file in it.
    claude_state = (person if claude == person / ".claude" else claude) / ".claude.json"
    server = mcp_server(home)
    typed = {"type": "stdio", **server}
    mcp = ("mcpServers", NAME)

    def one(name: str, words: str, file: Path, form: Form, value: Any, key: Any = mcp) -> Agent:
        return Agent(name, words, file.parent, (Place(name, "mcp", file, form, key, value),))

    desktop = _claude_desktop(person, environ) / "claude_desktop_config.json"
    windsurf = person / ".codeium" / "windsurf" / "mcp_config.json"
    copilot = settings.copilot_dir / "mcp-config.json"
    found = [
        Agent(
            "claude",
            "Claude Code",
            claude,
            (
                *hook_places(home, claude / "settings.json"),
                Place("claude", "mcp", claude_state, Form.JSON, mcp, typed),
            ),
        ),
        one("codex", "Codex CLI", settings.codex_dir / "config.toml", Form.TOML, server,
            ("mcp_servers", NAME)),
        one("claude-desktop", "Claude Desktop", desktop, Form.JSON, server),
        one("cursor", "Cursor", person / ".cursor" / "mcp.json", Form.JSONC, server),
        one("windsurf", "Windsurf", windsurf, Form.JSON, server),
        one("gemini", "Gemini CLI", settings.gemini_dir / "settings.json", Form.JSONC, server),
        one("copilot", "Copilot CLI", copilot, Form.JSON,
            {"type": "local", **server, "tools": ["*"]}),
    ]  # fmt: skip
    return {agent.name: agent for agent in found}


def hook_places(home: Home, file: Path) -> tuple[Place, ...]:
    """Our three hooks in Claude Code's settings."""
    hook = {"type": "command", "command": bundle.command(home.root), "timeout": TIMEOUT}
    plain: dict[str, Any] = {"hooks": [hook]}
    return tuple(
        Place("claude", "hooks", file, Form.JSON, ("hooks", event, -1), value)
        for event, value in (
            ("UserPromptSubmit", plain),
            ("Stop", plain),
            ("PreToolUse", {"matcher": TOOLS, **plain}),
        )
    )


def mcp_server(home: Home) -> dict[str, Any]:
    """How an agent starts our MCP server: by full path, for agents start with another PATH."""
    script = Path(sys.executable).with_name("everest")
    if script.exists():
        return {"command": str(script), "args": ["serve"], "env": {HOME_VARIABLE: str(home.root)}}
    return {
        "command": sys.executable,
        "args": ["-m", "everest_pipelines.cli.main", "serve"],
        "env": {HOME_VARIABLE: str(home.root)},
    }


def is_ours(value: Any) -> bool:
    """Whether a hook or a server in somebody's settings is one that we wrote, of any version."""
    if not isinstance(value, dict):
        return False
    hooks = value.get("hooks")
    if isinstance(hooks, list):
        return bool(hooks) and all(
            isinstance(one, dict) and "/hooks/prime.py" in str(one.get("command")) for one in hooks
        )
    arguments = value.get("args")
    return (
        isinstance(arguments, list)
        and arguments[-1:] == ["serve"]
        and ("everest" in str(value.get("command")) or "everest_pipelines.cli.main" in arguments)
    )


def _claude_desktop(person: Path, environ: Mapping[str, str]) -> Path:
    if sys.platform == "darwin":
        return person / "Library" / "Application Support" / "Claude"
    if os.name == "nt":
        return Path(environ.get("APPDATA", person / "AppData" / "Roaming")) / "Claude"
    return Path(environ.get("XDG_CONFIG_HOME") or person / ".config") / "Claude"
