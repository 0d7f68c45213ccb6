"""The agent's side of a file: answers that stream over many lines, calls, results."""

from __future__ import annotations

from msgspec import structs

from everest_pipelines.core.records import Channel, Role, ToolCall
from everest_pipelines.core.transcripts import words
from everest_pipelines.core.transcripts.caps import TOOL_CAP, byte_size, clip, clip_json
from everest_pipelines.core.transcripts.claude_session import Session
from everest_pipelines.core.transcripts.draft import Draft, Source
from everest_pipelines.core.transcripts.results import Refusal, output_text, refusal_of
from everest_pipelines.core.transcripts.wire import Block, text_of

NO_TEXT = "(no content)"  # the harness's stand-in for an empty answer


def add_assistant(session: Session, source: Source) -> None:
    """One line of an answer: its blocks go to the turn of its message id."""
    record = source.record
    message = record.message
    if message is None:
        return
    turn_id = message.id or session.record_id(record, str(source.line))
    agent = session.agent_of(record)
    draft = session.by_id.get(turn_id)
    if draft is None:
        draft = Draft(
            turn_id,
            source,
            Role.ASSISTANT,
            Channel.REPLY,
            session_id=record.sessionId or session.session_id or session.stem,
            subagent=agent,
        )
        if message.model == "<synthetic>" or record.isApiErrorMessage:
            draft.role, draft.channel = Role.HARNESS, Channel.OTHER  # rate limit, login, overload
            draft.add_flags(("api_error",) if record.isApiErrorMessage else ("synthetic",))
        session.drafts.append(draft)
        session.by_id[turn_id] = draft
    elif not record.uuid or session.owner.get(record.uuid) != turn_id:
        draft.hash.update(source.content)
    draft.line_to = source.line
    if message.model:
        draft.model = message.model
    if record.uuid:
        session.owner[record.uuid] = turn_id
    if not agent:
        session.last_main = turn_id
    content = message.content
    for block in [content] if isinstance(content, str) else content or ():
        text = block if isinstance(block, str) else block.text if block.type == "text" else None
        if text is not None:
            text = text.strip()
            if text and text != NO_TEXT:
                draft.add_text(text)
        elif isinstance(block, str):
            continue
        elif block.type and block.type.endswith("tool_use"):
            _add_call(session, draft, block)
        elif block.tool_use_id:
            add_result(session, source, block)


def _add_call(session: Session, draft: Draft, block: Block) -> None:
    call_id = block.id or f"{draft.turn_id}:{len(draft.calls)}"
    if call_id in session.calls:
        return
    data = bytes(block.input)
    call = ToolCall(id=call_id, name=block.name or "", input=clip_json(data), input_bytes=len(data))
    orphan = session.orphans.pop(call_id, None)
    if orphan is not None:  # two writers: the result stood before its call
        session.moved[orphan.turn_id] = draft.turn_id
        call = structs.replace(orphan.calls[0], name=call.name, input=call.input)
        call = structs.replace(call, input_bytes=len(data))
        draft.hash.update(orphan.hash.digest())
    session.calls[call_id] = (draft, len(draft.calls))
    draft.calls.append(call)


def add_result(session: Session, source: Source, block: Block) -> None:
    """A tool's result goes to the call that it names, and what a person said with it to a turn.

    Without a call in the file it becomes a harness turn: mostly a refusal carried over from the
    session that a plan was made in.
    """
    record = source.record
    call_id = block.tool_use_id or ""
    found = session.calls.get(call_id)
    if found is None:
        draft = session.open(
            f"{session.record_id(record, call_id)}:result",
            source,
            Role.HARNESS,
            Channel.OTHER,
            flags=("no_call",),
            agent=session.agent_of(record),
        )
        if draft is None or call_id in session.orphans:
            return
        place = 0
        draft.calls.append(ToolCall(id=call_id, name=""))
        session.orphans[call_id] = draft
    else:
        draft, place = found
        if record.uuid and record.type == "user":
            session.owner[record.uuid] = draft.turn_id
    call = draft.calls[place]
    if call.output is not None:
        return  # the file repeats the record
    if found is not None:
        draft.hash.update(source.content)
    text = output_text(block.content)
    refusal = None
    if block.is_error:
        refusal = refusal_of(
            text,
            denial=record.toolDenialKind or "",
            whole=text_of(record.toolUseResult) or "",
            tool=call.name,
            version=record.version or "",
            in_ide=session.in_ide,
        )
    draft.calls[place] = structs.replace(
        call,
        output=clip(text, TOOL_CAP),
        output_bytes=byte_size(text),
        is_error=bool(block.is_error),
        refused=refusal is not None,
    )
    if refusal is not None:
        _add_refusal(session, source, draft, call.name, refusal)
    elif block.is_error and words.is_interruption(text):
        turn_id = session.record_id(record, text)
        stop = session.open(
            turn_id, source, Role.HARNESS, Channel.INTERRUPTION, text=text, agent=draft.subagent
        )
        if stop is not None:
            stop.up_turn = draft.turn_id


def _add_refusal(
    session: Session, source: Source, draft: Draft, tool: str, refusal: Refusal
) -> None:
    flags = ("plan_exit",) if tool == "ExitPlanMode" else ()
    if refusal.kind == "clarify":
        flags = (*flags, "question_clarify")
    draft.add_flags(flags)
    if not refusal.words:
        return
    if "no_call" in draft.flags:
        flags = (*flags, "no_call")
    if refusal.kind == "raw":
        flags = (*flags, "raw_refusal")
    turn_id = session.record_id(source.record, refusal.words)
    said = session.open(
        turn_id,
        source,
        Role.HUMAN,
        Channel.REFUSAL,
        text=refusal.words,
        flags=flags,
        agent=draft.subagent,
    )
    if said is not None:
        said.up_turn = draft.turn_id
