"""Sessions that no person led: prompts of programs that look like a person's."""

from __future__ import annotations

import re

# Prompts of memory tools that call the agent for their own work (their sessions land among the
# person's). Beginnings only: the same words inside a person's turn mean nothing.
_MEMORY_TOOLS = (
    "Summarize this part of a conversation",
    "Please write a concise, factual summary of this conversation",
    "Context: This summary will be shown in a list to help users and Claude choose",
    "You are a Claude-Mem",
    "Hello memory agent",
    "You are an expert at analyzing Claude Code sessions",
)
_OWN_PLACE = re.compile(r"(?:^|[/\\])\.everest(?:[/\\]|$)")


def is_own_place(cwd: str) -> bool:
    """Whether a working directory lies under this product's own folder."""
    return _OWN_PLACE.search(cwd) is not None


def is_memory_prompt(text: str) -> bool:
    """Whether a prompt is one that a memory tool sends for its own work."""
    return text.startswith(_MEMORY_TOOLS)
