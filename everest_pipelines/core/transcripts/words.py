"""Whose words? What a user record's text is, with the harness's wrappers cut away."""

from __future__ import annotations

import re

from msgspec import Struct

from everest_pipelines.core.records import Channel, Role
from everest_pipelines.core.transcripts.wire import Block

# Parts that the harness sets before (or behind) the person's words in the same record.
_WRAPPERS = "system-reminder|ide_opened_file|ide_selection|ide_diagnostics|local-command-caveat"
_LEADING = re.compile(rf"\s*<({_WRAPPERS})>.*?</\1>\s*", re.DOTALL)
_COMMAND = re.compile(
    r"(?:<command-(name|message|args|contents)>.*?</command-\1>\s*)+",
    re.DOTALL,
)
_COMMAND_NAME = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
_COMMAND_ARGS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_BASH = re.compile(r"<bash-input>(.*?)</bash-input>", re.DOTALL)
_MEMORY = re.compile(r"<user-memory-input>(.*?)</user-memory-input>", re.DOTALL)
_TYPED_COMMAND = re.compile(r"/([\w:.-]+)(?:\s+|\Z)")

_HOOK_NOTE = re.compile(r"(?:Running )?\x1b\[1m[A-Z]\w+(?::[\w.-]+)?\x1b\[22m")

_INTERRUPTED = "[Request interrupted by user"
_PLAN = "Implement the following plan:"
# Beginnings of texts that no person typed, and the channel of their turn.
_HARNESS: tuple[tuple[str, Channel], ...] = (
    (_INTERRUPTED, Channel.INTERRUPTION),
    ("Operation stopped by hook", Channel.HOOK),
    ("Stop hook feedback:", Channel.HOOK),
    ("<user-prompt-submit-hook>", Channel.HOOK),
    ("This session is being continued", Channel.COMPACTION),
    ("<task-notification>", Channel.NOTIFICATION),
    ("<agent-notification>", Channel.NOTIFICATION),
    ("<teammate-message", Channel.NOTIFICATION),
    ("<bash-notification>", Channel.NOTIFICATION),
    ("<scheduled-task ", Channel.MACHINE),
    ("<local-command-stdout>", Channel.OTHER),
    ("<local-command-stderr>", Channel.OTHER),
    ("<local-command-caveat>", Channel.OTHER),
    ("<bash-stdout>", Channel.OTHER),
    ("<bash-stderr>", Channel.OTHER),
    ("<system-reminder>", Channel.OTHER),
    ("<ide_opened_file>", Channel.OTHER),
    ("<ide_selection>", Channel.OTHER),
    ("<command-name>", Channel.OTHER),  # a torn wrapper; whole ones are read as commands
    ("<command-message>", Channel.OTHER),
    ("Caveat: The messages below", Channel.OTHER),
    ("[Image: original", Channel.OTHER),
    ("[Image: source", Channel.OTHER),
)


class Words(Struct, frozen=True):
    """The text of a user record and whose it is."""

    role: Role
    channel: Channel
    text: str
    flags: tuple[str, ...] = ()


def is_interruption(text: str) -> bool:
    return text.startswith(_INTERRUPTED)


def is_hook_note(text: str) -> bool:
    """Whether a system note tells of a hook (CLI 1.0: "Running PostToolUse:Edit", in bold)."""
    return _HOOK_NOTE.match(text) is not None


def strip_wrappers(text: str) -> str:
    """The text without the harness's parts around it; empty when nothing else is there."""
    while found := _LEADING.match(text):
        text = text[found.end() :]
    text = text.strip()
    while text.endswith("</system-reminder>"):
        text = text[: max(text.rfind("<system-reminder>"), 0)].rstrip()
    return text


def text_of_blocks(content: str | list[Block | str] | None) -> str:
    """The text blocks of a message, one below the other; blocks that are wrappers left out."""
    if content is None or isinstance(content, str):
        return content or ""
    texts: list[str] = []
    for block in content:
        text = block if isinstance(block, str) else (block.text if block.type == "text" else None)
        if text:
            texts.append(text)
    if len(texts) > 1:
        texts = [text for text in texts if strip_wrappers(text)] or texts
    return "\n".join(texts)


def image_count(content: str | list[Block | str] | None) -> int:
    if not isinstance(content, list):
        return 0
    return sum(isinstance(block, Block) and block.type == "image" for block in content)


def read_words(raw: str, *, person: bool, plan: bool) -> Words:
    """Classify the text of a record of the main thread that is neither meta nor a summary.

    ``person``: the record itself says that a person typed it; ``plan``: it carries a plan.
    """
    text = strip_wrappers(raw)
    if not text:
        return Words(Role.HARNESS, Channel.OTHER, raw.strip())
    if text.startswith("<command-") and (command := _COMMAND.match(text)):
        return _command(text, command)
    if text.startswith("<bash-input>") and (bash := _BASH.match(text)):
        return Words(Role.HUMAN, Channel.BASH, bash.group(1).strip())
    if text.startswith("<user-memory-input>") and (memory := _MEMORY.match(text)):
        return Words(Role.HUMAN, Channel.PROMPT, memory.group(1).strip(), ("memory",))
    if text.startswith(_PLAN) and (plan or text.startswith(_PLAN + "\n\n")):
        return Words(Role.HARNESS, Channel.PLAN, text)
    if text[:1] in "<[SOCT":
        for beginning, channel in _HARNESS:
            if text.startswith(beginning) and not (person and beginning[0] not in "<["):
                return Words(Role.HARNESS, channel, text)
    return Words(Role.HUMAN, Channel.PROMPT, text)


def _command(text: str, command: re.Match[str]) -> Words:
    whole = command.group(0)
    name = _COMMAND_NAME.search(whole)
    args = _COMMAND_ARGS.search(whole)
    said = args.group(1).strip() if args else ""
    rest = strip_wrappers(text[command.end() :])
    if rest and not any(rest.startswith(beginning) for beginning, _ in _HARNESS):
        said = f"{said}\n{rest}".strip()  # words typed behind the wrapper
    flag = (f"command:{name.group(1).strip().lstrip('/')}",) if name else ()
    if said:
        return Words(Role.HUMAN, Channel.COMMAND, said, flag)
    return Words(Role.HARNESS, Channel.OTHER, name.group(1).strip() if name else text, flag)


def read_queued(raw: str) -> Words:
    """Classify what was typed (or reported) while the agent worked."""
    text = strip_wrappers(raw)
    if not text:
        return Words(Role.HARNESS, Channel.OTHER, raw.strip())
    if text.startswith("{") and '"task_id"' in text[:200]:
        return Words(Role.HARNESS, Channel.NOTIFICATION, text)
    command = _TYPED_COMMAND.match(text)
    if command and command.end() == len(text):
        return Words(Role.HARNESS, Channel.OTHER, text, (f"command:{command.group(1)}",))
    words = read_words(text, person=False, plan=False)
    if words.role is Role.HUMAN and words.channel is not Channel.BASH:
        flags = (f"command:{command.group(1)}",) if command else words.flags
        return Words(Role.HUMAN, Channel.QUEUED, words.text, flags)
    return words
