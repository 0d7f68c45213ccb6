"""Whose words? Texts in the user's role, with what Codex itself puts there cut away."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from everest_pipelines.core.records import Channel, Role
from everest_pipelines.core.transcripts.words import Words

# Codex tells the model these things in the user's role: each in a tag of its own.
_TAGS = (
    "environment_context|user_instructions|INSTRUCTIONS|skill|skills_instructions|turn_aborted|"
    "subagent_notification|user_action|hook_prompt|goal_context|model_switch|personality_spec|"
    "collaboration_mode|permissions[ _]instructions|apps_instructions|plugins_instructions|"
    "recommended_plugins|exec_policy_amendment|multi_agent_mode|system-reminder|token_budget|"
    "realtime_conversation|memory_context|legacy_warning|warning|environments"
)
_WHOLE_TAG = re.compile(rf"\s*<({_TAGS})\b[^>]*>.*?</\1>\s*", re.DOTALL)
_OPEN_TAG = re.compile(rf"\s*<(?:{_TAGS})\b[^>]*>")
_ANY_TAG = re.compile(r"\s*<([A-Za-z][\w:-]*(?: instructions)?)\b[^>]*>.*</\1>\s*\Z", re.DOTALL)
_AGENTS_FILE = re.compile(r"\s*# AGENTS\.md instructions\b.*?(?:</INSTRUCTIONS>\s*|\Z)", re.DOTALL)
_HEADINGS = ("# Context from my IDE setup:", "# Files mentioned by the user:", "# Context:")
_REQUEST = re.compile(r"^#{1,3} My request for Codex:?[ \t]*\n?", re.MULTILINE)
_SHELL = re.compile(r"\s*<user_shell_command>\s*<command>\s*(.*?)\s*</command>", re.DOTALL)
_IMAGE = re.compile(r"\s*</?image(?: name=[^>]*)?>\s*\Z")
_AUTOMATION = re.compile(r"Automation: [^\n]*\nAutomation ID: ")  # what a schedule sends
_SUMMARY = "Another language model started to solve this problem and produced a summary"
_CWD = (
    re.compile(r"<cwd>\s*(.*?)\s*</cwd>", re.DOTALL),
    re.compile(r"^\s*Current working directory:\s*(.+?)\s*$", re.MULTILINE),
)


def person_text(text: str) -> str:
    """The text without the parts that Codex set before the person's words; perhaps empty."""
    while found := _WHOLE_TAG.match(text) or _AGENTS_FILE.match(text):
        text = text[found.end() :]
    if text.lstrip().startswith(_HEADINGS):  # what an editor says of its open files
        request = _REQUEST.search(text)
        text = text[request.end() :] if request else ""
    return text.strip()


def read_words(texts: Sequence[str]) -> Words:
    """Classify the blocks of one message in the user's role."""
    texts = [text for text in texts if not _IMAGE.match(text)]
    whole = "\n".join(texts).strip()
    if (shell := _SHELL.match(whole)) is not None:
        return Words(Role.HUMAN, Channel.BASH, shell.group(1))
    if _AUTOMATION.match(whole):
        return Words(Role.HARNESS, Channel.MACHINE, whole)
    if whole.startswith(_SUMMARY):
        return Words(Role.HARNESS, Channel.COMPACTION, whole)
    kept = [said for text in texts if (said := person_text(text))]
    said = "\n".join(kept)
    if said and not _OPEN_TAG.match(said):
        return Words(Role.HUMAN, Channel.PROMPT, said)
    if whole.startswith("<turn_aborted"):
        return Words(Role.HARNESS, Channel.INTERRUPTION, whole)
    if whole.startswith("<hook_prompt"):
        return Words(Role.HARNESS, Channel.HOOK, whole)
    if whole.startswith("<subagent_notification"):
        return Words(Role.HARNESS, Channel.NOTIFICATION, whole)
    return Words(Role.HARNESS, Channel.OTHER, whole)


def is_tagged(text: str) -> bool:
    """Whether a text is one element of a markup, as only programs write where no event tells."""
    return _ANY_TAG.match(text) is not None


def cwd_in(text: str) -> str:
    """The working directory that an environment's description names, in any of its versions."""
    if "<environment_context>" not in text:
        return ""
    return next((found.group(1) for form in _CWD if (found := form.search(text))), "")


def texts_of(content: Any) -> list[str]:
    """The texts of a message's blocks, whatever case their types are written in."""
    if isinstance(content, str):
        return [content]
    texts: list[str] = []
    for block in cast("list[Any]", content) if isinstance(content, list) else ():
        if isinstance(block, str):
            texts.append(block)
        elif isinstance(block, dict):
            text = cast("dict[str, Any]", block).get("text")
            if isinstance(text, str):
                texts.append(text)
    return texts


def image_count(content: Any) -> int:
    """How many pictures a message's blocks hold."""
    if not isinstance(content, list):
        return 0
    blocks = cast("list[Any]", content)
    return sum(
        isinstance(block, dict)
        and "image" in str(cast("dict[str, Any]", block).get("type", "")).lower()
        for block in blocks
    )
