"""``morning.md``: what the night did, for the owner, with what failed in the first line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from everest_pipelines.core.records import Day, ProjectKey, State
from everest_pipelines.core.render.plain import clipped, code_line, code_span, one_line, visible

MAX_REVIEW = 10
MAX_LISTED = 20  # lines of one section; the rest is counted
MAX_TEXT = 280  # characters of a lesson or quote on its line
OLD_IMPORT_DAYS = 7  # a newest record older than this is an import of old transcripts


class MorningLesson(Struct, frozen=True, kw_only=True):
    """A lesson as the report names it."""

    short_id: str
    text: str
    project: ProjectKey
    state: State
    quote: str = ""
    seen: int = 1
    strength: float = 0.0


class MorningMerge(Struct, frozen=True, kw_only=True):
    """Two lessons that became one, or one that took another's place."""

    old_id: str  # short ids
    new_id: str
    text: str  # of the one that stays
    why: str = ""


class MorningReview(Struct, frozen=True, kw_only=True):
    """Something that only the owner can decide."""

    text: str
    command: str
    why: str = ""


class RepeatedError(Struct, frozen=True, kw_only=True):
    """An error that came more than once, by its class."""

    text: str
    project: ProjectKey
    times: int
    sessions: int


class Predictions(Struct, frozen=True, kw_only=True):
    """How the lessons' predictions did."""

    made: int = 0
    came_true: int = 0  # resolved: the matter came up again in time
    did_not: int = 0
    open: int = 0
    brier: float | None = None  # over all resolved so far; None while there are none
    base_brier: float | None = None  # of always predicting the base rate


class Morning(Struct, frozen=True, kw_only=True):
    """All that ``morning.md`` says. Texts are redacted by the caller. Empty lists: nothing."""

    day: Day  # the horizon: the last closed day
    newest_day: Day  # of the newest record read; "" when nothing was read at all
    newest_age_days: int = 0  # from the newest record to the night
    failures: Sequence[str] = ()  # a sentence each, ending with the command to type
    warnings: Sequence[str] = ()
    projects: int = 0
    sessions: int = 0  # all of these: since the last good night
    turns: int = 0
    episodes: dict[str, int] = {}  # by kind
    lessons: dict[str, int] = {}  # all there are now, by state
    learnt: Sequence[MorningLesson] = ()
    changed: Sequence[MorningLesson] = ()
    merged: Sequence[MorningMerge] = ()
    superseded: Sequence[MorningMerge] = ()
    disputed: Sequence[MorningLesson] = ()
    predictions: Predictions = Predictions()
    review: Sequence[MorningReview] = ()
    quarantined: dict[str, int] = {}  # lines, by reason
    quarantine_at: str = ""  # where to look
    strongest: Sequence[MorningLesson] = ()  # of the newest record's last month
    repeated_errors: Sequence[RepeatedError] = ()
    why_nothing: str = ""  # when nothing was learnt
    next_look: str = ""  # when to look again


def morning(report: Morning) -> str:
    """The report as Markdown, ``\\n`` at every end. The same report gives the same text."""
    parts = [
        _first_line(report),
        f"# Morning of {report.day}",
        *_failures(report),
        _read(report),
        *_old_import(report),
        *_nothing(report),
        *_section("Learnt", (_lesson(one) for one in report.learnt)),
        *_section("Changed", (_lesson(one) for one in report.changed)),
        *_section("Merged", (_merge(one, "into") for one in report.merged)),
        *_section("Superseded", (_merge(one, "by") for one in report.superseded)),
        *_section("Disputed", (_lesson(one) for one in report.disputed)),
        *_predictions(report.predictions),
        *_section("For you to decide", (_review(one) for one in report.review), MAX_REVIEW),
        *_quarantine(report),
        _now(report),
    ]
    if report.next_look:
        parts.append(f"Look again: {visible(report.next_look)}.")
    return "\n\n".join(part for part in parts if part) + "\n"


def _first_line(report: Morning) -> str:
    if report.failures:
        count = len(report.failures)
        more = f" (and {count - 1} more below)" if count > 1 else ""
        return f"**FAILED: {one_line(report.failures[0])}**{more}"
    if report.warnings:
        return f"**Everything ran; look at: {one_line(report.warnings[0])}**"
    return "Everything ran."


def _failures(report: Morning) -> list[str]:
    listed = [f"- {one_line(failure)}" for failure in report.failures[1:]]
    listed += [f"- {one_line(warning)}" for warning in report.warnings[0 if listed else 1 :]]
    return ["\n".join(["## What failed or needs a look", "", *listed])] if listed else []


def _read(report: Morning) -> str:
    kinds = _counts(report.episodes)
    episodes = _number(sum(report.episodes.values()), "episode")
    return (
        f"Read: {_number(report.sessions, 'session')} in {_number(report.projects, 'project')},"
        f" {_number(report.turns, 'turn')}; {episodes}{f' ({kinds})' if kinds else ''}."
    )


def _old_import(report: Morning) -> list[str]:
    if not report.newest_day or report.newest_age_days < OLD_IMPORT_DAYS:
        return []
    said = (
        f"The newest record is of {report.newest_day}, {report.newest_age_days} days before this"
        " night: these are old transcripts."
    )
    if not report.strongest:
        return [f"{said} No lesson was seen in their last month."]
    lines = _lines(_lesson(one) for one in report.strongest)
    return [f"{said} The strongest lessons of their last month:", *lines]


def _nothing(report: Morning) -> list[str]:
    if report.learnt or report.changed:
        return []
    why = report.why_nothing
    if not why and not report.sessions:
        why = "there was no new session to read"
    elif not why and not sum(report.episodes.values()):
        why = "nothing in these sessions was a correction, a repeated error or a standing rule"
    elif not why:
        why = "no matter was stated as a rule, and none came again in a second session"
    parts = ["## Nothing was learnt", f"Why: {visible(why).rstrip('.')}."]
    if report.repeated_errors:
        parts.append("The errors that came most often:")
        parts += _lines(_repeated(one) for one in report.repeated_errors)
    return parts


def _predictions(predictions: Predictions) -> list[str]:
    resolved = predictions.came_true + predictions.did_not
    if not (predictions.made or resolved or predictions.open):
        return []
    said = (
        f"{predictions.made} made, {resolved} resolved ({predictions.came_true} came true,"
        f" {predictions.did_not} did not), {predictions.open} open."
    )
    if predictions.brier is not None:
        said += f" Brier {predictions.brier:.3f}"
        if predictions.base_brier is not None:
            said += f" against {predictions.base_brier:.3f} of the base rate"
        said += "."
    return ["## Predictions", said]


def _quarantine(report: Morning) -> list[str]:
    count = sum(report.quarantined.values())
    if not count:
        return []
    where = f" They are kept in {code_span(report.quarantine_at)}." if report.quarantine_at else ""
    said = f"{_number(count, 'line')} could not be read: {_counts(report.quarantined)}.{where}"
    return ["## Quarantine", said]


def _now(report: Morning) -> str:
    if not report.lessons:
        return ""
    return f"Lessons now: {sum(report.lessons.values())} ({_counts(report.lessons)})."


def _section(title: str, lines: Iterable[str], limit: int = MAX_LISTED) -> list[str]:
    listed = _lines(lines, limit)
    return [f"## {title}", *listed] if listed else []


def _lines(lines: Iterable[str], limit: int = MAX_LISTED) -> list[str]:
    all_lines = list(lines)
    if not all_lines:
        return []
    more = len(all_lines) - limit
    return ["\n".join([*all_lines[:limit], *([f"- and {more} more"] if more > 0 else [])])]


def _lesson(lesson: MorningLesson) -> str:
    line = (
        f"- `{one_line(lesson.short_id)}` {_text(lesson.text)}"
        f" ({lesson.state}, {one_line(lesson.project)}, seen {lesson.seen}x)"
    )
    if lesson.quote and one_line(lesson.quote) != one_line(lesson.text):
        line += f"\n  said: {_text(lesson.quote)}"
    return line


def _merge(merge: MorningMerge, word: str) -> str:
    why = f" ({one_line(merge.why)})" if merge.why else ""
    old, new = one_line(merge.old_id), one_line(merge.new_id)
    return f"- `{old}` {word} `{new}` {_text(merge.text)}{why}"


def _review(review: MorningReview) -> str:
    why = f" {one_line(review.why)}:" if review.why else ""
    return f"- {_text(review.text)}{why}\n  {code_span(review.command)}"


def _repeated(error: RepeatedError) -> str:
    sessions = _number(error.sessions, "session")
    return f"- {error.times}x in {sessions}, {one_line(error.project)}: {_text(error.text)}"


def _text(text: str) -> str:
    return code_span(clipped(code_line(text), MAX_TEXT))


def _counts(counts: dict[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{count} {one_line(name)}" for name, count in ordered if count)


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
