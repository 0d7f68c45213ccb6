"""Groups of words by which a person's turn and an agent's answer are read.

A group is one intention in every language that we know it in, so that what a model learnt of it
from English holds for the others. Chinese has no word boundaries: its words stand outside them.
"""
# ruff: noqa: E501, RUF001 - people type these characters, and wide ones count twice

from __future__ import annotations

import re
from functools import lru_cache

from everest_pipelines.core.detect.anycase import AnyCase, found_in
from everest_pipelines.core.detect.model import REMEMBERED

_ASK = r"(?:please |can you |could you |let'?s |now |ok,? |then |bitte |kannst du |könntest du )*"

_CUES: dict[str, str] = {
    "starts_no": r"\A\W*(?:no|nope|wait|stop|hmm+|hm|oh|ah|again|nein|nee|halt|stopp|moment|warte|"
    r"espera|para|alto|нет|стоп|стой|подожди|погоди)\b|\A\W*(?:不|等|停|别|错)",
    "starts_but": r"\A\W*(?:but|instead|actually|i mean|aber|sondern|eigentlich|pero|sino|"
    r"en realidad|но|вообще-то)\b|\A\W*(?:但|可是|其实)",
    "starts_also": r"\A\W*(?:also|and|auch|außerdem|también|además|также|ещё|и)\b|\A\W*(?:另外|还有)",
    "starts_yes": r"\A\W*(?:yes|ok(?:ay)?|sure|great|perfect|good|nice|cool|looks good|thanks|ja|gut|"
    r"super|perfekt|prima|danke|passt|sieht gut aus|sí|vale|perfecto|gracias|genial|muy bien|да|"
    r"хорошо|отлично|спасибо|супер|ок)\b|\A\W*(?:好|可以|行|谢|没问题|看起来不错)",
    "starts_order": r"\A\W*" + _ASK + r"(?:add|create|write|implement|commit|push|run|make|update|"
    r"review|read|look|check|explain|show|fix|continue|go ahead|proceed|investigate|analy[sz]e|"
    r"open|build|rename|generate|merge|start|"
    r"füge?|erstelle?|schreibe?|baue?|zeige?|erkläre?|prüfe?|schau|lies|mach|implementiere?|"
    r"benenne?|starte?|aktualisiere?|nimm|ergänze?|kannst du|könntest du|"
    r"añade|agrega|crea|escribe|haz|implementa|ejecuta|actualiza|revisa|muestra|explica\w*|"
    r"renombra|reinicia|puedes|podrías|vamos|enséñame|"
    r"добавь|создай|напиши|сделай|реализуй|запусти|обнови|проверь|покажи|объясни|переименуй|"
    r"перезапусти|посмотри|давай|можешь|составь)\b|"
    r"\A\W*(?:帮我|请(?!不)|加|添加|写|创建|运行|跑|更新|检查|看一?下|解释|重命名|把|实现|做|选|重启)",
    "starts_question": r"\A\W*(?:what|how|which|where|who|when|do you|does|is there|are there|"
    r"can we|could we|would|was|wie|welche[rsn]?|wo|wer|wann|gibt es|qué|cómo|cuál\w*|dónde|quién|"
    r"cuándo|cuánt\w+|hay|что|как|как(?:ой|ая|ие)|где|кто|когда|есть ли|сколько|можно ли)\b|"
    r"\A\W*(?:什么|怎么|如何|哪|谁|多少|能不能|可以.{0,20}吗|还剩)",
    "asks_to": r"\A\W*(?:(?:ok(?:ay)?|oh|ah|alright|all right|yes|yeah|and|also|now|then|so|but|hey|"
    r"please|great|good|thanks|claude)[,.!]* ){0,3}(?:(?:can|could|would|will|shall) (?:you|we|i)|"
    r"do you think (?:we|you) c|let'?s|i(?:'d| would)? (?:like|want|need) (?:you )?to|please|"
    r"how (?:can|could|do|should) |is there a way|kannst du|könntest du|können wir|bitte|"
    r"puedes|podrías|podríamos|podemos|можешь|можно|давай)\b|\A\W*(?:请|帮|能不能|可以)",
    "why": r"\b(?:why|warum|wieso|weshalb|por qué|para qué|почему|зачем)\b|为什么|为何|干嘛",
    "right": r"\bright\s*\?|\b(?:are you sure|really|bist du sicher|wirklich|seguro|уверен|точно)\b"
    r"\s*\?|\bno\s*\?\s*\Z|确定|真的吗",
    "still": r"\b(?:still|again|immer noch|noch immer|wieder|nach wie vor|sigue[sn]?|todavía|aún|"
    r"otra vez|de nuevo|все еще|всё ещё|по-прежнему|опять|снова|всё равно|все равно)\b|仍|还是|依然",
    "not_working": r"\b(?:does(?:n'?t| not)|is(?:n'?t| not)|not|don'?t|can'?t|cannot|didn'?t|"
    r"won'?t|never) (?:\w+ )?(?:work\w*|correct|right|show\w*|display\w*|appear\w*|save\w*|"
    r"see\w*|exist\w*|realistic|enough)\b|\b(?:funktioniert|geht|läuft|laufen|klappt|stimmt|passt)"
    r" (?:\w+ ){0,3}nicht\b|\bno (?:funciona|va|sale|aparece|anda|pasan?|carga|compila)\b|"
    r"\bне (?:работает|появля\w+|видно|показыва\w+|проход\w+|запуска\w+|собира\w+)\b|"
    r"不行|不了|没有?(?:变|生效|反应|显示|通过)|根本没|不显示|不工作|无法|打不开",
    "failing": r"\b(?:fail(?:s|ed|ing)|error|broken|bug(?:ged)?|crash\w*|warning|unhappy|lost|"
    r"missing|duplicated?|annoying|wrong|incorrect|fehler\w*|kaputt|falsch\w*|schlägt fehl|"
    r"fehlgeschlagen|fehlt|defekt|falla\w*|roto|rota|está mal|incorrect[oa]s?|falta\w*|"
    r"ошибк\w*|слома\w+|неправильн\w+|неверн\w+|пада[ею]т|упал\w*)\b|"
    r"报错|错误|错了|失败|坏了|崩溃|不对|漏",
    "now_getting": r"\b(?:now i'?m (?:getting|seeing)|i(?:'m| am) getting|getting this|"
    r"i (?:still )?(?:see|get|can'?t see)|looks like|seems? (?:like|to)|it is still|"
    r"(?:bekomme|sehe) ich|ich (?:bekomme|sehe)|jetzt kommt|me sale|ahora (?:sale|da|recibo)|"
    r"(?:вижу|получаю)|теперь (?:вылетает|выдаёт|выдает))\b|现在(?:报|出现|变成|显示)|显示的是",
    "used_to": r"\b(?:used to|was (?:\w+ )?working|worked (?:before|fine)|like before|vorher|zuvor|"
    r"davor|antes|раньше|прежде)\b|之前|原来|原本",
    "should": r"\b(?:should(?:n'?t)?|must(?:n'?t)?|need(?:s)? to|supposed to|ought|soll\w*|"
    r"muss|müss\w+|should be|has to|deber\w+|debe[ns]?|tien[ea] que|tenía que|должн\w+|"
    r"надо|нужно было|следует)\b|应该|应当|必须",
    "instead": r"\b(?:instead(?: of)?|rather|replace|not just|only|statt\w*|stattdessen|nur|lieber|"
    r"en (?:lugar|vez) de|sino|solo|вместо|а не|лучше|только)\b|而不是|不是|改成|换成|只要",
    "dont": r"\b(?:do not|don'?t|no longer|never|stop|without|nicht|kein\w*|ohne|nunca|sin|"
    r"no (?:me|te|se|lo|la|los|las|es|hagas|pongas|uses|toques|hace falta|quiero|puedes|hay|"
    r"está|tiene|hagan)|не|без|нельзя|no need)\b|不要|别|勿|不用|没让",
    "want": r"\b(?:i(?:'d| would)? (?:want|like|love|prefer|rather)|we want|i meant?|my point|"
    r"i don'?t (?:like|want|think)|ich (?:will|möchte|meinte|wollte)|quiero|quería|prefiero|"
    r"me refería|pedí|я (?:хочу|хотел|имел в виду|просил|предпочитаю)|мне нужн\w+)\b|"
    r"我(?:要的|想要|的意思|说的|希望|没让)",
    "mistake": r"\b(?:not (?:correct|true|right|quite)|is wrong|incorrect|the issue (?:is|was)|"
    r"you (?:forgot|missed|removed|changed|broke|added|put|made|should)|misunder\w*|"
    r"assumption|makes? (?:no|it) sense|that'?s not|"
    r"hast du (?:\w+ ){0,4}(?:gelöscht|entfernt|geändert)|du hast (?:\w+ ){0,4}(?:vergessen|"
    r"gelöscht|entfernt|geändert|übersehen)|du hast vergessen|stimmt (?:so )?nicht|"
    r"missverstanden|nicht gefragt|viel zu \w+|te (?:equivoca\w*|falt\w+|olvid\w+)|"
    r"has (?:borrado|cambiado|olvidado|roto|quitado)|(?:cambi|borr|olvid|quit|romp)(?:aste|iste)|"
    r"no es lo que|no te lo|no tiene sentido|ты (?:забыл\w*|удалил\w*|поменял\w*|сломал\w*|"
    r"пропустил\w*|ошиба\w+|не так)|не то|об этом не просил|не просил|неправильно понял)\b|"
    r"你(?:把|漏|忘|删|改|弄|搞|理解错)|理解错|我没(?:有)?让|不是这个|太复杂",
    "fact": r"\b(?:already|actually|just|we (?:use|have|do|don'?t)|it'?s (?:a|not|an)|"
    r"there (?:is|are|was)|in fact|bereits|schon|eigentlich|heißt|ya (?:está|existe|hay)|"
    r"en realidad|se llama|уже|на самом деле|называется)\b|已经|其实",
    "thanks": r"\b(?:thanks|thank you|great|perfect|awesome|nice|good job|danke|super|perfekt|"
    r"prima|klasse|gracias|genial|perfecto|спасибо|отлично|супер)\b|谢谢|很好|不错|完美",
    "undo": r"\b(?:revert|undo|put back|bring (?:\w+ )*back|restore|remove that|roll ?back|"
    r"rückgängig|wiederherstell\w*|zurücksetz\w*|deshaz|revierte|revertir|restaura\w*|"
    r"recupéra\w*|откати\w*|верни|отмени|восстанови)\b|恢复|撤销|回滚|还原|改回",
    "think": r"\b(?:i think|i believe|i guess|maybe|not sure|could we|can'?t we|shouldn'?t we|"
    r"ich (?:glaube|denke)|vielleicht|creo que|quizá\w*|tal vez|думаю|кажется|может быть)\b|"
    r"我觉得|可能|也许",
    "image": r"\[image|\[image #",
    "always": r"\b(?:always|never|every ?time|from now on|in (?:the )?future|remember|"
    r"whenever|immer|nie|niemals|künftig|in zukunft|ab jetzt|merk dir|siempre|nunca|jamás|"
    r"a partir de ahora|de ahora en adelante|recuerda|всегда|никогда|впредь|отныне|запомни|"
    r"кажд(?:ый|ом|ым))\b|总是|永远|以后|从现在|记住|每次|所有的",
    "we_use": r"\b(?:we|this (?:repo|project)|our|i) (?:\w+ )?(?:use|do|don'?t|want|commit|"
    r"need|avoid|prefer|gitignore|explicitly|no longer|run|keep)\b|\bin (?:this|our) (?:repo|"
    r"project|codebase)\b|\bwir (?:verwenden|nutzen|benutzen|schreiben|machen|wollen)|"
    r"\b(?:in diesem projekt|bei uns|en este (?:proyecto|repo)|usamos|utilizamos|"
    r"no (?:editamos|usamos)|в (?:этом|нашем) проекте|у нас|мы (?:используем|пишем|не)|"
    r"предпочитаю|prefiero)\b|我们(?:项目|用|使用|不|的)|项目(?:里|中|用)",
    "use_x": r"(?:\A|[.!,;]\s*)\W*(?:please )?(?:use|avoid|prefer|keep|run|nutze?|verwende?|usa|"
    r"используй)\b",
    "no_longer": r"\b(?:no longer|not any ?more|anymore|deprecated|instead of|nicht mehr|"
    r"ya no|больше не)\b|不再",
    "generic": r"\b(?:tests?|commits?|prs?|docs?|markdown|code|files?|branch(?:es)?|sessions?|"
    r"releases?|comments?|everything|anything|any|all|each|every)\b",
    "here": r"\b(?:this|that|these|those|it|here|above|below|line|now)\b",
    "because": r"\b(?:because|since|so that|as that|otherwise|too slow|weil|porque|потому что)\b|因为",
    "why_arent": r"\bwhy (?:are|do|did|aren'?t|don'?t|is|isn'?t)\b.{0,20}\b(?:you|we)\b",
}  # fmt: skip

CUES: dict[str, AnyCase] = {name: AnyCase(text, re.MULTILINE) for name, text in _CUES.items()}

_OPENING = r"\A\W*(?:(?:ah|oh|ok|okay|yes|hmm|ach|ja|sí|да|vale)[,!.]? )?"
CONCESSION = AnyCase(
    _OPENING
    + r"(?:you(?:'re| are) (?:\w+ ){0,2}(?:right|correct)|i agree|agreed|good (?:catch|point|eye)|"
    r"(?:great|excellent|nice) (?:catch|point|observation)|sorry|my (?:mistake|bad|apolog\w+)|"
    r"i (?:sincerely )?apologi[sz]e|apologies|i see the (?:issue|problem|bug)|"
    r"i (?:misunderstood|misread|was wrong|missed|forgot)|"
    r"(?:that'?s |that is )?(?:a )?fair (?:point|enough|challenge|question)|"
    r"that'?s (?:right|on me|a (?:good|valid|fair) (?:point|catch))|"
    r"right[,.]? |understood|got it|no good reason|"
    r"(?:da )?(?:hast du|haben sie|du hast|sie haben) (?:\w+ )?recht|stimmt|entschuldig\w*|"
    r"guter (?:punkt|hinweis)|mein fehler|"
    r"tiene?s (?:\w+ )?razón|lo siento|perdón|disculpa|buen (?:punto|ojo)|es cierto|"
    r"ты прав\w*|вы правы|извини\w*|прости\w*|верно|действительно|моя ошибка|согласен)|"
    r"\A\W*(?:你说得对|您说得对|你是对的|抱歉|对不起|确实|是我(?:的错|弄错|理解错)|没错)"
)
ADMITS = AnyCase(
    r"\b(?:i should(?:n't| not)? have|i (?:missed|forgot|misread|misunderstood|overlooked|wrongly|"
    r"mistakenly|accidentally|was wrong)|(?:absolutely|completely|totally) right|my (?:mistake|"
    r"fault|bad)|that was (?:wrong|a mistake|my)|let me (?:fix|correct|undo|revert|redo|restore) |"
    r"i'll (?:fix|revert|undo|correct|restore|remove)|i need to fix|the root cause|that'?s a bug|"
    r"ich (?:habe|hätte) .{0,40}(?:vergessen|übersehen|falsch)|mein fehler|olvidé|me equivoqué|"
    r"mi error|я (?:забыл\w*|ошиб\w+|пропустил\w*)|моя ошибка)\b|我(?:漏|忘|弄错|搞错|理解错)"
)
FAULT = AnyCase(
    r"\b(?:i see (?:the|what|now)|the (?:issue|problem|bug|error) is|let me fix|i need to fix|"
    r"i'll fix|found (?:the|it)|i should(?:n't)? have|i missed|i forgot|fix (?:this|that|it)|"
    r"the root cause|let me revert|i'll revert|i'll update|das problem ist|el problema es|"
    r"проблема в)\b|问题(?:是|在于|出在)"
)
PRAISE = AnyCase(
    r"\A\W*(?:great|good|excellent|interesting|gute|sehr gute|buena|хороший|отличный) "
    r"(?:question|idea|thinking|research|suggestion|frage|idee|pregunta|idea|вопрос)|"
    r"\A\W*(?:perfect|great|excellent|awesome|wonderful|perfekt|perfecto|отлично)\b[!.,]|"
    r"\A\W*(?:好问题|好主意|太好了)"
)
CLAIMS = AnyCase(
    r"\b(?:done|fixed|complete[ds]?|works?|working|passing|pass(?:es|ed)?|successfully|ready|"
    r"implemented|all set|summary|updated|created|fertig|erledigt|listo|hecho|готово|сделано)\b|"
    r"✅|✓|完成|已经|搞定"
)
_COMMAND_WORDS = re.compile(
    r"(?i)^\W*(?:commit|push|continue|go|yes|ok|lgtm|y|proceed|thanks|weiter|ja|danke|sí|gracias|"
    r"да|спасибо|дальше|好的?|继续|谢谢)\W*$"
)


def straight(text: str) -> str:
    """The text with typewriter apostrophes, as the patterns have them; lengths stay."""
    return text.replace("’", "'")


def cues(text: str) -> dict[str, float]:
    """Which groups of cue words the text holds."""
    return dict.fromkeys(_cue_names(text), 1.0)


@lru_cache(maxsize=REMEMBERED)
def _cue_names(text: str) -> tuple[str, ...]:
    return found_in(CUES, straight(text))


def is_only_order(text: str) -> bool:
    """Whether the text is one word that lets the agent go on."""
    return _COMMAND_WORDS.match(text) is not None
