"""What is counted of a session: its days, and the agent's offers with the person's answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from everest_pipelines.core.detect.commands import is_refused
from everest_pipelines.core.detect.error import is_failure
from everest_pipelines.core.detect.scene import Place, Scene, is_person
from everest_pipelines.core.records import (
    Channel,
    Day,
    Micros,
    Offer,
    Role,
    SessionDay,
    Turn,
)
from everest_pipelines.text.ids import digest

_OFFER = re.compile(
    r"(?i)\b(?:(?:would you like|do you want|want|shall|should) (?:me|i)\b(?: to)?|"
    r"(?:i can|let me know if you(?:'d)? (?:like|want) me to|ready (?:for me )?to|soll ich)\b)"
    r"[^?\n]{0,200}\?"
    # offers that are no questions
    r"|\blet me know (?:if|whether) you(?:'d| would)? (?:like|want) me to\b[^?\n]{0,200}"
    r"|\bif you(?:'d| would)? (?:like|want|prefer),? i (?:can|could|will)\b[^?\n]{0,200}"
    r"|\bsay the word (?:and i|if you)\b[^?\n]{0,200}"
)
_ACTIONS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(rf"(?i)\b(?:{words})"))
    for name, words in (
        (
            "publish",
            r"push|pull request|\bpr\b|merge|release|deploy|publish|post\b|"
            r"(?:create|open|make)\b[^?\n]{0,20}\b(?:pr|pull request)\b",
        ),
        ("commit", r"commit|amend|stage\b|stash|rebase"),
        ("delete", r"delete|remove|drop|clean up"),
        ("test", r"test|verify|check\b"),
        ("run", r"run|execute|start|build|install|restart"),
        (
            "edit",
            r"fix|implement|add|update|change|edit|create|write|refactor|apply|"
            r"migrat|rename|adjust|set (?:this |it )?up|convert|tackle|rework|strip|note\b",
        ),
        ("plan", r"plan|outline|investigate|look|explore|research|explain"),
    )
)
_GOES_ON = re.compile(r"(?i)\b(?:proceed|continue|do (?:it|that|this))\b")
_YES = re.compile(
    r"(?i)^\W*(?:yes|yep|yeah|sure|ok(?:ay)?|please|go\b|do it|sounds good|perfect|great|"
    r"absolutely|of course|let'?s|ja\b|gerne|好|да\b|sí\b|continue|proceed|correct|exactly|"
    r"i allow|agreed|approved)"
)
# The order that repeats the offer's verb is a yes: "implement 1, 2 and 3", "I allow you to commit".
_VERB = re.compile(
    r"(?i)\b(?:implement|create|commit|push|merge|add|update|fix|apply|run|delete|remove|write|post|"
    r"migrate|rename|test|rebase|continue)\b"
)
ORDER_WORDS = 8  # of an answer's beginning in which the verb has to stand

_NO = re.compile(r"(?i)^\W*(?:no\b|nope|not (?:yet|now)|don'?t|stop|skip|leave it|nein|不|нет)")
_CORRECTING = re.compile(r"(?i)\b(?:instead|rather|but |wrong|not what|actually|should(?:n't)?)\b")


def group_days(
    turns: Sequence[Turn], day_of: Callable[[Micros], Day]
) -> list[tuple[tuple[str, Day], list[Turn]]]:
    """The turns of each (session, day) in their given order, sorted by session and day."""
    groups: dict[tuple[str, Day], list[Turn]] = {}
    for turn in turns:
        groups.setdefault((turn.session_id, day_of(turn.occurred_at)), []).append(turn)
    return sorted(groups.items())


def count_day(turns: Sequence[Turn]) -> SessionDay:
    """The counts over one session's turns of one day; ``turns`` holds at least one."""
    main = [turn for turn in turns if not turn.subagent]
    calls = [call for turn in turns for call in turn.tool_calls]
    people = [turn for turn in main if is_person(turn)]
    machines = [turn for turn in main if turn.channel == Channel.MACHINE or "machine" in turn.flags]
    first = turns[0]
    return SessionDay(
        session_id=first.session_id,
        family_id=first.family_id,
        agent=first.agent,
        first_at=min(turn.occurred_at for turn in turns),
        last_at=max(turn.occurred_at for turn in turns),
        human_turns=len(people),
        assistant_turns=sum(turn.role == Role.ASSISTANT for turn in main),
        tool_calls=len(calls),
        tool_errors=sum(is_failure(call) for call in calls),
        refused=sum(is_refused(call) for call in calls),
        interruptions=sum(turn.channel == Channel.INTERRUPTION for turn in main),
        subagent_turns=len(turns) - len(main),
        waited=sum(is_hand_back(turn) for turn in main),
        machine=bool(machines) and not people,
    )


def is_hand_back(turn: Turn) -> bool:
    """An assistant's turn that ends without a tool call: the person is asked to go on."""
    return turn.role == Role.ASSISTANT and not turn.tool_calls and bool(turn.text.strip())


def session_days(
    turns: Sequence[Turn], *, day_of: Callable[[Micros], Day]
) -> list[tuple[Day, SessionDay]]:
    """One row for each session and day of a family's turns, taken back and repeated ones aside."""
    scene = Scene(turns)
    return [(day, count_day(group)) for (_, day), group in group_days(scene.turns, day_of)]


def offers(turns: Sequence[Turn]) -> list[Offer]:
    """The agent's offers to act that a person could answer, with the answer, in order."""
    scene = Scene(turns)
    found: list[Offer] = []
    for place in scene.places():
        turn = place.turn
        if turn.subagent or not is_hand_back(turn):
            continue
        offer = _last_offer(turn.text)
        if offer is None:
            continue
        answer = _answer(place)
        found.append(
            Offer(
                offer_id=digest(turn.turn_id, "offer"),
                session_id=turn.session_id,
                turn_id=turn.turn_id,
                occurred_at=turn.occurred_at,
                action=_action(offer),
                answer=_kind_of(answer.text, offer) if answer else "other",
                answer_turn_id=answer.turn_id if answer else "",
            )
        )
    return found


def _last_offer(text: str) -> str | None:
    found = None
    for match in _OFFER.finditer(text[-1200:]):
        found = match.group(0)
    return found


def _action(offer: str) -> str:
    """The kind whose verb comes first; "go on" says less than any verb behind it."""
    found = [(at.start(), name) for name, words in _ACTIONS if (at := words.search(offer))]
    if found:
        return min(found, key=lambda one: one[0])[1]
    return "edit" if _GOES_ON.search(offer) else "other"


def _answer(place: Place) -> Turn | None:
    for turn in place.stream[place.index + 1 :]:
        if is_person(turn):
            return turn
        if turn.role == Role.ASSISTANT:
            return None
    return None


def _kind_of(text: str, offer: str) -> str:
    if _NO.match(text):
        return "corrected" if len(text.split()) > 3 else "declined"
    if _YES.match(text) or _repeats(text, offer):
        return "corrected" if _CORRECTING.search(text) else "approved"
    return "corrected" if _CORRECTING.search(text[:200]) else "other"


def _repeats(text: str, offer: str) -> bool:
    """Whether an answer orders, in the offer's own verb, what was offered."""
    if "?" in text:
        return False
    ordered = _VERB.findall(" ".join(text.lower().split()[:ORDER_WORDS]))
    return bool(set(ordered) & set(_VERB.findall(offer.lower())))
