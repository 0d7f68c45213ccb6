"""How people word what outlives a task: the cues of the standing model.

Each cue is a shape of a sentence, not a word: an order in general form, a statement of how "we"
work, a preference, a question that presupposes a convention. What points at the task at hand
("this", "now", "anymore") is a cue of its own against it.
"""
# ruff: noqa: RUF001 - people type these characters

from __future__ import annotations

import re
from functools import lru_cache

from everest_pipelines.core.detect.anycase import AnyCase, found_in
from everest_pipelines.core.detect.model import REMEMBERED

_LEAD = (
    r"(?:\A\W*|[.!;:,–-]\s+(?:and )?)(?:(?:ok(?:ay)?|no|yes|and|but|also|so|please|pls|then|"
    r"again|just|"
    r"hey|well|in general|generally|to be clear)[,.!:]*\s+)*"
)
_POINTS = r"(?:this|that|these|those|it|them|here|now|yet|any ?more|again|above|below)\b"
_ADVERBS = (
    r"(?:also |only |really |usually |generally |explicitly |actually |currently |normally )*"
)
_VERBS = (
    r"(?:use|do|commit|run|follow|deploy|ship|target|support|keep|write|name|put|store|test|build|"
    r"publish|squash|rebase|merge|sign|tag|format|lint|mock|gitignore|adopt|pin|document)"
)

_SHAPES: dict[str, str] = {
    "order_not": _LEAD + r"(?:do not|don'?t|never|avoid|stop(?=\s+\w+ing\b))\s+(?!mind|worry|"
    r"know|think|see|forget|"
    r"understand|want|need|have|like|believe|remember|bother)\w+\b(?!\s+" + _POINTS + r")",
    "order_use": _LEAD + r"(?:always |only |rather )?(?:use|prefer)\s+(?!the |a |an |" + _POINTS
    + r")[\w.@/-]+",
    "order_always": _LEAD + r"(?:always|remember to|make sure (?:to|you) always|"
    r"from now on,?)\s+\w+",
    "ask_first": r"\b(?:ask (?:me )?(?:before|first)|without asking|check with me|confirm with me|"
    r"only when i (?:ask|say)|unless i (?:ask|say|tell))\b",
    "we_never": r"(?<!if )(?<!when )\bwe " + _ADVERBS + r"(?:do not|don'?t|no longer|never|always|"
    r"avoid|prefer)\b(?! (?:know|see|think|have to|need to (?:check|loop|do|add)|worry))",
    "we_do": r"(?<!could )(?<!should )(?<!can )(?<!do )(?<!did )(?<!if )(?<!how )(?<!when )"
    r"(?<!what )(?<!are )(?<!that )\bwe "
    + _ADVERBS
    + _VERBS
    + r"\b(?! the (?:same|current))",
    "we_want": r"(?<!while )(?<!if )\b(?:we|i) (?:explicitly |know we |only |also )*(?:want|"
    r"are going "
    r"to (?:use|adopt|support))\b",
    "this_place": r"\b(?:in|for) (?:this|our) (?:repo(?:sitory)?|project|code ?base|team|org\w*)\b|"
    r"\bin this code ?base\b",
    "i_prefer": r"\bI(?:'d| would)? (?:always |really |generally )*(?:prefer|rather|hate|no longer "
    r"\w+|never \w+|always \w+)\b|\bI (?:don'?t|do not) (?:want|like|use|need)\b",
    "why_still": r"\bwhy (?:are|aren'?t|do|don'?t|did|didn'?t|is|isn'?t) (?:you|we) (?:still |"
    r"not )?"
    r"(?:us|do|writ|add|ask|commit|put|creat)\w*",
    "from_now": r"\b(?:from now on|going forward|in (?:the )?future|future sessions?|next session|"
    r"every ?time|each time|whenever|every (?:pr|commit|session|release|change|file|test))\b",
    "by_rule": r"\b(?:where(?:ver)? possible|by default|ideally|as a rule|our (?:convention|policy|"
    r"standard|rule)s?|no more than|at most|maximum (?:one|of))\b",
    "should_general": r"\b(?:tests?|commits?|docs?|code|files?|messages?|comments?|functions?|"
    r"names?|"
    r"branch(?:es)?|everything|all \w+) (?:also )?(?:should|must|need to|have to|has to)\b",
    "free_of": r"\b\w+[- ](?:free|only|first)\b|\b(?:backwards? )?compat\w+\b|\bdependenc\w+\b",
    "reason": r"\b(?:because|since|otherwise|as (?:that|this|it)|so that|too (?:slow|long|"
    r"expensive|"
    r"verbose)|ruins|breaks)\b",
    "not_but": r"\bnot (?:a |an |in |the |to )?[\w\"'`:.-]+(?: [\w-]+)?[,.]|\binstead of\b|"
    r"\brather "
    r"than\b|\bonly\b",
    "no_longer": r"\b(?:no longer|not any ?more)\b",
    "always_de": r"\b(?:immer|nie(?:mals)?|künftig|ab jetzt|wir (?:nutzen|verwenden|machen)|"
    r"bitte (?:kein\w*|nicht)|nicht mehr)\b",
    "always_xx": r"\b(?:siempre|nunca|de ahora en adelante|всегда|никогда|мы используем|впредь)\b|"
    r"总是|永远|从现在|以后|不要|别用|我们(?:使用|用|不)",
    "points": r"\b" + _POINTS,
    "for_now": r"\b(?:for now|this time|right now|at the moment|for the moment|any ?more|"
    r"already here)"
    r"\b",
    "if_then": r"\A\W*(?:if|when)\b|\bif\b(?! (?:not|possible|needed)\b)",
    "asks": r"\?\W*\Z",
    "can_we": r"\b(?:can|could|would|should|shall|do|does|did|is|are) (?:we|you|i|it|there|the)\b",
    "past": r"\b(?:was|were|did|had|got|been|\w+ed)\b",
    "i_think": r"\b(?:i think|perhaps|probably|i guess|maybe|i believe|not sure|seems?|"
    r"looks? like|i kind of)\b",
    "task_order": r"\A\W*(?:please |can you |could you |let'?s |now |ok |then )*(?:add|create|"
    r"write|fix|"
    r"implement|make|change|update|rename|remove|move|show|check|look|explain|generate|commit|"
    r"push)\b",
    "names_place": r"`[^`]+`|[\w.-]+/[\w./-]+|\.\w{2,4}\b",
}  # fmt: skip

SHAPES: dict[str, AnyCase] = {name: AnyCase(pattern) for name, pattern in _SHAPES.items()}
_DIRECT = frozenset(
    {"order_not", "order_use", "order_always", "ask_first", "we_never", "we_do", "i_prefer",
     "why_still"}
)  # fmt: skip
_AGAINST = frozenset({"asks", "can_we", "if_then", "for_now", "i_think"})
_CUT_OFF = re.compile(r"\b(?:the|a|an|of|to|from|and|or|for|in|with|by)\W*\Z", re.IGNORECASE)
_BOUNDARY = re.compile(r"[,;:\u2013-]\s+(?:and |but |so )?")
_SCOPE = re.compile(  # a head that says where the rule holds stays with it
    r"(?i)\W*(?:for|in|on|when|if|with|at|by|during|before|after|unless|whenever|since|because|"
    r"from|inside|within|to)\b"
)
SHORTEST_CLAUSE = 12  # characters; "use npm" after a long head is not cut down to less


@lru_cache(maxsize=REMEMBERED)
def _shape_names(sentence: str) -> tuple[str, ...]:
    return found_in(SHAPES, sentence.replace("’", "'"))


def shapes(sentence: str) -> dict[str, float]:
    """The shapes that a sentence has, with the combinations that say more than their parts."""
    flags = dict.fromkeys(_shape_names(sentence), 1.0)
    direct = _DIRECT & flags.keys()
    if "we_want" in flags and "this_place" in flags:
        direct = direct | {"we_want"}
    if direct and "points" not in flags:
        flags["direct_general"] = 1.0
    if direct and ("reason" in flags or "this_place" in flags or "no_longer" in flags):
        flags["direct_reasoned"] = 1.0
    if direct and not _AGAINST & flags.keys():
        flags["direct_told"] = 1.0
    return flags


def is_direct(sentence: str) -> bool:
    """Whether the sentence itself has the shape of a rule: no lesson is made at once without.

    A sentence that breaks off is a line of something pasted.
    """
    flags = shapes(sentence)
    return ("direct_told" in flags or "why_still" in flags) and not _CUT_OFF.search(sentence)


def clause_start(sentence: str) -> int:
    """Where the clause that states the rule starts: what stands before it is about the task.

    "That is not correct, we don't ignore the folder" starts at "we"; a head that says where the
    rule holds ("for e2e tests, …") stays.
    """
    found = [match for name in _DIRECT if (match := SHAPES[name].pattern.search(sentence))]
    if not found:
        return 0
    first = min(found, key=lambda match: match.start())
    at = first.start() + len(first.group(0)) - len(first.group(0).lstrip(" ,;:.!\u2013-"))
    start = 0
    for boundary in _BOUNDARY.finditer(sentence, 0, at + 4):
        if boundary.end() > at + 4 or len(sentence) - boundary.end() < SHORTEST_CLAUSE:
            break
        if not _SCOPE.match(sentence[start : boundary.start()]):
            start = boundary.end()
    return start
