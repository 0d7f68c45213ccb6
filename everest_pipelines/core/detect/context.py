"""What the words of a turn answer to: the features of the correction and standing models."""

from __future__ import annotations

import math

from everest_pipelines.core.detect import around
from everest_pipelines.core.detect.cues import (
    ADMITS,
    CLAIMS,
    CONCESSION,
    CUES,
    FAULT,
    PRAISE,
    cues,
    is_only_order,
    straight,
)
from everest_pipelines.core.detect.model import tokens
from everest_pipelines.core.detect.scene import Place
from everest_pipelines.core.detect.sentences import is_review, own_text, pasted_text
from everest_pipelines.core.records import Channel, Role, Turn

OPENING = 300  # characters of an answer in which an agent concedes
EARLIER = 6  # of the person's turns that are compared: what is asked again comes soon


def concedes(reply: Turn | None) -> bool:
    """Whether the agent's answer admits a mistake in its first words."""
    return reply is not None and CONCESSION.search(straight(reply.text[:OPENING]))


def flags_of(place: Place, text: str) -> dict[str, float]:
    """The named features of a person's turn whose own words are ``text`` (always its own text)."""
    if place.flags is None:
        place.flags = _flags_of(place, text)
    return dict(place.flags)


def _flags_of(place: Place, text: str) -> dict[str, float]:
    flags = cues(text)
    words = tokens(text)
    flags.update(_shape(place.turn, text, words))
    flags.update(_before(place, text, words))
    flags.update(_after(place))
    return {name: value for name, value in flags.items() if value}


def _shape(turn: Turn, text: str, words: list[str]) -> dict[str, float]:
    left = pasted_text(turn.text)
    last = text.rstrip()
    asking = "?" in text or "\uff1f" in text
    return {
        f"channel_{turn.channel.value}": 1.0,
        "log_length": math.log1p(len(words)) / 5.0,
        "short": float(len(words) <= 4),
        "long": float(len(words) > 80),
        "asks": float(asking),
        "ends_asking": float(last.endswith(("?", "\uff1f"))),
        "many_lines": float(text.count("\n") > 6),
        "pasted": float(len(turn.text) > 1.5 * len(text) + 120),
        "pasted_review": float(any(is_review(line) for line in left.split("\n"))),
        "pasted_error": float(CUES["failing"].search(left)),
        "only_order": float(is_only_order(text)),
    }


def _before(place: Place, text: str, words: list[str]) -> dict[str, float]:
    """What the words answer to, and whether they were said before."""
    before, reply, work = place.before, place.reply_before(), place.work_before()
    did = around.work_of(work, around.LOOK_BACK, newest_first=True)
    flags = {
        "first": float(reply is None and not work),
        "after_edits": float(bool(did.paths)),
        "after_work": float(len(work) > 3),
        "after_tests": float(did.tested),
        "after_failure": float(did.failed),
        "after_question": float(did.asked),
        "after_refusal": float(any(c.refused for done in work[:2] for c in done.tool_calls)),
    }
    if before is not None:
        flags["after_interruption"] = float(before.channel == Channel.INTERRUPTION)
        flags["after_hand_back"] = float(before.role == Role.ASSISTANT and not before.tool_calls)
    said = reply.text if reply is not None else ""
    own = set(words) - _COMMON
    if reply is not None:
        tail = said[-1500:]
        flags["echo"] = len(set(tokens(tail)) & own) / (len(own) + 3.0)
        flags["reply_claims"] = float(CLAIMS.search(tail))
        flags["reply_asks"] = float(tail.rstrip().endswith(("?", "\uff1f")))
        flags["quoted"] = around.quoted(words[:200], said[:6000])
    recent = around.work_of(
        place.recent_work(around.LOOK_BACK), 2 * around.LOOK_BACK, newest_first=True
    )
    flags["recent_edits"] = float(bool(recent.paths))
    flags.update(around.named(place.turn.text, recent, said))
    shared = 0.0
    for nth, earlier in enumerate(place.words_before()):
        if nth >= EARLIER:
            break
        past = set(tokens(own_text(earlier.text))) - _COMMON
        near = len(past & own) / (min(len(own), len(past)) + 3.0)
        if nth == 0:
            flags["asked_before"] = len(past & own) / (len(own) + 3.0)
        shared = max(shared, near)
    flags["asked_again"] = shared
    return flags


def _after(place: Place) -> dict[str, float]:
    """What the agent then concedes and undoes."""
    after = place.reply_after()
    work = place.work_after(around.TURNS_ON)
    flags: dict[str, float] = {}
    if after is not None:
        head = straight(after.text[:OPENING])
        flags["conceded"] = float(CONCESSION.search(head))
        flags["admits"] = float(ADMITS.search(head))
        flags["admits_fault"] = float(FAULT.search(head))
        flags["praised"] = float(PRAISE.search(head))
    if work:
        did = around.work_of(work, around.LOOK_ON)
        back = around.work_of(
            place.recent_work(around.LOOK_BACK), 2 * around.LOOK_BACK, newest_first=True
        )
        flags["then_edits"] = float(bool(did.paths))
        flags["then_undoes"] = float(did.undid)
        flags["then_looks"] = float(bool(did.calls) and not did.paths)
        flags["then_answers"] = float(not did.calls)
        flags.update(around.again(back, did))
    return flags


def answered(place: Place) -> Turn | None:
    """The last turn of the agent's answer that the features look at, for ``settled_at``."""
    work = place.work_after(around.TURNS_ON)
    return work[-1] if work else None


_COMMON = frozenset(
    {"the", "a", "an", "to", "of", "in", "is", "it", "and", "or", "for", "on", "that", "this",
     "with", "be", "are", "as", "at", "i", "you", "we", "do", "can", "not", "but", "so", "if",
     "have", "from", "by", "was", "what", "how", "let", "me", "my", "your", "should", "would",
     "there"}
)  # fmt: skip
