"""``everest status`` and ``everest doctor``."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from everest_pipelines.cli.context import (
    answer,
    as_typed,
    home,
    opened,
    program,
    size,
    table,
    tell,
)
from everest_pipelines.text.settings import load_lenient

if TYPE_CHECKING:
    from everest_pipelines.night.status import Status


def status(arguments: Namespace) -> int:
    """How the memory stands; 1 when something was left behind."""
    from everest_pipelines.lake.lock import holder
    from everest_pipelines.night.status import status as look
    from everest_pipelines.night.workspace import open_workspace

    place, settings = opened()
    found = look(open_workspace(place, settings))
    busy = holder(place)
    if arguments.json:
        from msgspec import to_builtins

        answer(
            to_builtins(found)
            | {"left_behind": found.left_behind, "working": str(busy) if busy else ""}
        )
    else:
        _print(found)
        if busy:
            print(f"\nAt work now: {busy}")
    for failure in found.failures:
        tell(f"left behind: {failure.where}: {failure.what}")
    for note in found.notes:
        tell(f"note: {note}")
    return int(found.left_behind)


def _print(found: Status) -> None:
    rows: list[tuple[str, ...]] = [("stage", "days expected", "present", "stale", "open", "rows")]
    for stage in found.stages:
        rows.append(
            (
                stage.stage,
                f"{stage.expected:,}",
                f"{stage.present:,}",
                _days(stage.stale),
                _days(stage.open),
                f"{stage.rows:,}",
            )
        )
    table(rows)
    night = f", {found.last_good_night[:16].replace('T', ' ')} UTC" if found.last_good_night else ""
    print(f"\ngeneration      {found.generation or f'none yet: {program()} night'}{night}")
    print(
        f"horizon         {found.generation_horizon or '-'}; the last closed day is {found.horizon}"
    )
    print(f"lessons         {found.lessons:,}")
    print(f"transcripts     {found.files:,} files read, {found.unread:,} with something new")
    if found.oldest_unread:
        print(f"oldest unread   {found.oldest_unread} ({found.oldest_unread_at[:16]})")
    quarantine = ", ".join(f"{count} {reason}" for reason, count in found.quarantined.items())
    print(f"quarantined     {quarantine or 'nothing'}")
    if found.unknown_types:
        unknown = ", ".join(f"{count} {name}" for name, count in found.unknown_types.items())
        print(f"unknown types   {unknown}")
    print(f"home            {found.home}, {size(found.home_bytes)}")
    grew = ", ".join(f"{count / 1000:+,.0f}" for count in found.event_log_growth)
    nights = f"; kB in each of the last nights: {grew}" if grew else ""
    print(f"event log       {size(found.event_log_bytes)}{nights}")


def _days(days: list[str]) -> str:
    if not days:
        return "-"
    return days[0] if len(days) == 1 else f"{len(days)}: {days[0]} … {days[-1]}"


def doctor(arguments: Namespace) -> int:
    """What is misconfigured, each with the command that mends it; 1 when anything is."""
    from everest_pipelines.cli.checks import CHECKS, Case

    place = home()
    settings, problems = load_lenient(os.environ, place.config)
    found = [
        finding
        for check in CHECKS
        for finding in check(Case(place, settings, tuple(problems), dict(os.environ), sys.platform))
    ]
    wrong = [finding for finding in found if not (finding.good or finding.note)]
    if arguments.json:
        answer({"good": not wrong, "findings": [finding.body() for finding in found]})
    else:
        for finding in found:
            mark = "note " if finding.note else "good " if finding.good else "WRONG"
            print(f"{mark}  {finding.sentence}")
            if finding.command and not finding.good:
                print(f"       Next: {as_typed(finding.command)}")
    return int(bool(wrong))
