"""Refused tool calls and interruptions.

A refusal carries a correction when the person gave a reason with it; the reason is a human turn
of its own (channel refusal) whose parent is the agent's turn. A bare refusal of a plan's end is
how a person starts afresh, not a disagreement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from everest_pipelines.core.detect.commands import SIBLING, is_refused, request_of
from everest_pipelines.core.detect.finding import episode
from everest_pipelines.core.detect.scene import Place, Scene
from everest_pipelines.core.detect.sentences import as_rule, sentences
from everest_pipelines.core.detect.statement import statement
from everest_pipelines.core.records import Channel, Episode, EpisodeKind, Origin, ToolCall, Turn

NAME, VERSION = "refusal", 2

_CLARIFY = re.compile(r"\s*The user wants to clarify these questions")
_RUNNING = re.compile(r"\s*\[Request interrupted by user")
_TAKES_OVER = re.compile(
    r"(?i)^\W*(?:sorry\b|i'?ll (?:take it|do it|handle)|continue\b|never ?mind|my (?:bad|mistake))"
)


def refusals(scene: Scene) -> Iterator[Episode]:
    """One episode for each refused call of the main thread."""
    reasons = _reasons(scene)
    for turn in scene.turns:
        if turn.subagent:
            continue
        for call in turn.tool_calls:
            if is_refused(call):
                yield _refusal(turn, call, reasons)


def interruptions(scene: Scene) -> Iterator[Episode]:
    """One episode for each time that the person stopped the agent.

    The result of a running call that was stopped is a turn of its own for some readers: it is
    told by its call, once.
    """
    told: dict[str, int] = {}
    for turn in scene.turns:
        if turn.subagent:
            continue
        for call in turn.tool_calls:
            if not call.refused and call.output is not None and _RUNNING.match(call.output):
                told[turn.turn_id] = told.get(turn.turn_id, 0) + 1
                shown = request_of(call).shown
                yield _stop(turn, call.id, "during_tool", f"The person interrupted {shown}")
        if turn.channel == Channel.INTERRUPTION:
            if told.get(turn.parent, 0):
                told[turn.parent] -= 1
                continue
            by_tool = "tool use" in turn.text
            sub = "for_tool_use" if by_tool else "turn"
            what = "a tool call" if by_tool else "the agent's turn"
            yield _stop(turn, "turn", sub, f"The person interrupted {what}")


def detect(scene: Scene) -> Iterator[Episode]:
    """Refusals and interruptions."""
    yield from refusals(scene)
    yield from interruptions(scene)


def _reasons(scene: Scene) -> dict[str, list[Place]]:
    reasons: dict[str, list[Place]] = {}
    for place in scene.words:
        if place.turn.channel == Channel.REFUSAL and place.turn.text.strip():
            reasons.setdefault(place.turn.parent, []).append(place)
    return reasons


def _refusal(turn: Turn, call: ToolCall, reasons: dict[str, list[Place]]) -> Episode:
    request = request_of(call)
    output = call.output or ""
    reason = _reason_of(call, reasons.get(turn.turn_id, []))
    sub = "bare"
    if SIBLING.match(output):
        sub = "sibling_of_refused"
    elif _CLARIFY.match(output):
        sub = "question_clarify"
    elif reason is not None:
        sub = "with_reason"
    elif call.name in ("ExitPlanMode", "exit_plan_mode"):
        sub = "plan_exit"
    elif not call.name or call.name == "unknown":
        sub = "carry_over"
    if reason is None:
        return episode(
            turn,
            EpisodeKind.REFUSAL,
            span=call.id,
            detector=NAME,
            version=VERSION,
            origin=Origin.HUMAN,
            sub=sub,
            title=f"Refused {request.shown}",
            gist=f"The person refused {request.shown}",
            sure=True,
            score=1.0,
            reason=f"refused:{sub}",
        )
    own = sentences(reason.turn.text)
    span = (own[0].start, own[-1].end) if own else (0, len(reason.turn.text))
    words = reason.turn.text[span[0] : span[1]]
    corrects = not _TAKES_OVER.match(words)
    stated = statement(reason) if corrects else None
    if stated is not None and not stated.clear:
        stated = None
    if stated is not None:
        span = (stated.sentence.start, stated.sentence.end)
    return episode(
        reason.turn,
        EpisodeKind.REFUSAL,
        span=call.id,
        detector=NAME,
        version=VERSION,
        origin=Origin.HUMAN,
        sub=sub,
        title=as_rule(reason.turn.text[span[0] : span[1]]) or f"Refused {request.shown}",
        gist=f"The person refused {request.shown}: {words}",
        quote=span if corrects else None,
        standing=stated is not None,
        sure=stated.sure if stated else corrects,
        score=stated.score if stated else 1.0,
        reason="refused:correction" if corrects else "refused:reason",
    )


def _reason_of(call: ToolCall, reasons: list[Place]) -> Place | None:
    """The reason of this call: the only one of the turn, or the one that the output repeats."""
    for reason in reasons:
        if call.output and reason.turn.text.strip()[:80] in call.output:
            return reason
    if len(reasons) == 1 and not SIBLING.match(call.output or ""):
        return reasons[0]
    return None


def _stop(turn: Turn, span: str, sub: str, what: str) -> Episode:
    return episode(
        turn,
        EpisodeKind.INTERRUPTION,
        span=span,
        detector=NAME,
        version=VERSION,
        origin=Origin.HUMAN,
        sub=sub,
        title=what,
        gist=what,
        sure=True,
        score=1.0,
        reason=f"interrupted:{sub}",
    )
