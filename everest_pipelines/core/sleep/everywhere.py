"""What holds everywhere: lessons that the person approved beyond their project."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from everest_pipelines.core import trust
from everest_pipelines.core.records import EVERYWHERE, Day, LessonRevision, Micros, State
from everest_pipelines.core.sleep.fold import Folded, entries_by_day
from everest_pipelines.core.trust import Entry


def fold_everywhere(
    projects: Sequence[tuple[Day, LessonRevision]],
    entries: Sequence[Entry],
    *,
    horizon: Day,
    day_end: Callable[[Day], Micros],
) -> Folded:
    """Folds the reserved project from all projects' revisions up to the end of ``horizon``.

    Only a review ``approve`` or ``pin`` with ``everywhere`` brings a lesson here; later reviews of
    the lesson's new id change it like any other. Its row names the project's lesson as source.
    """
    done = Folded()
    told = entries_by_day(entries, horizon=horizon, day_end=day_end)
    here: dict[str, LessonRevision] = {}
    known: list[Entry] = []
    for day in sorted(told):
        known.extend(told[day])
        dead = trust.tombstones(known, scope=EVERYWHERE)
        changed: dict[str, tuple[LessonRevision, State]] = {}
        for entry in told[day]:
            latest = here | {name: row for name, (row, _) in changed.items()}
            answer = _answer(entry, day, projects, latest)
            if answer is not None:
                changed[answer[0].lesson_id] = answer
        for lesson_id in sorted(changed):
            row, came_from = changed[lesson_id]
            _write(row, came_from, here, dead, day, day_end(day), done)
        done.days += 1
    return done


def _answer(
    entry: Entry,
    day: Day,
    projects: Sequence[tuple[Day, LessonRevision]],
    here: dict[str, LessonRevision],
) -> tuple[LessonRevision, State] | None:
    """The lesson's new row and the state that it comes from; None: not for here."""
    state = trust.decided(entry)
    if state is None:
        return None
    own = here.get(str(entry.get("lesson_id", "")))
    if own is not None:
        changed = trust.apply_entries([own], [entry])
        return (changed[-1], own.state) if len(changed) > 1 else None
    if not trust.raises_everywhere(entry):
        return None
    last = trust.newest(row for made, row in projects if made <= day)
    found = trust.resolve(entry, last)
    return None if found is None else (trust.shared(last[found], entry), last[found].state)


def _write(
    row: LessonRevision,
    came_from: State,
    here: dict[str, LessonRevision],
    dead: frozenset[str],
    day: Day,
    now: Micros,
    done: Folded,
) -> None:
    old = here.get(row.lesson_id)
    ended = now if row.state in (State.REJECTED, State.RETIRED) else None
    row = msgspec.structs.replace(
        row, revision=old.revision + 1 if old else 1, valid_from=now, valid_to=ended
    )
    why = trust.gate(
        row,
        dead,
        previous=old.state if old else came_from,
        actor=trust.Actor.PERSON,
        via=trust.Via.TERMINAL,
    )
    if why is not None:
        done.refused.append((day, row.lesson_id, why))
        return
    here[row.lesson_id] = trust.sealed(row)
    done.lessons.append((day, here[row.lesson_id]))
