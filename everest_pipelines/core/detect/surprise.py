"""What the agent says it did not expect.

It is the agent's own claim: shown only when a tool result or the person confirms it. A concession
to the person ("You're right") is the answer to a correction, not a surprise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from everest_pipelines.core.detect.anycase import AnyCase, found_in
from everest_pipelines.core.detect.finding import episode
from everest_pipelines.core.detect.model import REMEMBERED
from everest_pipelines.core.detect.scene import Scene
from everest_pipelines.core.detect.sentences import Sentence, sentences
from everest_pipelines.core.records import Episode, EpisodeKind, Origin, Role

NAME, VERSION = "surprise", 1

_RULES: tuple[tuple[str, str], ...] = (
    (
        "self_correction",
        r"^(?:(?:oh|hmm|actually|no),? )?wait\b(?!,? (?:for|until|let me (?:check|see)))|"
        r"^actually,? (?:wait|no\b|that'?s (?:wrong|not)|the \S+ (?:paths?|approach|issue))|"
        r"^(?:hmm|oh)[,.…]? (?:that'?s|this is) (?:wrong|not right)|"
        r"\bI (?:made a mistake|was wrong|misread|misunderstood|accidentally|mistakenly)\b|"
        r"\bwent to the wrong\b|\bmy (?:mistake|bad)\b",
    ),
    (
        "expectation_violated",
        r"\bthat'?s (?:very |really |quite )?(?:strange|odd|weird|surprising|unexpected)\b|"
        r"\b(?:strange|odd|weird|surprising)(?:ly)?[!:,]|^interesting(?:ly)?[!:,]|"
        r"\bI (?:didn'?t|did not) expect\b|\bunexpected(?:ly)? (?:result|behaviou?r|output)\b|"
        r"\bcontrary to\b|\bturns out\b|\bto my surprise\b|"
        r"\bdoes(?:n'?t| not) match (?:the current|what|my)\b|\bbut (?:the )?earlier it\b",
    ),
    (
        "preexisting_problem",
        r"\bpre-?existing\b.{0,60}\b(?:issue|problem|bug|fail\w*|error|lint|warning|one)\w*|"
        r"\b(?:are|is|was|were|appears? to be|that'?s) (?:a )?pre-?existing\b|"
        r"\bunrelated to (?:my|our|the|these) (?:change|work|edit)s?\b|"
        r"\bnot (?:related to|caused by) (?:my|our) changes?\b",
    ),
    (
        "unexpected_state",
        r"\b(?:someone|somebody) (?:removed|changed|edited|modified)\b|"
        r"\bit looks like .{0,80}\b(?:already|were|was) (?:been )?(?:extracted|moved|removed|"
        r"changed|modified|committed|deleted)\b|"
        r"\b(?:has|have|had) already been (?:modified|changed|refactored|committed|moved)\b|"
        r"\byou'?ve already been\b|\bis a leftover\b|\bleftover \w+ (?:clone|from)\b|"
        r"\bfor the old code\b",
    ),
)
_COMPILED = {sub: AnyCase(pattern) for sub, pattern in _RULES}
_HINT = AnyCase(
    r"wait\b|actually|wrong|mis(?:read|under|take)|accidentally|strange|odd\b|oddly|weird|"
    r"surpris|interesting|expect|contrary|turns out|match|earlier|existing|unrelated|"
    r"not (?:related|"
    r"caused)|already|someone|somebody|leftover|my bad|old code"
)
_CONCEDES = re.compile(
    r"(?i)^\W*(?:oh,? )?(?:you'?re (?:absolutely |completely |totally )?right|good (?:catch|"
    r"point)|great catch|sorry)"
)
LOOK_AT = 1_500  # characters; a surprise stands at the head, below it comes the report
HEADINGS = 2  # a text with more headings is a report, which tells of old surprises


def detect(scene: Scene) -> Iterator[Episode]:
    """At most one episode for each text of the main agent."""
    for turn in scene.turns:
        if turn.role != Role.ASSISTANT or turn.subagent or not turn.text:
            continue
        head = turn.text[:LOOK_AT]
        found = _surprise(head)
        if found is None:
            continue
        sub, sentence = found
        yield episode(
            turn,
            EpisodeKind.SURPRISE,
            span="text",
            detector=NAME,
            version=VERSION,
            origin=Origin.ASSISTANT,
            sub=sub,
            title=sentence.text,
            gist=head[sentence.start : sentence.start + 400],
            quote=(sentence.start, sentence.end),
            sure=True,
            score=1.0,
            reason=f"cue:{sub}",
        )


@lru_cache(maxsize=REMEMBERED)  # a session's texts are asked again on each of its days
def _surprise(head: str) -> tuple[str, Sentence] | None:
    """The first sentence that tells of a surprise, with its kind."""
    if not _HINT.search(head) or _CONCEDES.match(head) or head.count("\n#") > HEADINGS:
        return None
    for sentence in sentences(head)[:12]:
        for sub in found_in(_COMPILED, sentence.text):
            return sub, sentence
    return None
