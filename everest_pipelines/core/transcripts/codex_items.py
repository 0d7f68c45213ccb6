"""Items and events of a rollout: messages, calls and their results, stops."""

from __future__ import annotations

from typing import Any, cast

import orjson
from msgspec import structs

from everest_pipelines.core.records import Channel, Role, ToolCall
from everest_pipelines.core.transcripts import codex_results, codex_words, machine
from everest_pipelines.core.transcripts.caps import TOOL_CAP, byte_size, clip, clip_json
from everest_pipelines.core.transcripts.codex_results import Result
from everest_pipelines.core.transcripts.codex_session import Session
from everest_pipelines.core.transcripts.codex_wire import Item, item_of, text_of, value_of
from everest_pipelines.core.transcripts.draft import Source
from everest_pipelines.core.transcripts.words import Words
from everest_pipelines.text.ids import digest

SILENT_ITEMS = frozenset(
    [
        "reasoning",
        "compaction",
        "compaction_summary",
        "compaction_trigger",
        "context_compaction",
        "ghost_snapshot",
        "image_generation_call",
        "additional_tools",
        "other",
    ]
)
SILENT_EVENTS = frozenset(
    [
        "token_count",
        "task_started",
        "turn_started",
        "task_complete",
        "turn_complete",
        "agent_reasoning",
        "agent_reasoning_raw_content",
        "agent_reasoning_section_break",
        "context_compacted",
        "thread_name_updated",
        "thread_goal_updated",
        "thread_settings_applied",
        "entered_review_mode",
        "exited_review_mode",
        "undo_started",
        "undo_completed",
        "image_generation_begin",
        "image_generation_end",
        "web_search_begin",
        "web_search_end",
        "view_image_tool_call",
        "error",
        "warning",
        "stream_error",
        "background_event",
        "shutdown_complete",
        "session_configured",
        "turn_diff",
        "plan_update",
        "item_started",
        "exec_command_begin",
        "exec_command_output_delta",
        "patch_apply_begin",
        "mcp_tool_call_begin",
        "dynamic_tool_call_request",
        "dynamic_tool_call_response",
        "hook_started",
        "hook_completed",
        "mcp_startup_update",
        "mcp_startup_complete",
        "deprecation_notice",
        "model_reroute",
        "exec_approval_request",
        "apply_patch_approval_request",
        "request_user_input",
        "request_permissions",
        "elicitation_request",
        "guardian_assessment",
        "guardian_warning",
        "sub_agent_activity",
        "collab_agent_spawn_begin",
        "collab_agent_spawn_end",
        "collab_agent_interaction_begin",
        "collab_agent_interaction_end",
        "collab_waiting_begin",
        "collab_waiting_end",
        "collab_close_begin",
        "collab_close_end",
        "collab_resume_begin",
        "collab_resume_end",
        "terminal_interaction",
        "skills_update_available",
    ]
)
SILENT_COMPLETED = frozenset(
    [
        "reasoning",
        "websearch",
        "imageview",
        "sleep",
        "imagegeneration",
        "contextcompaction",
        "hookprompt",
        "extension",
        "subagentactivity",
    ]
)
_ENDS = {
    "exec_command_end": "exec_command",
    "patch_apply_end": "apply_patch",
    "mcp_tool_call_end": "mcp",
}
_STOPPED = frozenset(["interrupted", "", "Interrupted"])  # other reasons are the harness's own
_PATCHED = ("*** Update File: ", "*** Add File: ", "*** Delete File: ")


def add_item(session: Session, source: Source, item: Item) -> str:
    """One item of the model's history; returns the name of an unknown type."""
    kind = item.type or ""
    if kind == "message":
        _add_message(session, source, item)
    elif kind in ("function_call", "custom_tool_call", "local_shell_call", "tool_search_call"):
        _add_call(session, source, item.call_id or item.id or "", _name(item), _input(item))
    elif kind == "web_search_call":
        call_id = item.call_id or item.id or session.name("call", bytes(item.action).decode())
        _add_call(session, source, call_id, "web_search", bytes(item.action))
    elif kind in ("function_call_output", "custom_tool_call_output", "local_shell_call_output"):
        found = codex_results.of_output(value_of(item.output))
        _end_call(session, source, item.call_id or "", found)
    elif kind == "tool_search_output":
        _end_call(session, source, item.call_id or "", Result("", False))
    elif kind == "agent_message":
        add_notice(session, source, kind, item)
    elif kind not in SILENT_ITEMS:
        return f"response_item:{kind}"
    return ""


def add_event(session: Session, source: Source, item: Item) -> str:
    """One event; returns the name of an unknown type."""
    kind = item.type or ""
    if kind == "user_message":
        images = bool(value_of(item.images) or value_of(item.local_images))
        _add_user(session, source, "event", [text_of(item.message)], images=images)
    elif kind == "agent_message":
        _add_reply(session, source, "event", text_of(item.message))
    elif kind == "turn_aborted":
        _stop(session, source, "", person=(item.reason or "") in _STOPPED)
    elif kind == "thread_rolled_back":
        session.take_back(max(item.num_turns or 0, 0))
    elif kind in _ENDS:
        _end_by_event(session, source, item.call_id or "", _ENDS[kind], item)
    elif kind == "item_completed":
        return _add_completed(session, source, item_of(item.item))
    elif kind not in SILENT_EVENTS:
        return f"event_msg:{kind}"
    return ""


def _add_completed(session: Session, source: Source, item: Item | None) -> str:
    if item is None:
        return ""
    kind = (item.type or "").replace("_", "").lower()
    if kind == "usermessage":
        content = value_of(item.content)
        images = bool(codex_words.image_count(content))
        texts = ["".join(codex_words.texts_of(content))]
        _add_user(session, source, "completed", texts, images=images)
    elif kind == "agentmessage":
        texts = codex_words.texts_of(value_of(item.content))
        _add_reply(session, source, "completed", "".join(texts))
    elif kind == "plan":
        _add_plan(session, source, text_of(item.text))
    elif kind in ("commandexecution", "filechange", "mcptoolcall", "dynamictoolcall"):
        name = {"commandexecution": "exec_command", "filechange": "apply_patch"}.get(kind, "")
        _end_by_event(session, source, item.call_id or item.id or "", name, item)
    elif kind == "collabagenttoolcall":
        _end_by_event(session, source, item.id or "", item.tool or "agent", item)
    elif kind not in SILENT_COMPLETED:
        return f"item:{item.type}"
    return ""


def add_notice(session: Session, source: Source, kind: str, item: Item) -> None:
    """A retelling of what came before, or the words of another agent."""
    content = value_of(item.content)
    text = text_of(item.message) or "\n".join(codex_words.texts_of(content))
    if not text.strip():
        return
    if kind == "compacted":
        channel = Channel.COMPACTION
    else:
        channel = Channel.SUBAGENT_PROMPT if session.is_subagent else Channel.NOTIFICATION
    place = "notice" if kind == "compacted" else kind
    session.say("notice", place, Words(Role.HARNESS, channel, text.strip()), source)


# -- messages ----------------------------------------------------------------------------------


def _add_message(session: Session, source: Source, item: Item) -> None:
    content = value_of(item.content)
    texts = codex_words.texts_of(content)
    if item.role == "assistant":
        _add_reply(session, source, "item", "\n".join(texts))
    elif item.role == "user":
        images = bool(codex_words.image_count(content))
        _add_user(session, source, "item", texts, images=images)


def _add_user(
    session: Session, source: Source, place: str, texts: list[str], *, images: bool
) -> None:
    said = codex_words.read_words(texts)
    if not said.text and not images:
        return
    if said.role is Role.HARNESS and not (images and not said.text):
        session.go(codex_words.cwd_in(said.text))
        if said.channel is Channel.INTERRUPTION:
            _stop(session, source, said.text, person=True)
        else:
            session.say("harness", place, said, source)
        return
    channel = said.channel if said.text else Channel.PROMPT
    if channel is Channel.PROMPT and session.stretch.turn_id and session.stretch.worked:
        channel = Channel.QUEUED  # typed while the agent worked
    if session.is_subagent:
        said = Words(Role.HARNESS, Channel.SUBAGENT_PROMPT, said.text)
    else:
        said = Words(Role.HUMAN, channel, said.text, ("image",) if images else ())
    draft, fresh = session.say("user", place, said, source)
    session.agent = None
    if place != "item":
        session.told.add(session.stretch_of[draft.turn_id])
        session.only_item.pop(draft.turn_id, None)
    if not fresh:
        if images:
            draft.add_flags(("image",))
        return
    session.rounds += 1
    draft.up_turn = session.last_agent
    if session.prompted is None:
        session.prompted = machine.prompt_of(said.text)


def _add_reply(session: Session, source: Source, place: str, text: str) -> None:
    text = text.strip()
    if not text:
        return
    session.say("assistant", place, Words(Role.ASSISTANT, Channel.REPLY, text), source)


def _add_plan(session: Session, source: Source, text: str) -> None:
    """A plan stands in the answer too, in most versions."""
    text = text.strip()
    number = session.stretch.number
    for draft in reversed(session.drafts):
        if session.stretch_of[draft.turn_id] != number:
            break
        if draft.role is Role.ASSISTANT and any(text in one for one in draft.texts):
            return
    _add_reply(session, source, "plan", text)


def _stop(session: Session, source: Source, text: str, *, person: bool) -> None:
    """The person stopped the agent: told by an event, by an item, or by both."""
    key = (session.stretch.number, session.rounds)
    draft = session.stops.get(key)
    if draft is None:
        words = Words(Role.HARNESS, Channel.INTERRUPTION, text or "turn aborted")
        draft = session.open(session.name("stop", ""), source, words)
        draft.up_turn = session.last_agent
        session.stops[key] = draft
    else:
        session.widen(draft, source)
        if text.startswith("<turn_aborted"):
            draft.texts = [text]
    if not person:
        draft.channel = Channel.OTHER
    session.agent = None


# -- calls -------------------------------------------------------------------------------------


def _name(item: Item) -> str:
    if item.type == "local_shell_call":
        return "local_shell"
    return item.name or ("tool_search" if item.type == "tool_search_call" else "")


def _input(item: Item) -> bytes:
    if item.type == "local_shell_call":
        return bytes(item.action)
    if item.type == "custom_tool_call":
        return _patch_input(text_of(item.input)) if item.input else b""
    return text_of(item.arguments).encode() or bytes(item.arguments)


def _patch_input(text: str) -> bytes:
    """A tool's free text as the JSON that other tools get, with the first file that it names."""
    fields = {"input": text}
    for line in text.split("\n"):
        if line.startswith(_PATCHED):
            fields = {"path": line.split(": ", 1)[1].strip(), "input": text}
            break
    return orjson.dumps(fields)


def _add_call(session: Session, source: Source, call_id: str, name: str, data: bytes) -> ToolCall:
    call_id = call_id or session.name("call", name + data.decode("utf-8", "replace"))
    found = session.calls.get(call_id)
    if found is not None:
        draft, place = found
        call = draft.calls[place]
        if call_id in session.by_event and not call.input_bytes:
            call = structs.replace(call, name=name or call.name, input=clip_json(data))
            draft.calls[place] = structs.replace(call, input_bytes=len(data))
            session.widen(draft, source)
        return draft.calls[place]
    draft = session.agent
    if draft is None:
        words = Words(Role.ASSISTANT, Channel.REPLY, "")
        draft = session.open(digest("codex", "call", call_id), source, words)
    else:
        session.widen(draft, source)
    call = ToolCall(id=call_id, name=name, input=clip_json(data), input_bytes=len(data))
    orphan = session.orphans.pop(call_id, None)
    if orphan is not None:
        session.moved[orphan.turn_id] = draft.turn_id
        call = structs.replace(orphan.calls[0], name=name, input=call.input, input_bytes=len(data))
        draft.hash.update(orphan.hash.digest())
    session.calls[call_id] = (draft, len(draft.calls))
    draft.calls.append(call)
    return call


def _end_call(session: Session, source: Source, call_id: str, result: Result) -> None:
    """The output record of a call; without its call it becomes a harness turn."""
    session.agent = None
    found = session.calls.get(call_id)
    if found is None:
        if not call_id or call_id in session.orphans:
            return
        words = Words(Role.HARNESS, Channel.OTHER, "", ("no_call",))
        draft = session.open(digest("codex", "result", call_id), source, words)
        draft.calls.append(_ended(ToolCall(id=call_id, name=""), result))
        session.orphans[call_id] = draft
        return
    draft, place = found
    call = draft.calls[place]
    if call.output is None:
        draft.calls[place] = _ended(call, result)
    elif call_id in session.by_event:
        session.by_event.discard(call_id)
        fresh = _ended(call, result)
        if result.failed is None:
            fresh = structs.replace(fresh, is_error=call.is_error)
        draft.calls[place] = structs.replace(fresh, refused=call.refused or fresh.refused)
    else:
        return  # the file repeats the record
    session.widen(draft, source)
    if result.aborted:
        _stop(session, source, result.text[:200], person=True)


def _ended(call: ToolCall, result: Result) -> ToolCall:
    return structs.replace(
        call,
        output=clip(result.text, TOOL_CAP),
        output_bytes=byte_size(result.text),
        is_error=bool(result.failed),
        refused=result.refused,
    )


def _end_by_event(session: Session, source: Source, call_id: str, name: str, item: Item) -> None:
    """The event that ends a call knows how it went; the call itself may stand nowhere else."""
    result, data, named = _of_event(item)
    if not call_id:
        return
    found = session.calls.get(call_id)
    if found is None:
        _add_call(session, source, call_id, named or name, data)
        found = session.calls[call_id]
    draft, place = found
    call = draft.calls[place]
    if call.output is None:
        session.by_event.add(call_id)
        draft.calls[place] = _ended(call, result)
    elif result.failed is not None and not call.refused:
        draft.calls[place] = structs.replace(call, is_error=result.failed, refused=result.refused)
    session.widen(draft, source)


def _of_event(item: Item) -> tuple[Result, bytes, str]:
    """The result, the input as JSON and the tool's name that an ending event tells."""
    invocation = value_of(item.invocation)
    fields: dict[str, Any] = invocation if isinstance(invocation, dict) else {}
    server = str(fields.get("server") or item.server or "")
    tool = str(fields.get("tool") or item.tool or "")
    name = f"mcp__{server}__{tool}" if server else tool
    if item.command:
        data = orjson.dumps({"command": value_of(item.command)})
    elif item.changes:
        changed = value_of(item.changes)
        paths = sorted(changed) if isinstance(changed, dict) else []
        data = orjson.dumps({"path": paths[0], "paths": paths} if paths else {})
    else:
        data = orjson.dumps(fields.get("arguments", value_of(item.arguments)))
    text = text_of(item.aggregated_output)
    if not text:
        text = "\n".join(part for part in (text_of(item.stdout), text_of(item.stderr)) if part)
    success = item.success
    for raw in (item.result, item.content_items, item.error):
        value = value_of(raw)
        if value is None:
            continue
        if isinstance(value, dict):
            inner = cast("dict[str, Any]", value)
            for key in ("Ok", "Err"):  # how Rust writes a result
                if key in inner:
                    success = key == "Ok" if success is None else success
                    value = inner[key]
        found = codex_results.of_output(value)
        text = text or found.text
        if success is None and found.failed is not None:
            success = not found.failed
    result = codex_results.of_event(
        output=text, exit_code=item.exit_code, success=success, status=item.status or ""
    )
    return result, data, name
