"""Which words of a text are searched by, and which prompts say nothing."""

from __future__ import annotations

from everest_pipelines.recall.stem import stem
from everest_pipelines.text.tokens import STOP_WORDS, normalize, search_terms

# Words that, alone, carry no matter. In a longer prompt they are words like others ("go" is a
# language, "next" a framework).
_WORDS = """
    again alright also awesome continue cool correct done exactly fine go good great hey hi hello hm
    look looks hmm hmmm k lgtm more next nice nope ok okay perfect proceed retry right sounds start
    stop sure thank thx try understood wait work works wow y yeah yep yup n it keep going ahead run
    alles ausgezeichnet bestens danke einverstanden fertig genau gut hallo klar los mach mal passt
    prima richtig stimmt stopp super toll verstanden warte weiter weitermachen
    adelante bien bueno claro continúa continua correcto dale exacto genial gracias hecho hola listo
    perfecto sigue vale venga
    bien continuer continuez merci oui d'accord parfait vas bene continua grazie perfetto
    beleza certo obrigado perfeito pronto segue sim
"""
_RUSSIAN = (
    "ага хорошо да дальше давай продолжай продолжайте спасибо "  # noqa: RUF001
    "понятно готово отлично ок окей нет"
)
_SAYS_NOTHING = frozenset((_WORDS + _RUSSIAN).split())
_SAYS_NOTHING_CJK = (
    "好的|好吧|好了|好|继续|谢谢|多谢|感谢|可以了|可以|没问题|是的|是|对的|对|行|嗯|不用了|不用|不是|不对|不|"
    "接着|下一步|开始|停|等等|等一下|明白了?|知道了?|了解|完成了?|请|吧|了|啊|呢|的|一下|"
    "はい|いいえ|続けて|ありがとう|お願いします|네|아니요|계속|감사합니다"
)


def index_terms(text: str) -> list[str]:
    """What a stored text is found by, in order: stems without stop words, CJK bigrams."""
    return [stem(term) for term in search_terms(text) if _carries(term)]


def query_terms(query: str) -> dict[str, str]:
    """What a prompt is asked by: each stem once, in order, with the word that the prompt has.

    Empty when the prompt says nothing.
    """
    if says_nothing(query):
        return {}
    asked: dict[str, str] = {}
    for term in search_terms(query):
        if _carries(term):
            asked.setdefault(stem(term), term)
    return asked


def says_nothing(query: str) -> bool:
    """Whether a prompt only agrees, greets or tells the agent to go on, in many languages."""
    rest = normalize(query)
    if not rest.isascii() and any("\u3005" <= sign <= "\ufaff" for sign in rest):
        import re

        rest = re.sub(_SAYS_NOTHING_CJK, " ", rest)
    return not any(_says_something(term) for term in search_terms(rest))


def _says_something(term: str) -> bool:
    if term.isascii() and len(term) == 1:  # "y", "2": an answer to a menu
        return False
    return _carries(term) and term not in _SAYS_NOTHING


def _carries(term: str) -> bool:
    if len(term) == 2 and not term.isascii() and not term[0].isdigit():
        # of a CJK bigram both characters must carry something: not 的, not 了
        return term not in STOP_WORDS and not (term[0] in STOP_WORDS or term[1] in STOP_WORDS)
    return term not in STOP_WORDS and bool(term.strip("_'"))
