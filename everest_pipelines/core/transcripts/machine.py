"""Sessions that no person led: prompts of programs that look like a person's.

A replayed plan, a scheduled prompt and the notices of a harness are told in ``words``; here are
whole sessions: our own model calls, memory tools at work for themselves, runs in CI or by a script.
"""

from __future__ import annotations

import re

# Prompts of memory tools that call the agent for their own work (their sessions land among the
# person's). Beginnings only: the same words inside a person's turn mean nothing.
_MEMORY_TOOLS = (
    "Summarize this part of a conversation",
    "Please write a concise, factual summary of this conversation",
    "Context: This summary will be shown in a list to help users and Claude choose",
    "You are a Claude-Mem",
    "You are observing an AI coding session",
    "Hello memory agent",
    "You are an expert at analyzing Claude Code sessions",
    "## Memory Writing Agent",
    "You are a Memory Writing Agent",
    "Extract durable facts from the following conversation",
)
# How the prompts of hosted actions begin.
_ACTIONS = (
    "You are Claude, an AI assistant designed to help with GitHub issues and pull requests",
)
# Folders of our own and of memory tools, as a working directory or a part of one.
_OWN_PLACE = re.compile(r"(?:^|[/\\])\.everest(?:[/\\]|$)")
_TOOL_PLACE = re.compile(
    r"(?:^|[/\\])(?:\.claude-mem|observer-sessions|\.mem0|\.letta|\.supermemory|\.cass|\.cognee)"
    r"(?:[/\\]|$)"
)
# Where hosted runners check repositories out; nobody sits there.
_RUNNER_PLACE = re.compile(r"(?:/home/runner/work/|/github/workspace(?:/|$)|D:\\a\\)")
_PROGRAM_ENTRIES = ("sdk", "claude-code-github-action", "github-action", "mcp")


def is_own_place(cwd: str) -> bool:
    """Whether a working directory lies under this product's own folder."""
    return _OWN_PLACE.search(cwd) is not None


def place_of(cwd: str) -> str:
    """Why no person works in a directory (own, memory_tool, runner), or an empty string."""
    if is_own_place(cwd):
        return "own"
    if _TOOL_PLACE.search(cwd):
        return "memory_tool"
    return "runner" if _RUNNER_PLACE.match(cwd) else ""


def prompt_of(text: str) -> str:
    """Why a session's first prompt is a program's (memory_tool, runner), or an empty string."""
    if text.startswith(_MEMORY_TOOLS):
        return "memory_tool"
    return "runner" if text.startswith(_ACTIONS) else ""


def is_program_entry(entrypoint: str) -> bool:
    """Whether an entry point is one that programs come through."""
    return entrypoint.startswith(_PROGRAM_ENTRIES)
