"""Wordings of a model beside the lessons' own texts: asked once, kept by content, gated each time.

Every answer is cached, a refused one too, so a rerun asks nothing and gives the same rows. The
cache is an input of the fold: ``tag`` names what it holds, and more answers make days stale.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everest_pipelines.core.records import VISIBLE_STATES, LessonKind, LessonRevision
from everest_pipelines.core.sleep import wording
from everest_pipelines.night.models.cache import Answers
from everest_pipelines.night.models.choice import chosen
from everest_pipelines.night.models.writing import Writer, open_writer
from everest_pipelines.night.workspace import Workspace
from everest_pipelines.text.atomic import write_atomic
from everest_pipelines.text.errors import EverestError
from everest_pipelines.text.home import Home

WORDED = frozenset({LessonKind.RULE, LessonKind.NOTE})  # an error's text is its message


class Worded(Struct):
    """What was asked and what came of it; ``why`` tells why the model was not asked further."""

    asked: int = 0
    kept: int = 0
    refused: dict[str, int] = {}
    why: str = ""


def model_of(ws: Workspace) -> str:
    """The configured writing model, empty for none."""
    return ws.settings.write_model or chosen(ws.home).write


def tag(ws: Workspace) -> str:
    """Names the answers that the fold may use; empty without a model."""
    model = model_of(ws)
    return f"{model}:{Answers(ws.home).sentences_digest(wording.QUESTION)}" if model else ""


def ask(
    ws: Workspace,
    lessons: Sequence[LessonRevision],
    *,
    writer: Writer | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Worded:
    """Ask the model about every visible rule that it was not asked about yet.

    Ends at the night's deadline, or when the model fails: the rest waits for the next night.
    """
    done = Worded()
    model = model_of(ws)
    if not model:
        return done
    until = clock() + 60 * ws.settings.model_minutes
    answers = Answers(ws.home)
    waiting = {_digest(one): one for one in lessons if _is_worded(one)}
    known = answers.sentences(model, wording.QUESTION, sorted(waiting))
    try:
        asked = writer or open_writer(ws.settings, model, server=ws.model_server)
        for name in sorted(waiting.keys() - known.keys()):
            if clock() >= until:
                done.why = f"the {ws.settings.model_minutes} minutes of the night were over"
                break
            lesson = waiting[name]
            question = wording.question_of(lesson.text, _quotes(lesson))
            reply = asked.ask(wording.INSTRUCTION, question, wording.SCHEMA)
            answers.keep_sentence(model, wording.QUESTION, name, reply)
            done.asked += 1
            reason = _refused(reply, lesson)
            done.kept += not reason
            if reason:
                done.refused[reason] = done.refused.get(reason, 0) + 1
    except EverestError as error:
        done.why = str(error)
    return done


def worded(ws: Workspace, lessons: Sequence[LessonRevision]) -> list[LessonRevision]:
    """The same rows in the same order, each with the wording that passes the gate, if any."""
    model = model_of(ws)
    if not model:
        return list(lessons)
    digests = {_digest(one) for one in lessons if _is_worded(one)}
    known = Answers(ws.home).sentences(model, wording.QUESTION, sorted(digests))
    return [
        replace(one, wording=wording.answer_of(reply))
        if _is_worded(one)
        and (reply := known.get(_digest(one))) is not None
        and not _refused(reply, one)
        else one
        for one in lessons
    ]


def keep(ws: Workspace, done: Worded) -> None:
    """Write what the night's asking came to, for ``last``."""
    write_atomic(_path(ws.home), msgspec.json.encode(done) + b"\n")


def last(home: Home) -> Worded:
    """What the last night's asking came to; empty when none was asked."""
    try:
        return msgspec.json.decode(_path(home).read_bytes(), type=Worded)
    except (FileNotFoundError, msgspec.DecodeError):
        return Worded()


def _path(home: Home) -> Path:
    return home.models / "wording.json"


def _is_worded(lesson: LessonRevision) -> bool:
    return lesson.state in VISIBLE_STATES and lesson.lesson_kind in WORDED


def _quotes(lesson: LessonRevision) -> tuple[str, ...]:
    return (lesson.quote,) if lesson.quote else ()


def _refused(reply: str, lesson: LessonRevision) -> str:
    said = wording.answer_of(reply)
    return wording.refused(said, text=lesson.text, quotes=_quotes(lesson)) if said else "schema"


def _digest(lesson: LessonRevision) -> str:
    question = wording.question_of(lesson.text, _quotes(lesson))
    return hashlib.sha256(question.encode("utf-8", "surrogatepass")).hexdigest()
