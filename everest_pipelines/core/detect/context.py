"""What the words of a turn answer to: the features of the correction and standing models."""
# ruff: noqa: RUF001 - people type these characters

from __future__ import annotations

import math
import re
from functools import lru_cache

from everest_pipelines.core.detect.anycase import AnyCase, found_in
from everest_pipelines.core.detect.model import tokens
from everest_pipelines.core.detect.scene import Place
from everest_pipelines.core.detect.sentences import REMEMBERED, is_review, own_text, pasted_text
from everest_pipelines.core.records import Channel, Role, Turn

CUES: dict[str, AnyCase] = {
    name: AnyCase(pattern, re.MULTILINE)
    for name, pattern in {
        "starts_no": r"\A\W*(?:no|nope|wait|stop|hmm+|oh|ah|again|nein|нет|不)\b|\A\W*(?:不|等)",
        "starts_but": r"\A\W*(?:but|instead|actually|hmm|i mean|aber|pero|но)\b",
        "starts_also": r"\A\W*(?:also|and|auch|también)\b",
        "starts_yes": r"\A\W*(?:yes|ok(?:ay)?|sure|great|perfect|good|looks good|thanks|ja|да)\b",
        "starts_order": r"\A\W*(?:please |can you |could you |let'?s |now )?(?:add|create|write|"
        r"implement|commit|push|run|make|update|review|read|look|check|explain|show|fix|continue|"
        r"go ahead|proceed|investigate|analy[sz]e)\b",
        "starts_question": r"\A\W*(?:what|how|which|where|who|when|do you|does|is there|are there|"
        r"can we|could we|would)\b",
        "why": r"\bwhy\b|\bwarum\b|\bпочему\b|为什么",
        "right": r"\bright\s*\?|\bare you sure\b|\breally\s*\?|\bno\s*\?\s*\Z",
        "still": r"\b(?:still|again|immer noch|wieder|все еще|仍|还是)\b",
        "not_working": r"\b(?:does(?:n'?t| not)|is(?:n'?t| not)|not|don'?t|can'?t|cannot|didn'?t|"
        r"won'?t|never) (?:\w+ )?(?:work\w*|correct|right|show\w*|display\w*|appear\w*|save\w*|"
        r"see\w*|exist\w*|realistic|enough)\b",
        "failing": r"\b(?:fail(?:s|ed|ing)|error|broken|bug(?:ged)?|crash\w*|warning|unhappy|lost|"
        r"missing|duplicated?|annoying|wrong|incorrect|geht nicht|falsch|错|ошибк\w*)\b",
        "now_getting": r"\b(?:now i'?m (?:getting|seeing)|i(?:'m| am) getting|getting this|"
        r"i (?:still )?(?:see|get|can'?t see)|looks like|seems? (?:like|to)|it is still)\b",
        "should": r"\b(?:should(?:n'?t)?|must(?:n'?t)?|need(?:s)? to|supposed to|ought|sollte\w*|"
        r"muss|should be|has to)\b",
        "instead": r"\b(?:instead(?: of)?|rather|replace|not just|only|statt\w*|stattdessen)\b",
        "dont": r"\b(?:do not|don'?t|no longer|never|stop|without|nicht|kein\w*|не|no need)\b|"
        r"不要|别",
        "want": r"\b(?:i(?:'d| would)? (?:want|like|love|prefer|rather)|we want|i meant?|my point|"
        r"i don'?t (?:like|want|think)|ich will|ich möchte)\b",
        "mistake": r"\b(?:not (?:correct|true|right|quite)|is wrong|incorrect|the issue (?:is|was)|"
        r"you (?:forgot|missed|removed|changed|broke|added|put|made|should)|misunder\w*|"
        r"assumption|makes? (?:no|it) sense|that'?s not)\b",
        "fact": r"\b(?:already|actually|just|we (?:use|have|do|don'?t)|it'?s (?:a|not|an)|"
        r"there (?:is|are|was)|in fact)\b",
        "thanks": r"\b(?:thanks|thank you|great|perfect|awesome|nice|good job|danke)\b",
        "undo": r"\b(?:revert|undo|put back|bring (?:\w+ )*back|restore|remove that|roll ?back)\b",
        "think": r"\b(?:i think|i believe|i guess|maybe|not sure|could we|can'?t we|"
        r"shouldn'?t we)\b",
        "image": r"\[image|\[Image #",
        "always": r"\b(?:always|never|every ?time|from now on|in (?:the )?future|remember|"
        r"whenever|immer|nie|niemals|künftig|siempre|nunca|всегда|никогда)\b|总是|永远|以后",
        "we_use": r"\b(?:we|this (?:repo|project)|our|i) (?:\w+ )?(?:use|do|don'?t|want|commit|"
        r"need|avoid|prefer|gitignore|explicitly|no longer|run|keep)\b|\bin this (?:repo|"
        r"project)\b",
        "use_x": r"(?:\A|[.!,;]\s*)\W*(?:please )?(?:use|avoid|prefer|keep|run)\b",
        "no_longer": r"\b(?:no longer|not any ?more|anymore|deprecated|instead of)\b",
        "generic": r"\b(?:tests?|commits?|PRs?|docs?|markdown|code|files?|branch(?:es)?|sessions?|"
        r"releases?|comments?|everything|anything|any|all|each|every)\b",
        "here": r"\b(?:this|that|these|those|it|here|above|below|line|now)\b",
        "because": r"\b(?:because|since|so that|as that|otherwise|too slow|weil)\b",
        "why_arent": r"\bwhy (?:are|do|did|aren'?t|don'?t|is|isn'?t)\b.{0,20}\b(?:you|we)\b",
    }.items()
}

_CONCEDES = re.compile(
    r"(?i)^\W*(?:(?:ah|oh|ok|yes|hmm)[,!.]? )?(?:you(?:'re| are) (?:\w+ )?(?:right|correct)|"
    r"good (?:catch|point|question -)|great catch|sorry|my (?:mistake|bad|apolog\w+)|"
    r"i apologi[sz]e|"
    r"apologies|i see the (?:issue|problem|bug)|i misunderstood|i was wrong|fair point|"
    r"that'?s right|"
    r"right[,.]? |understood|got it|du hast recht)"
)
_FAULT = AnyCase(
    r"\b(?:i see (?:the|what|now)|the (?:issue|problem|bug|error) is|let me fix|i need to fix|"
    r"i'll fix|found (?:the|it)|i should(?:n't)? have|i missed|i forgot|fix (?:this|that|it)|"
    r"the root cause|let me revert|i'll revert|i'll update)\b"
)
_CLAIMS = AnyCase(
    r"\b(?:done|fixed|complete[ds]?|works?|working|passing|pass(?:es|ed)?|successfully|ready|"
    r"implemented|all set|summary|updated|created)\b|✅|✓"
)
_COMMAND_WORDS = re.compile(r"(?i)^\W*(?:commit|push|continue|go|yes|ok|lgtm|y|proceed|thanks)\W*$")


def cues(text: str) -> dict[str, float]:
    """Which groups of cue words the text holds."""
    return dict.fromkeys(_cue_names(text), 1.0)


@lru_cache(maxsize=REMEMBERED)
def _cue_names(text: str) -> tuple[str, ...]:
    return found_in(CUES, text)


def concedes(reply: Turn | None) -> bool:
    """Whether the agent's answer admits a mistake in its first words."""
    return reply is not None and _CONCEDES.match(reply.text) is not None


def flags_of(place: Place, text: str) -> dict[str, float]:
    """The named features of a person's turn whose own words are ``text`` (always its own text).

    Flags that look at the agent's answer are only ever set by what it holds: without an answer
    they are absent, so a later turn can only add to what was known.
    """
    if place.flags is None:
        place.flags = _flags_of(place, text)
    return dict(place.flags)


def _flags_of(place: Place, text: str) -> dict[str, float]:
    turn = place.turn
    before, reply, after = place.before, place.reply_before(), place.reply_after()
    work = place.work_before()
    words = tokens(text)
    flags = cues(text)
    flags[f"channel_{turn.channel.value}"] = 1.0
    flags["log_length"] = math.log1p(len(words)) / 5.0
    flags["short"] = float(len(words) <= 4)
    flags["long"] = float(len(words) > 80)
    flags["asks"] = float("?" in text)
    flags["ends_asking"] = float(text.rstrip().endswith("?"))
    flags["many_lines"] = float(text.count("\n") > 6)
    flags["pasted"] = float(len(turn.text) > 1.5 * len(text) + 120)
    left = pasted_text(turn.text)
    flags["pasted_review"] = float(any(is_review(line) for line in left.split("\n")))
    flags["pasted_error"] = float(CUES["failing"].search(left))
    flags["first"] = float(reply is None and not work)
    flags["only_order"] = float(_COMMAND_WORDS.match(text) is not None)
    if before is not None:
        flags["after_interruption"] = float(before.channel == Channel.INTERRUPTION)
        flags["after_hand_back"] = float(before.role == Role.ASSISTANT and not before.tool_calls)
    edits = sum(call.name in _EDITS for turn_ in work for call in turn_.tool_calls)
    flags["after_edits"] = float(edits > 0)
    flags["after_work"] = float(len(work) > 3)
    flags["after_refusal"] = float(
        any(call.refused for turn_ in work[:2] for call in turn_.tool_calls)
    )
    if reply is not None:
        tail = reply.text[-1500:]
        said = set(tokens(tail)) - _COMMON
        own = set(words) - _COMMON
        flags["echo"] = len(said & own) / (len(own) + 3.0)
        flags["reply_claims"] = float(_CLAIMS.search(tail))
        flags["reply_asks"] = float(tail.rstrip().endswith("?"))
    earlier = next(place.words_before(), None)
    if earlier is not None:
        own = set(words) - _COMMON
        past = set(tokens(own_text(earlier.text))) - _COMMON
        flags["asked_before"] = len(past & own) / (len(own) + 3.0)
    if after is not None:
        flags["conceded"] = float(concedes(after))
        flags["admits_fault"] = float(_FAULT.search(after.text[:300]))
    return {name: value for name, value in flags.items() if value}


_EDITS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit", "apply_patch"})
_COMMON = frozenset(
    [
        "the",
        "a",
        "an",
        "to",
        "of",
        "in",
        "is",
        "it",
        "and",
        "or",
        "for",
        "on",
        "that",
        "this",
        "with",
        "be",
        "are",
        "as",
        "at",
        "i",
        "you",
        "we",
        "do",
        "can",
        "not",
        "but",
        "so",
        "if",
        "have",
        "from",
        "by",
        "was",
        "what",
        "how",
        "let",
        "me",
        "my",
        "your",
        "should",
        "would",
        "there",
    ]
)


def answered(place: Place) -> Turn | None:
    """The answer when the features depend on it, for ``settled_at``."""
    after = place.reply_after()
    if after is not None and (concedes(after) or _FAULT.search(after.text[:300])):
        return after
    return None
