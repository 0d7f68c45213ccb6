"""The words by which the guard reads a rule: negation, preference, permission, opposites.

Function words of English, German, Spanish, Chinese and Hebrew; closed lists, no model.
"""

from __future__ import annotations

import re
from functools import lru_cache

from everest_pipelines.text.tokens import STOP_WORDS, content_words, words


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


NEGATORS = _words(
    """
    not no never don't dont doesn't didn't can't cannot won't mustn't shouldn't isn't aren't avoid
    hadn't haven't hasn't wasn't weren't
    stop without instead rather nor neither forbidden skip over than
    nicht kein keine keinen keiner keinem nie niemals statt anstatt ohne weder
    nunca jamás sin
    不要 别 不 勿 禁止 אל לא ולא אסור תפסיק
    """
)
# "never X without Y", "never X before Y": the order of the two is asked for, not X refused.
CONDITIONS = _words("without before until unless bevor ohne ehe except sin antes")
# "remove those comments": what is to go is refused, "never delete X" asks for X.
REMOVES = _words("remove delete drop entferne lösche")
_LIMITS = re.compile(r"\b(?:before|after|until|unless|when|once|if|without|bevor|nachdem|wenn)\b")
PREFERS = _words("prefer preferred prefers bevorzuge")
PLACES = _words("in on at for from when if inside within im am bei für aus wenn en")
# "you left it without tests", "why are you still using X": tells what was wrong.
COMPLAINT = re.compile(
    r"(?:and |but |again,? )?"
    r"(?:why (?:did|are|do|is|have|would|were|was) (?:you|there)\b(?! not\b)|"
    r"(?:you|there)(?: just|'ve| have| again| still)? ?"
    r"(?:(?:did|put|left|wrote|made|keep)\b(?!n't)|"  # says nothing by itself: read over
    r"(?=(?:are \w+ing|is|still|do|rewrote|broke|\w+ed)\b)))"
)
# "you didn't run the tests", "you forgot the tests": what was left undone is asked for.
OMISSION = re.compile(
    r"(?:and |but |again,? )?(?:why )?(?:you|there)(?:'ve| have)?(?: again| still)? ?"
    r"(?:did(?:n't| not)|have(?:n't| not)|has(?:n't| not)|had(?:n't| not)|never|not|"
    r"forgot(?: to| about)?|missed|skipped|omitted|failed to)\b"
)
# "that test only checks your mock": tells how the agent's work is, and asks for nothing.
DESCRIPTION = re.compile(r"(?:that|this|those|these)\b(?!.*\b(?:must|should|needs?)\b).*\byours?\b")
# "why aren't we using X?" asks for X.
ASKS_WHY_NOT = re.compile(
    r"^why (?:are|do|did|is|have|would)(?:n't| not) (?:we|you|they|it|there)\b"
    r"|^why (?:are|do|did|is|have) (?:we|you|they|it|there) not\b"
)
ASKING = _words(
    "ask asking asked permission approval ok okay consent confirm confirmation check checking wait"
    " rückfrage fragen nachfragen absprache 问 go ahead"
)
TURNS_BACK = _words("but use instead sondern sino prefer")

# Verbs and nouns that carry no decision of their own.
LIGHT = _words(
    """
    use used using us write written keep put follow have has get belong prefer make do go want need
    needed should must may please always every each any everi ani name thing way any time again said
    tell told see look here is are first second anything someth all new project repo repository this
    by we our run done stay work take let it's i'm you're set
    verwenden verwende benutze benutz nimm nehmen immer bitte soll muss
    用 要 请 都 先 一 个 把 去 给 了 的
    """
)

# Idioms that say "no": put into words that the guard reads.
IDIOMS = (
    (re.compile(r"\btake (?:the |those |these |all )*([\w .`-]{1,40}?) out\b"), r"remove \1"),
    (re.compile(r"\bget rid of\b"), "remove"),
    (re.compile(r"\b(?:keep|leave) ([\w .`-]{1,40}?) out of\b"), r"never put \1 in"),
)
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|[\u3002\uff01\uff1f\n]")
CLAUSE_END = re.compile(
    r"[,;:\u2014\u2013\uff0c\uff1b\uff1a\u3001]\s*|\s-\s"
    r"|\s(?=but\b|and\b|because\b|so that\b|und\b)"
)

PROHIBITION = re.compile(
    r"\b(?:never|must not|mustn't|may not|not allowed|forbidden|under no circumstances|niemals|nie|"
    r"nunca|jamás)\b|(?<!\w)ask (?:me )?(?:first|before)\b|禁止|绝不|אסור|לעולם לא"
)
_ASK = (
    r"(?:ask(?:ing|s)?|check(?:ing)? with|permission|approval|consent|confirm(?:ation|ing)?|"
    r"go-ahead|my ok\b|sign-off|rückfrage|nachfragen|zu fragen|absprache)"
)
_FREES = re.compile(
    rf"(?:(?:don't|do not|dont|needn't|no) (?:have to |need to |need for |need |)?{_ASK})|"
    rf"(?:stop {_ASK})|(?:without (?:\w+ ){{0,2}}?{_ASK})|(?:no need to (?:check|ask|wait))|"
    r"(?:ohne (?:zu fragen|rückfrage))|不用(?:每次)?(?:都)?问|无需询问"
)
_DEMANDS = re.compile(
    rf"{_ASK} (?:\w+ ){{0,3}}?(?:first|before)|(?:first|before \w+,?) {_ASK}|"
    rf"(?:wait for|get|need|with) (?:my |the )?{_ASK}|before (?:\w+ ){{1,6}}{_ASK}|"
    r"erst mich fragen|必须先问|先问我|שאל אותי לפני"
)
_NEGATED_WITHOUT = re.compile(
    rf"\b(?:never|not|don't|no|keine?n?|nie)\b[^.;]*\b(?:without|ohne) (?:\w+ ){{0,2}}?{_ASK}"
)

_AXES: tuple[tuple[str, str, str], ...] = (
    ("time", r"\bbefore\b|\bbevor\b|之前", r"\bafter(?:wards)?\b|\bnachdem\b|之后"),
    (
        "switch",
        r"\b(?:is|be|turned?|switch(?:ed)?|keep) on\b|\bon by default\b|\benabled?\b",
        r"\b(?:is|be|turned?|switch(?:ed)?|keep) off\b|\boff by default\b|\bdisabled?\b",
    ),
    (
        "edge",
        r"\bat the (?:start|beginning|top)\b|\bprepend\w*",
        r"\bat the (?:end|bottom)\b|\bappend\w*",
    ),
    (
        "length",
        r"\bshort(?:er)?\b|\bbrief(?:ly)?\b|\bconcise\w*|\btoo long\b|\bterse\b|\bkürzer\b|"
        r"\bkurz\b|简短|\bקצר\b",
        r"\b(?:more|full|greater|in) detail\b|\bdetailed\b|\bverbose\b|"
        r"\blong(?:er)? (?:answers?|explanations?)|\bexplain why\b|\bausführlich\w*|"
        r"详细|\bwalk me through\b",
    ),
    ("case", r"\b(?:upper-?case|capital(?:ized?|s)?)\b", r"\blower-?case\b"),
    ("access", r"\bpublic\b", r"\bprivate\b"),
    ("stage", r"\bstaging\b", r"\bprod(?:uction)?\b"),
    ("indent", r"\btabs\b", r"\bspaces\b"),
    ("sync", r"\bsync(?:hronous(?:ly)?)?\b", r"\basync(?:hronous(?:ly)?)?\b"),
    ("zone", r"\butc\b", r"\blocal time\b"),
    ("with", r"\bwith\b(?! (?:me|us)\b)", r"\bwithout\b"),
)
_COMPILED_AXES = tuple((name, re.compile(one), re.compile(two)) for name, one, two in _AXES)

# Words that say the same in a rule; each is replaced by the first of its line.
_SYNONYMS = """
short brief concise terse short
answer reply respond response
deploy release ship rollout
ok go-ahead goahead approval consent permission okay
pr pull-request
delete remove drop
log logger logging
repo repository
dependency dependencies library package
directory folder
doc docs documentation
message msg
prod production
env environment
config configuration
database db
function func method
test suite
alter change modify
"""
_SAME: dict[str, str] = {}

ERROR_CODE = re.compile(
    r"\b(?:TS|E|W|F|C|SC|CS|ORA-|PG)\d{3,5}\b"
    r"|(?<=code )-?\d{1,3}\b|(?<=status )\d{3}\b|\b[1-5]\d\d\b(?= [A-Z][a-z])"
    r"|(?<=Errno )\d+\b"
    r"|\bE[A-Z]{4,}\b"
    r"|\b[A-Z]\w*(?:Error|Exception|Warning)\b"
    r"|\b(?:SIG[A-Z]{3,}|CONFLICT|FAIL|panic|ERROR)\b",
)
# Names that different programs put before one and the same message.
EVERY_ERROR = frozenset({"oserror", "error", "fail"})

# A tool that echoes the input it could not use: the input says nothing about the error.
ERROR_ECHO = re.compile(
    r"(?m)^String: [\s\S]*|^Exit code \d+\s*$|</?tool_use_error>"
    r"|(?<=[Uu]sage: )\S+|\S+: (?=command not found)"
)
_IDENTIFIER = re.compile(r"<\w+>|\b\w*[a-z][A-Z]\w*\b|\b\w+_\w+\b|\b[\w-]+@\S+|:\s\w+\s*$")
_SHELLS = _words("bash zsh sh eval line usr bin error fatal warning")
_DIGIT = re.compile(r"\d")

_TOKEN = re.compile(
    r"(?<!\w)--?[a-z][\w-]*"  # a flag is one word: --no-verify negates nothing
    r"|(?:[\w@~.-]*/)+[\w@.*-]*"  # a path
    r"|[\w@][\w@]*(?:\.[\w]+)+"  # a file name, a version
    r"|(?<![\w.])\.[a-z]\w+(?:\.\w+)*"  # a hidden file: .env is not the environment
    r"|[^\W_]+(?:'[^\W_]+)?|_\w+"
)
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_PULL_REQUEST = re.compile(r"pull[ -]requests?|\bprs\b")
_LONG_NEGATOR = re.compile(r"不要|禁止|不用|别|不|勿")


def tokens(clause: str) -> list[str]:
    """The words of a normalised clause; flags, paths and file names whole, CJK by character."""
    found: list[str] = []
    for match in _TOKEN.finditer(_PULL_REQUEST.sub("pr", clause.replace("`", " "))):
        token = match[0]
        if _CJK.search(token):
            for piece in _LONG_NEGATOR.sub(lambda part: f" {part[0]} ", token).split():
                found.extend([piece] if piece in NEGATORS else words(piece))
        elif "/" in token:
            found.append(token.strip("./") or token)
        else:
            found.append(token)
    return found


@lru_cache(maxsize=65_536)
def stem(token: str) -> str:
    """A light English stem: endings of number and tense taken off; other words stay."""
    if token in _SAME:
        return _SAME[token]
    if not token.isascii() or not token.isalpha() or len(token) < 4:
        return token
    word = token
    if word.endswith("ies"):
        word = word[:-3] + "y"
    elif word.endswith(("ches", "shes", "xes", "sses")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "sl":
                word = word[:-1]
            break
    if word.endswith("e") and len(word) > 3:
        word = word[:-1]
    if word.endswith("y"):
        word = word[:-1] + "i"
    return _SAME.get(word, word)


def removes(clause: str, token: str) -> bool:
    """Whether the clause, which begins with ``token``, wants something gone for good."""
    return token in REMOVES and not _LIMITS.search(clause)


def is_empty(token: str, word: str) -> bool:
    """Whether a word carries no decision: a function word or a verb like "use"."""
    return not word or token in STOP_WORDS or token in LIGHT or word in LIGHT


def error_words(masked: str) -> list[str]:
    """The plain words of a masked message; names in camel case, digits and shells left out."""
    plain = _IDENTIFIER.sub(" ", masked)
    return [
        word for word in content_words(plain) if word not in _SHELLS and not _DIGIT.search(word)
    ]


def permission(flat: str) -> int:
    """+1 when the text asks to be asked first, -1 when it frees from asking, 0 otherwise."""
    if _NEGATED_WITHOUT.search(flat):
        return 1
    if _FREES.search(flat):
        return -1
    return 1 if _DEMANDS.search(flat) else 0


def poles(flat: str) -> dict[tuple[str, int], str]:
    """The ends of the axes that the text names, and the words that name them."""
    found: dict[tuple[str, int], str] = {}
    for name, *ends in _COMPILED_AXES:
        for end, pattern in enumerate(ends):
            named = pattern.search(flat)
            if named:
                found[name, end] = named[0]
    return found


def _fill_synonyms() -> None:
    for line in _SYNONYMS.strip().splitlines():
        first, *rest = line.split()
        for word in rest:
            _SAME[word] = stem.__wrapped__(first)
    for word, first in list(_SAME.items()):
        _SAME.setdefault(stem.__wrapped__(word), first)


_fill_synonyms()
REMOVING = frozenset(stem(word) for word in REMOVES)
