"""The formats that can be read; adding one is one line here and one reader."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Protocol

from msgspec import Struct

from everest_pipelines.core.records import Micros
from everest_pipelines.core.transcripts import (
    chatgpt,
    claude,
    claude_ai,
    codex,
    copilot,
    events,
    gemini,
    messages,
    takeout,
)
from everest_pipelines.core.transcripts.lines import Redact, Sink, Suspects, unredacted
from everest_pipelines.core.transcripts.reading import Reading

HEAD_BYTES = 64 * 1024  # what a caller should offer to ``format_of``
LINES = ("**/*.jsonl",)
DOCUMENTS = ("**/*.json", "**/*.jsonl")
# What lies beside the conversations of an export and holds none; by name, since anything may.
BESIDE = frozenset(
    [
        "user.json",
        "users.json",
        "user_settings.json",
        "projects.json",
        "memories.json",
        "message_feedback.json",
        "model_comparisons.json",
        "shared_conversations.json",
        "group_chats.json",
        "shopping.json",
        "sora.json",
        "export_manifest.json",
    ]
)


class Reader(Protocol):
    """Reads a whole file; see ``claude.read``."""

    def __call__(
        self,
        blocks: Iterable[bytes],
        *,
        path: str,
        start: Micros,
        redact: Redact = unredacted,
        suspects: Suspects | None = None,
        sink: Sink | None = None,
    ) -> Reading: ...


class Format(Struct, frozen=True):
    """A file format of an agent, where its files lie, and who reads them."""

    name: str
    agent: str  # what stands in a turn's ``agent``
    root: str  # the setting that names the watched directory; several formats may share one
    globs: tuple[str, ...]  # below that directory, each ``folder/**/pattern`` or ``**/pattern``
    recognises: Callable[[bytes, str], bool]  # by the file's beginning, not by its name
    read: Reader
    words: tuple[str, ...] = ()  # field names that its files are full of, for the nearest guess
    undated: bool = False  # no times inside: the file's own is given to the reader as ``start``


# The first that recognises a file reads it: one whose marks are the narrower stands before.
FORMATS: tuple[Format, ...] = (
    Format(
        name="gemini-cli",
        agent=gemini.NAME,
        root="gemini_dir",
        globs=("tmp/**/session-*.json", "tmp/**/session-*.jsonl"),
        recognises=gemini.recognises,
        read=gemini.read,
        words=("sessionId", "projectHash", "startTime", "lastUpdated", "toolCalls", "thoughts"),
    ),
    Format(
        name="claude-code",
        agent=claude.NAME,
        root="claude_dir",
        globs=("projects/**/*.jsonl",),
        recognises=claude.recognises,
        read=claude.read,
        words=("sessionId", "parentUuid", "uuid", "isSidechain", "userType", "leafUuid"),
    ),
    Format(
        name="codex",
        agent=codex.NAME,
        root="codex_dir",
        globs=(
            "sessions/**/rollout-*.jsonl",
            "sessions/**/rollout-*.jsonl.zst",
            "archived_sessions/**/rollout-*.jsonl",
            "archived_sessions/**/rollout-*.jsonl.zst",
        ),
        recognises=codex.recognises,
        read=codex.read,
        words=("payload", "session_meta", "response_item", "timestamp", "originator", "call_id"),
    ),
    Format(
        name="copilot",
        agent=copilot.NAME,
        root="copilot_dir",
        globs=("session-state/**/events.jsonl",),
        recognises=copilot.recognises,
        read=copilot.read,
        words=("data", "parentId", "timestamp", "type", "id", "toolCallId", "interactionId"),
    ),
    Format(
        name="chatgpt",
        agent=chatgpt.NAME,
        root="chats_dir",
        globs=DOCUMENTS,
        recognises=chatgpt.recognises,
        read=chatgpt.read,
        words=("mapping", "current_node", "children", "conversation_id", "content_type", "author"),
    ),
    Format(
        name="claude-ai",
        agent=claude_ai.NAME,
        root="chats_dir",
        globs=DOCUMENTS,
        recognises=claude_ai.recognises,
        read=claude_ai.read,
        words=("chat_messages", "sender", "uuid", "account", "attachments", "created_at"),
    ),
    Format(
        name="gemini-takeout",
        agent=takeout.NAME,
        root="chats_dir",
        globs=DOCUMENTS,
        recognises=takeout.recognises,
        read=takeout.read,
        words=("header", "title", "time", "products", "safeHtmlItem", "activityControls"),
    ),
    *(
        Format(
            name=name,
            agent=name,
            root="chats_dir",
            globs=DOCUMENTS,
            recognises=messages.recognises(name),
            read=messages.reader(name),
            words=words,
            undated=True,
        )
        for name, words in (
            (messages.GEMINI, ("contents", "parts", "functionCall", "role", "generationConfig")),
            (messages.ANTHROPIC, ("role", "content", "tool_use", "tool_result", "system")),
            (messages.OPENAI, ("role", "content", "tool_calls", "tool_call_id", "messages")),
        )
    ),
    Format(
        name="everest-events",
        agent="",  # every event names its own
        root="inbox",
        globs=LINES,
        recognises=events.recognises,
        read=events.read,
        words=("project", "text", "kind", "occurred_at", "agent"),
    ),
)

_FIELD = re.compile(rb'"([A-Za-z_$][\w$.-]{0,40})"\s*:')


def format_of(head: bytes, path: str) -> Format | None:
    """The format whose records a file begins with, or None. An empty file has no format."""
    return next((one for one in FORMATS if one.recognises(head, path)), None)


def nearest(head: bytes) -> tuple[Format | None, list[str]]:
    """For a file of no known format: the one whose field names it shares most, and those names."""
    seen = {name.decode() for name in _FIELD.findall(head)}
    shared = [(sorted(seen.intersection(one.words)), one) for one in FORMATS]
    best = max(shared, key=lambda pair: len(pair[0]) / max(len(pair[1].words), 1))
    return (best[1], best[0]) if len(best[0]) > 1 else (None, [])
