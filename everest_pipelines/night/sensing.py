"""What the sensors decide, as pure functions: no clock, no disk, no Dagster.

What is wanted has a digest. A sensor's cursor is that digest and nothing more; what is pending is
looked up at every tick, so nothing is lost when a run fails. Earlier runs for the same digest are
its attempts: a failed one is asked for again after a growing pause, and one that a gate stopped is
not asked for again until the digest is another.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from everest_pipelines.core.records import Day, Micros, ProjectKey
from everest_pipelines.text.ids import digest

if TYPE_CHECKING:
    from everest_pipelines.night.look import Look

_MINUTE: Micros = 60_000_000
FIRST_PAUSE = 5 * _MINUTE  # a passing fault (a full disk, a lock) is often gone by then
LONGEST_PAUSE = 6 * 60 * _MINUTE  # four tries a day cost less than a second each

StageDay = tuple[str, Day]


class Outcome(enum.StrEnum):
    """How a run for some digest ended."""

    RUNNING = "running"  # or queued
    DONE = "done"
    BLOCKED = "blocked"  # all work is done; a gate kept something from being published
    FAILED = "failed"  # also: something was left behind


class Attempt(Struct, frozen=True):
    """An earlier run for the same digest. ``ended_at``: microseconds UTC, 0 while it runs."""

    outcome: Outcome
    ended_at: Micros = 0


class Decision(Struct, frozen=True, kw_only=True):
    """Whether to ask for a run. ``why`` is a sentence with counts: the tick shows it."""

    ask: bool
    why: str
    digest: str = ""
    attempt: int = 0
    first: Day = ""
    last: Day = ""

    @property
    def run_key(self) -> str:
        """Unique per digest and attempt: a key that was used once is never run again."""
        return f"{self.digest}:{self.attempt}"


def pause_after(failures: int) -> Micros:
    """Microseconds to wait after so many failed attempts in a row."""
    return min(FIRST_PAUSE * 2 ** max(failures - 1, 0), LONGEST_PAUSE)


def missing_keys(minted: Iterable[ProjectKey], known: Iterable[ProjectKey]) -> list[ProjectKey]:
    """Project keys that Dagster has not been told of, in the order of their minting."""
    have = set(known)
    return [key for key in dict.fromkeys(minted) if key not in have]


def transcripts(
    looked: Look,
    stale: Sequence[StageDay],
    *,
    attempts: Callable[[str], Sequence[Attempt]],
    busy: str,
    day_of: Callable[[Micros], Day],
    now: Micros,
) -> Decision:
    """Whether files are to be read, or days that were read are to be derived.

    ``stale`` are the days of sessions, episodes and vectors that are not good; ``busy`` names a
    run that is at work, or is empty. The days of the decision run from the earliest that a pending
    file was written on, or that is stale, to today.
    """
    counts = (
        f"{len(looked.pending)} of {looked.seen} files to read, {looked.quiet} still being"
        f" written, {len(looked.unreadable)} unreadable, {len(stale)} stale stage days"
    )
    if not looked.pending and not stale:
        return Decision(ask=False, why=f"nothing new: {counts}")
    wanted = digest(
        "transcripts",
        *(
            part
            for one in sorted(looked.pending, key=lambda one: one.path)
            for part in (one.path, str(one.size), str(one.mtime_ns))
        ),
        *(part for pair in sorted(stale) for part in pair),
    )
    today = day_of(now)
    written = [min(day_of(one.mtime_ns // 1000), today) for one in looked.pending]
    return _decide(
        wanted,
        counts,
        attempts(wanted),
        busy,
        now,
        first=min([*written, *(day for _, day in stale), today]),
        last=today,
        settles=frozenset(),  # what is still pending after a run is wanted still
    )


def night(
    stale: Sequence[StageDay],
    *,
    horizon: Day,
    state: str,
    published: Day,
    attempts: Callable[[str], Sequence[Attempt]],
    busy: str,
    now: Micros,
) -> Decision:
    """Whether a day has closed since the last publication, or closed days are stale.

    ``state`` names all that the fold up to ``horizon`` is made of ("" when nothing was ever read);
    ``published`` is the horizon of the generation in force.
    """
    if not state:
        return Decision(ask=False, why="nothing was read yet")
    closed = published < horizon
    if not closed and not stale:
        return Decision(ask=False, why=f"published up to {published}, no closed day is stale")
    wanted = digest("night", horizon, state, *(part for pair in sorted(stale) for part in pair))
    counts = f"{len(stale)} stale stage days, published up to {published or 'never'}"
    return _decide(
        wanted,
        counts,
        attempts(wanted),
        busy,
        now,
        first=min([*(day for _, day in stale), horizon]),
        last=horizon,
        settles=frozenset({Outcome.DONE, Outcome.BLOCKED}),
    )


def decisions(
    newest: str,
    *,
    published: str,
    attempts: Callable[[str], Sequence[Attempt]],
    busy: str,
    horizon: Day,
    now: Micros,
) -> Decision:
    """Whether the ledger holds something that the last publication does not know.

    ``newest`` and ``published`` are ids of ledger entries, in the order of time.
    """
    if not newest:
        return Decision(ask=False, why="nothing was decided yet")
    if newest <= published:
        return Decision(ask=False, why="every decision is published")
    wanted = digest("ledger", newest)
    return _decide(
        wanted,
        "the ledger holds decisions that are not published",
        attempts(wanted),
        busy,
        now,
        first=horizon,
        last=horizon,
        settles=frozenset({Outcome.DONE, Outcome.BLOCKED}),
    )


def _decide(
    wanted: str,
    counts: str,
    attempts: Sequence[Attempt],
    busy: str,
    now: Micros,
    *,
    first: Day,
    last: Day,
    settles: frozenset[Outcome],
) -> Decision:
    def wait(why: str) -> Decision:
        return Decision(ask=False, why=f"{why}: {counts}", digest=wanted, attempt=len(attempts))

    if any(one.outcome is Outcome.RUNNING for one in attempts):
        return wait("a run is at it")
    if busy:
        return wait(f"{busy} is at work")
    if any(one.outcome in settles for one in attempts):
        blocked = any(one.outcome is Outcome.BLOCKED for one in attempts)
        return wait("a gate is red and there is no new input" if blocked else "done already")
    if attempts:
        again = max(one.ended_at for one in attempts) + pause_after(len(attempts))
        if now < again:
            return wait(
                f"attempt {len(attempts)} failed, the next in {-(now - again) // _MINUTE} min"
            )
    return Decision(
        ask=True,
        why=counts,
        digest=wanted,
        attempt=len(attempts) + 1,
        first=first,
        last=last,
    )
