"""The person's side of a file, and the harness's: each place where words can sit.

Prompts, text beside a tool result, the arguments of commands, shell input, messages queued while
the agent worked. (Reasons of refusals come with the results.) A turn's id is its record's id; of
a queue operation, which has none, the digest of its time and text.
"""

from __future__ import annotations

from everest_pipelines.core.records import Channel, Role
from everest_pipelines.core.transcripts import machine, words
from everest_pipelines.core.transcripts.claude_agent import add_result
from everest_pipelines.core.transcripts.claude_known import SILENT_ATTACHMENTS, SILENT_SYSTEM
from everest_pipelines.core.transcripts.claude_session import Session
from everest_pipelines.core.transcripts.draft import Source
from everest_pipelines.core.transcripts.wire import Block, Record, content_of
from everest_pipelines.core.transcripts.words import Words
from everest_pipelines.text.ids import digest


def add_user(session: Session, source: Source) -> None:
    """A user record: tool results, a person's words, or the harness's."""
    record = source.record
    if record.message is None:
        return
    if record.entrypoint and machine.is_program_entry(record.entrypoint):
        session.sdk = True
    body = record.message.content
    if isinstance(body, list):
        results = [block for block in body if isinstance(block, Block) and block.tool_use_id]
        for block in results:
            add_result(session, source, block)
        if results:
            if len(results) < len(body):
                _add_comment(session, source, results[-1].tool_use_id or "")
            return
    if not session.in_ide and b"<ide_" in source.content:
        session.in_ide = True
    text = words.text_of_blocks(body)
    agent = session.agent_of(record)
    said = _words_of(record, text, agent)
    images = words.image_count(body)
    if not said.text:
        if not images or agent or record.isMeta:
            return
        said = Words(Role.HUMAN, Channel.PROMPT, "")  # a picture says it all
    draft = session.open(
        session.record_id(record, said.text),
        source,
        said.role,
        said.channel,
        text=said.text,
        flags=(*said.flags, "image") if images else said.flags,
        agent=agent,
    )
    if draft is None:
        return
    if said.role is Role.HUMAN:
        draft.person = record.origin is not None and record.origin.kind == "human"
        session.person = session.person or draft.person
        if session.prompted is None:
            session.prompted = machine.prompt_of(said.text)
    if not agent:
        session.queue.deliver(draft.turn_id, words.strip_wrappers(text))


def _words_of(record: Record, text: str, agent: str) -> Words:
    kind = record.origin.kind if record.origin is not None else None
    if record.isCompactSummary:
        return Words(Role.HARNESS, Channel.COMPACTION, text)
    said = words.read_words(text, person=kind == "human", plan=bool(record.planContent))
    own_channel = said.channel if said.role is Role.HARNESS else None
    if record.isMeta:
        return Words(Role.HARNESS, own_channel or Channel.OTHER, text, ("meta",))
    if agent:
        return Words(Role.HARNESS, own_channel or Channel.SUBAGENT_PROMPT, text)
    if kind is not None and kind != "human" and said.role is Role.HUMAN:
        return Words(Role.HARNESS, Channel.NOTIFICATION, text, (f"origin:{kind[:40]}",))
    return said


def _add_comment(session: Session, source: Source, call_id: str) -> None:
    """Text beside a tool result: typed by the person while approving the call."""
    record = source.record
    text = words.text_of_blocks(record.message.content if record.message else None)
    if record.isMeta or not words.strip_wrappers(text):
        return
    said = words.read_words(text, person=False, plan=False)
    draft = session.open(
        session.record_id(record, said.text),
        source,
        said.role,
        Channel.COMMENT if said.role is Role.HUMAN else said.channel,
        text=said.text,
        flags=said.flags,
        agent=session.agent_of(record),
    )
    if draft is None:
        return
    found = session.calls.get(call_id)
    draft.up_turn = found[0].turn_id if found else ""
    session.queue.deliver(draft.turn_id, said.text)


def add_queue_operation(session: Session, source: Source) -> None:
    """enqueue brings words; dequeue and remove deliver them; popAll takes them back."""
    record = source.record
    text = words.text_of_blocks(content_of(record.content))
    operation = record.operation
    if operation == "popAll":
        session.queue.take_back()
    elif operation in {"dequeue", "remove"}:
        session.queue.take(words.strip_wrappers(text))
    elif operation == "enqueue" and text.strip():
        said = words.read_queued(text)
        draft = session.open(
            digest(str(record.timestamp), text),
            source,
            said.role,
            said.channel,
            text=said.text,
            flags=(*said.flags, "queued"),
            owns=False,  # the agent has not seen it yet
        )
        if draft is not None:
            draft.up_turn = session.last_main
            person = draft.role is Role.HUMAN
            session.queue.enqueue(draft.turn_id, words.strip_wrappers(text), person=person)


def add_attachment(session: Session, source: Source) -> str:
    """A queued message that was delivered; returns the kind of an unknown attachment."""
    record = source.record
    attachment = record.attachment
    kind = (attachment.type if attachment is not None else None) or ""
    if attachment is None or kind != "queued_command":
        return "" if kind in SILENT_ATTACHMENTS else f"attachment:{kind}"
    text = words.text_of_blocks(attachment.prompt)
    if not text.strip():
        return ""
    said = words.read_queued(text)
    if attachment.commandMode == "task-notification" and said.role is Role.HUMAN:
        said = Words(Role.HARNESS, Channel.NOTIFICATION, text)
    draft = session.open(
        session.record_id(record, text),
        source,
        said.role,
        said.channel,
        text=said.text,
        flags=said.flags,
        agent=session.agent_of(record),
    )
    if draft is not None:
        session.queue.deliver(draft.turn_id, words.strip_wrappers(text))
    return ""


def add_system(session: Session, source: Source) -> None:
    """A note of the harness; newer versions keep slash commands here, with the person's words."""
    record = source.record
    if record.subtype in SILENT_SYSTEM:
        return
    text = words.text_of_blocks(content_of(record.content)).strip()
    if not text:
        return
    said = words.read_words(text, person=False, plan=False)
    if said.channel is not Channel.COMMAND:
        channel = Channel.HOOK if words.is_hook_note(text) else Channel.OTHER
        said = Words(Role.HARNESS, channel, text, said.flags)
    session.open(
        session.record_id(record, text),
        source,
        said.role,
        said.channel,
        text=said.text,
        flags=(*said.flags, f"system:{record.subtype or 'plain'}"),
        agent=session.agent_of(record),
    )
