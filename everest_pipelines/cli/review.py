"""``everest review``: the person decides, lesson by lesson, one key each."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from everest_pipelines.cli.context import answer, now, opened, tell
from everest_pipelines.cli.person import Terminal, agent_around, terminal
from everest_pipelines.cli.taking import FOLLOWS, publish_now
from everest_pipelines.core.records import EVERYWHERE, LessonRevision, State, moment
from everest_pipelines.core.render.plain import short_id
from everest_pipelines.recall import overlay
from everest_pipelines.recall.format import plain
from everest_pipelines.text import ledger
from everest_pipelines.text.errors import CallerError

if TYPE_CHECKING:
    from everest_pipelines.night.review import Question, Quote
    from everest_pipelines.text.home import Home

KEYS = {"a": "approve", "w": "approve everywhere", "p": "pin", "e": "edit", "r": "reject"}
_MENU = "[a]pprove  every[w]here  [p]in  [e]dit  [r]eject  [s]kip  [q]uit"
_MOST_QUOTES = 5


def run(arguments: Namespace) -> int:
    """Ask about everything that waits; without a terminal, list it.

    1 when decisions were made that could not be published yet.
    """
    from everest_pipelines.night.review import questions, unanswered
    from everest_pipelines.night.workspace import open_workspace

    place, settings = opened()
    ws = open_workspace(place, settings)
    found = questions(ws, only=(arguments.id or "").lower(), project=arguments.project or "")
    if arguments.id and not found:
        raise CallerError(f"No lesson has an id that starts with {arguments.id}.", "everest review")
    lost = unanswered(ws)
    if arguments.json:
        answer({"waiting": [_body(one) for one in found], "unanswered": lost})
        return 0
    tell(*lost)
    if not found:
        print("Nothing waits for you.")
        return 0
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or agent_around(os.environ):
        for one in found:
            print(f"{short_id(one.lesson.lesson_id)}  {plain(one.lesson.text)}  ({one.why})")
        tell("Deciding needs a terminal of your own: everest review")
        return 0
    with terminal(os.environ) as screen:
        decided = _ask(place, screen, found)
    if not decided:
        return 0
    print(f"{decided} decided.")
    left = publish_now(place, settings, "everest review")
    tell(*(left or ()))
    return int(bool(left) and left != FOLLOWS)


def _ask(place: Home, screen: Terminal, found: list[Question]) -> int:
    """One screen a question; returns how many were decided. What was decided is kept at once."""
    decided = 0
    for number, question in enumerate(found, start=1):
        screen.show(_screen(question, number, len(found), screen.size()))
        while True:
            key = screen.key()
            if key in ("q", "\x03", "\x04"):
                screen.show("\n")
                return decided
            if key == "s":
                break
            if key in KEYS and _decide(place, screen, question, KEYS[key]):
                decided += 1
                break
            if key in KEYS:
                screen.show(f"\n  Not done. {_MENU} ")
    screen.show("\n")
    return decided


def _decide(place: Home, screen: Terminal, question: Question, what: str) -> bool:
    lesson, text = question.lesson, ""
    if what == "approve everywhere" and lesson.scope == EVERYWHERE:
        what = "approve"
    if what == "edit":
        offered = question.proposed or lesson.text
        typed = screen.line(f"\n  The lesson, in your words (Enter takes: {plain(offered)})\n  > ")
        text = typed or offered
    if not screen.challenge(what):
        return False
    keep(place, lesson, what.split()[0], text=text, everywhere=what.endswith("everywhere"))
    screen.show(f"  Done: {what}.\n")
    return True


def keep(
    place: Home, lesson: LessonRevision, action: str, *, text: str = "", everywhere: bool = False
) -> None:
    """The decision into the ledger; a rejected lesson is hidden at once, any other shown again."""
    at = now()
    entry: dict[str, Any] = {
        "action": action,
        "actor": "person",
        "channel": "terminal",
        "via": "everest review",
        "lesson_id": lesson.lesson_id,
        "value_key": lesson.value_key,
        "scope": lesson.scope,
        "sources": list(lesson.source_episode_ids),
    }
    if text:
        entry["text"] = text
    if everywhere:
        entry["everywhere"] = True
    ledger.append(place, "review", entry, now=at)
    if action == "reject":
        key = lesson.value_key
        overlay.hide(place, lesson.lesson_id, value_key=key, why="rejected", at=at)
    else:
        overlay.unhide(place, lesson.lesson_id)


def _screen(question: Question, number: int, of: int, size: tuple[int, int]) -> str:
    """What is known about one lesson, cut to the terminal."""
    columns, lines = size
    lesson = question.lesson
    mark = {State.STATED: " (unreviewed)", State.DISPUTED: " (disputed)"}.get(lesson.state, "")
    top = [
        f"{number} of {of}  {lesson.scope}  {short_id(lesson.lesson_id)}  strength"
        f" {lesson.strength:.2f}, seen {lesson.seen}",
        "",
        f"  {plain(lesson.text)}{mark}",
    ]
    if lesson.fix and lesson.fix not in lesson.text:
        top.append(f"  What then worked: {plain(lesson.fix)}")
    if question.proposed:
        top.append(f"  Edited to: {plain(question.proposed)}")
    top += ["", f"  Why asked: {plain(question.why)}"]
    for other in question.against:
        said = moment(other.last_seen_at).strftime("%Y-%m-%d")
        top.append(f"  Against ({said}, {short_id(other.lesson_id)}): {plain(other.text)}")
    room = max(1, min(_MOST_QUOTES, lines - len(top) - 5))
    quotes = [_quoted(one) for one in question.quotes[:room]]
    if len(question.quotes) > room:
        quotes.append(f"  and {len(question.quotes) - room} more")
    body = [*top, "  Evidence:", *quotes]
    cut = [line if len(line) <= columns else line[: columns - 1] + "…" for line in body]
    clear = "" if os.environ.get("TERM", "dumb") == "dumb" else "\x1b[2J\x1b[H"
    return clear + "\n".join([*cut[: lines - 2], "", f"  {_MENU} "])


def _quoted(quote: Quote) -> str:
    who = f"{quote.origin} {quote.kind}"
    return f"  - {quote.day}, session {plain(quote.session_id[:8])}, {who}: {plain(quote.words)}"


def _body(question: Question) -> dict[str, Any]:
    from everest_pipelines.core.render.lessons_jsonl import wire

    return {
        **wire(question.lesson),
        "why": question.why,
        "proposed": question.proposed,
        "quotes": [
            {"words": q.words, "day": q.day, "session": q.session_id, "origin": q.origin}
            for q in question.quotes
        ],
        "against": [wire(one) for one in question.against],
    }
