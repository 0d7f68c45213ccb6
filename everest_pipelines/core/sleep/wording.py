"""A model's wording of a lesson: what it is asked, and the gate that its answer must pass.

The deterministic text always stands; a wording is shown beside it. Small models answer valid JSON
with the rule turned round, so everything that makes a rule is compared: what it wants and refuses,
its numbers and names, its language. What the gate cannot be sure of is refused.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence

from everest_pipelines.core.sleep import guard
from everest_pipelines.text.ids import digest
from everest_pipelines.text.redact import redact
from everest_pipelines.text.tokens import content_words, normalize

QUESTION_VERSION = 1
MOST_QUOTES, QUOTE_CHARACTERS = 3, 400  # what a small model's context and a minute of CPU allow
SHORTEST, LONGEST = 8, 200  # characters of a wording
LONGER_BY = 1.5  # times the deterministic text, and 40 characters: a rule, no essay
ECHO_WORDS = 6  # words in a row that stand in the instruction too
SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"rule": {"type": "string", "minLength": SHORTEST, "maxLength": LONGEST}},
    "required": ["rule"],
    "additionalProperties": False,
}
INSTRUCTION = (
    "You word one rule of a software project as one short imperative sentence, in the language of"
    " the rule. Keep every name, number, path and option exactly as it is. Keep what is wanted and"
    " what is forbidden. Add nothing. Answer as JSON with the single key rule."
)
QUESTION = digest(str(QUESTION_VERSION), INSTRUCTION, json.dumps(SCHEMA, sort_keys=True))

# What must survive word for word: `code`, --options, paths, names with signs or capitals inside,
# and everything that holds a digit.
_IDENTIFIER = re.compile(
    r"`[^`\n]+`|--?[A-Za-z][\w-]*|[\w.~-]*[/\\][\w./\\~-]+|\w+(?:[._:-]\w+)+|[A-Za-z]+[a-z][A-Z]\w*"
    r"|\b[A-Z]{2,}\b|\w*\d[\w.]*"
)
_SENTENCE_INSIDE = re.compile("[.!?\u3002\uff01\uff1f]\\s+\\S")


def question_of(text: str, quotes: Sequence[str]) -> str:
    """What the model is given of one lesson: its text and the person's words."""
    said = [f"- {' '.join(quote.split())[:QUOTE_CHARACTERS]}" for quote in quotes[:MOST_QUOTES]]
    return "\n".join([f"Rule: {text}", *(["The person's words:", *said] if said else [])])


def refused(wording: str, *, text: str, quotes: Sequence[str] = ()) -> str:
    """Why a wording may not be shown, as one word; empty when nothing speaks against it.

    ``text``: the deterministic text. ``quotes``: the words that names may come from besides.
    """
    said = wording.strip()
    if not SHORTEST <= len(said) <= min(LONGEST, LONGER_BY * len(text) + 40) or "\n" in said:
        return "length"
    if _SENTENCE_INSIDE.search(said):
        return "sentences"
    if redact(said) != said:
        return "secret"
    if normalize(said) == normalize(text):
        return "same"
    if _is_echo(said, text, quotes):
        return "echo"
    if _script(said) != _script(text):
        return "language"
    kept, given = _identifiers(said), _identifiers(text)
    if not given <= kept or not kept <= given | _identifiers("\n".join(quotes)):
        return "identifiers"
    if not _same_stance(said, text):
        return "polarity"
    return ""


def answer_of(reply: str) -> str:
    """The rule in a model's reply; empty when it is not what the schema asks for."""
    try:
        body = json.loads(reply)
    except ValueError:
        return ""
    rule = body.get("rule") if isinstance(body, dict) and set(body) == {"rule"} else None
    return rule.strip() if isinstance(rule, str) else ""


def _same_stance(wording: str, text: str) -> bool:
    """Nothing is wanted that was refused, nothing left out that decides, nothing new."""
    ours, theirs = guard.stance(wording), guard.stance(text)
    if guard.rules_apart(ours, theirs) is not None or ours.forbids != theirs.forbids:
        return False
    if ours.permission != theirs.permission or ours.polarity != theirs.polarity:
        return False
    if ours.refused - theirs.refused - theirs.neutral or theirs.refused - ours.words:
        return False
    return theirs.wanted <= ours.words and len(ours.words - theirs.words) <= len(theirs.words)


def _identifiers(text: str) -> set[str]:
    return {found.strip("`").rstrip(".:") for found in _IDENTIFIER.findall(text)}


def _is_echo(said: str, text: str, quotes: Sequence[str]) -> bool:
    """Whether it repeats the instruction, or the question's own labels."""
    lowered = normalize(said)
    if lowered.startswith(("rule:", "the person's words", "here is", "sure")):
        return True
    asked, own = normalize(INSTRUCTION).split(), normalize("\n".join([text, *quotes]))
    runs = (" ".join(asked[i : i + ECHO_WORDS]) for i in range(len(asked) - ECHO_WORDS + 1))
    return any(run in lowered and run not in own for run in runs)


def _script(text: str) -> str:
    """The script of most letters; of Latin letters also whether they are English or not."""
    counts: dict[str, int] = {}
    for letter in re.sub(r"`[^`]*`", " ", text):
        if letter.isalpha():
            name = unicodedata.name(letter, "?").split(" ", 1)[0]
            counts[name] = counts.get(name, 0) + 1
    most = max(counts, key=lambda name: (counts[name], name), default="")
    if most != "LATIN":
        return most
    words = set(normalize(text).split())
    return "english" if words & _ENGLISH or not content_words(text) else "latin"


_ENGLISH = frozenset(  # words that no other language of the labelled themes has
    "the a an of to in on for and or not never always use with without before after is are be do"  # noqa: SIM905
    " don't when this that instead by from only must should no it all every run".split()
)
