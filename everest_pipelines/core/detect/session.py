"""What one session was about on one day."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from everest_pipelines.core.detect.counts import count_day, group_days
from everest_pipelines.core.detect.finding import one_line
from everest_pipelines.core.detect.scene import Scene, is_person
from everest_pipelines.core.detect.sentences import as_rule, sentences
from everest_pipelines.core.records import (
    Day,
    Episode,
    EpisodeKind,
    Micros,
    Origin,
    SessionDay,
    Turn,
)
from everest_pipelines.text.ids import digest

NAME, VERSION = "session", 1


def detect(scene: Scene, day_of: Callable[[Micros], Day]) -> Iterator[Episode]:
    """One episode a session and day, of what the person asked for and how much was done."""
    for (session_id, day), turns in group_days(scene.turns, day_of):
        counted = count_day(turns)
        prompt = next((turn for turn in turns if is_person(turn)), None)
        first = min(turns, key=lambda turn: (turn.occurred_at, turn.turn_id))
        last = max(turns, key=lambda turn: (turn.occurred_at, turn.turn_id))
        title, span = _title(prompt)
        if counted.machine:
            title = "A machine's session"
        trigger = prompt or first
        yield Episode(
            episode_id=digest(session_id, day),
            kind=EpisodeKind.SESSION,
            title=title,
            gist=one_line(f"{title.rstrip('.…')} ({_counts(counted)})", 400),
            quote=trigger.text[span[0] : span[1]],
            quote_from=span[0],
            quote_to=span[1],
            origin=Origin.HUMAN if prompt else Origin.HARNESS,
            sure=True,
            score=1.0,
            # the episode stands where the session's day starts; it grows until the day's last turn
            occurred_at=first.occurred_at,
            turn_id=trigger.turn_id,
            session_id=session_id,
            family_id=first.family_id,
            source_path=trigger.source_path,
            line_from=trigger.line_from,
            line_to=trigger.line_to,
            detector=NAME,
            detector_version=VERSION,
            reason="session_day",
            settled_at=last.occurred_at,
        )


def _title(prompt: Turn | None) -> tuple[str, tuple[int, int]]:
    if prompt is None:
        return "A session without a prompt of a person", (0, 0)
    own = sentences(prompt.text)
    if own:
        return one_line(as_rule(own[0].text)), (own[0].start, own[0].end)
    return one_line(prompt.text, 80) or "A prompt without words", (0, 0)


def _counts(counted: SessionDay) -> str:
    parts = [
        (counted.human_turns, "prompt"),
        (counted.tool_calls, "tool call"),
        (counted.tool_errors, "error"),
        (counted.refused, "refusal"),
        (counted.interruptions, "interruption"),
    ]
    shown = [f"{number} {name}{'' if number == 1 else 's'}" for number, name in parts if number]
    return ", ".join(shown) or "nothing done"
