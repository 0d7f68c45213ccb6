"""What a hook answers: the lessons that a prompt, a hand-back or a tool call bears on.

The contract is that of Claude Code's hooks (https://code.claude.com/docs/en/hooks): one JSON event
on stdin, at most one JSON object on stdout, exit code 0. Whatever goes wrong, the answer is
nothing. Every decision goes to the ledger as ids and a reason, never as words of the session.
"""

from __future__ import annotations

from everest_pipelines.recall import arms, sessions
from everest_pipelines.text import bare, chain, quick_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from everest_pipelines.recall.search import Hit

PROMPT, STOP, TOOL = "UserPromptSubmit", "Stop", "PreToolUse"
EVENTS = {PROMPT: "prompt", STOP: "stop", TOOL: "tool"}  # as the ledger calls them
# Which lessons a moment asks for, and how many at most.
_KINDS = {PROMPT: (None, 5), STOP: ("rule", 2), TOOL: ("error", 2)}
# Words in common below which a tool call or a hand-back is left alone, even when one of them is a
# lesson's name: the answer to a hand-back costs the person another turn.
_LEAST_WORDS = {PROMPT: 1, STOP: 2, TOOL: 2}
MAX_QUERY = 8_000  # characters of an event that are looked at: a pasted log is not a question
LOCK_SECONDS = 0.25
# From here on an answer to Stop may be plain context; earlier ones refuse it with a notice, and
# for those the answer is the older, louder "block" (reports differ from 2.1.163 to 2.1.277).
_QUIET_STOP = (2, 1, 278)
_TAIL = 32_768  # bytes of a transcript's end that are searched for the agent's version


class _Unknown(Exception):
    """An event that no hook of ours asked for."""


class _Event:
    """What was read on stdin, as far as it matters."""

    def __init__(self, data: bytes) -> None:
        body = bare.loads(data.decode("utf-8", "replace"))
        if not isinstance(body, dict) or body.get("hook_event_name") not in EVENTS:
            raise _Unknown
        self.body: dict[str, Any] = body
        self.name = str(body["hook_event_name"])
        self.session = sessions.plain_id(_text(body.get("session_id")))
        self.transcript = _text(body.get("transcript_path"))
        self.folder = _text(body.get("cwd"))

    def query(self) -> str:
        """The words to search by; "" when this is not a moment to speak."""
        if self.name == PROMPT:
            return _text(self.body.get("prompt"))[:MAX_QUERY]
        if self.name == STOP:
            # A turn that goes on because of a hook, or waits for its own work, hands nothing back.
            if self.body.get("stop_hook_active") or self.body.get("background_tasks"):
                return ""
            return _text(self.body.get("last_assistant_message"))[-MAX_QUERY:]
        words = [_text(self.body.get("tool_name"))]
        given: Any = self.body.get("tool_input")
        if isinstance(given, dict):
            for name, value in given.items():
                if isinstance(value, str) and name not in _CONTENT:
                    words.append(value[:MAX_QUERY])
        return "\n".join(words)[:MAX_QUERY]


# What a tool would write or send says little about what may go wrong with the call.
_CONTENT = frozenset({"content", "new_string", "old_string", "new_source", "prompt"})


class _Log:
    """The decisions on one event."""

    def __init__(self, root: str, event: _Event, now: int) -> None:
        self.ledger = f"{root}/ledger"
        self.event = event
        self.now = now
        self.about: dict[str, Any] = {}
        self.entries: list[tuple[str, dict[str, Any]]] = []

    def add(self, reason: str, lessons: list[str], state: sessions.Session | None) -> None:
        """Note a decision. Without a lesson to show, only a prompt's is noted each time."""
        key = f"{EVENTS[self.event.name]} {reason} {' '.join(lessons)}"
        said_before = state is not None and not state.note(key)
        if said_before and self.event.name != PROMPT:
            return
        self.entries.append(
            (
                "recall",
                {
                    "event": EVENTS[self.event.name],
                    "reason": reason,
                    "lesson_ids": lessons,
                    "rendered": reason == "shown",
                    "session_id": self.event.session,
                    "family_id": state.family if state else self.event.session,
                    **self.about,
                },
            )
        )

    def write(self) -> None:
        """Append what was noted; the caller holds the lock. Raises OSError as the system does."""
        if not self.entries:
            return
        if chain.append(self.ledger, self.entries, now=self.now) is None:
            self._mend()

    def _mend(self) -> None:
        """A writer died in the middle of a line: the full ledger sets that aside, next time."""
        from pathlib import Path

        from everest_pipelines.text.home import Home
        from everest_pipelines.text.ledger import mend_tails

        mend_tails(Home(Path(self.ledger).parent))
        chain.append(self.ledger, self.entries, now=self.now)


def answer(data: bytes, environ: Mapping[str, str], root: str, *, now: int) -> bytes:
    """What to print for the event in `data`; b"" for nothing. Never raises.

    `root` is the home, `now` in microseconds UTC.
    """
    try:
        if not bare.exists(root):
            return b""
        silent = quick_settings.silenced(environ) or bare.exists(f"{root}/off")
        event = _Event(data)
        log = _Log(root, event, now)
        lock = _lock(log.ledger)
        try:
            return _decide(event, log, environ, root, silent)
        finally:
            if lock is not None:
                lock.release()
    except Exception:
        return b""


def _lock(ledger: str) -> chain.Lock | None:
    """The ledger's lock; None where nothing can be written: then nothing is noted either.

    Raises BusyLockError when it is held for long: what cannot be noted is not shown.
    """
    lock = chain.Lock(ledger, LOCK_SECONDS)
    try:
        bare.make_dir(ledger)
        lock.take()
    except OSError as error:
        if not _is_unwritable(error):
            raise
        return None
    return lock


def _is_unwritable(error: OSError) -> bool:
    return error.errno in (1, 13, 28, 30, 122)  # EPERM, EACCES, ENOSPC, EROFS, EDQUOT


def _decide(
    event: _Event, log: _Log, environ: Mapping[str, str], root: str, silent: bool
) -> bytes:
    state = sessions.Session(root, event.session, event.transcript)
    text = ""
    try:
        if silent:
            log.add("off", [], state)
        else:
            text = _bearing(event, log, environ, root, state)
    except Exception as error:
        text = ""
        log.entries.clear()
        log.about["detail"] = type(error).__name__
        log.add("error", [], state)
    try:
        log.write()
        state.save()
    except OSError as error:
        if not _is_unwritable(error):
            return b""
    return _said(event, text) if text else b""


def _bearing(
    event: _Event,
    log: _Log,
    environ: Mapping[str, str],
    root: str,
    state: sessions.Session,
) -> str:
    """The block of lessons to show, "" for none; every decision is noted."""
    from everest_pipelines.recall.format import block
    from everest_pipelines.recall.hidden import keys
    from everest_pipelines.recall.project import project_of
    from everest_pipelines.recall.search import bearing
    from everest_pipelines.recall.snapshot import EVERYWHERE, open_current

    query = event.query()
    if not query.strip():
        return ""
    path = f"{root}/config.toml"
    config = bare.read_file(path) or b""
    settings = quick_settings.numbers(environ, config.decode("utf-8", "replace"), path)
    kind, most = _KINDS[event.name]
    with open_current(f"{root}/published/current") as snapshot:
        project = project_of(snapshot, event.folder) or EVERYWHERE
        log.about = {"project": project, "generation": snapshot.generation}
        hits = bearing(
            snapshot, query, project=project, k=most, kind=kind, hidden=keys(f"{root}/overlay.json")
        )
    hits = [hit for hit in hits if _shared(hit) >= _LEAST_WORDS[event.name]]
    week = arms.iso_week(log.now)
    fresh = [hit for hit in hits if hit.lesson_id not in state.shown]
    withheld = [
        hit
        for hit in fresh
        if arms.is_withheld(hit.lesson_id, hit.state, settings["withhold"], week)
    ]
    text, shown = block(
        [hit for hit in fresh if hit not in withheld], budget=int(settings["budget"])
    )
    if withheld:
        log.add("withheld", _ids(withheld), state)
    if shown:
        held_out = arms.is_held_out(state.family, settings["holdout"])
        log.add("held_out" if held_out else "shown", _ids(shown), state)
        state.shown.update(_ids(shown))
        text = "" if held_out else text
    elif not withheld:
        if hits and not fresh:
            log.add("already_shown", _ids(hits), state)
        else:
            log.add("nothing_fits", _ids(fresh), state)
    state.shown.update(_ids(withheld))
    return text


def _said(event: _Event, text: str) -> bytes:
    """The answer in the contract of the event."""
    if event.name == STOP and _version(event.transcript) < _QUIET_STOP:
        body: dict[str, Any] = {"decision": "block", "reason": text}
    else:
        body = {"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}}
    return bare.dumps(body, canonical=True).encode() + b"\n"


def _version(transcript: str) -> tuple[int, ...]:
    """The version of the agent that wrote the end of a transcript; (0,) when it does not say."""
    try:
        data = bare.read_end(transcript, _TAIL)
    except OSError:
        return (0,)
    _, found, rest = data.rpartition(b'"version":"')
    numbers = rest.partition(b'"')[0].split(b".") if found else []
    return tuple(int(number) for number in numbers if number.isdigit()) or (0,)


def _ids(hits: list[Hit]) -> list[str]:
    return [hit.lesson_id for hit in hits]


def _shared(hit: Hit) -> int:
    return len(hit.why.split(", ")) if hit.why else 0


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
