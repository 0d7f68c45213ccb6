"""How long a full refold takes: two years, 10,000 episodes, 20 projects. Prints one JSON object.

    python benchmarks/fold.py [--episodes N] [--projects N] [--days N] [--one-night] --json

Made-up episodes in the proportions of real transcripts: mostly errors of recurring classes, then
corrections, statements and surprises, with restatements by other sessions. Embedding is timed
apart; CPU seconds are of all threads.
``--one-night`` puts every episode on one day of one project.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import random
import resource
import time

from everest_pipelines.core.embed import HashedEmbedder, text_of
from everest_pipelines.core.records import Episode, EpisodeKind, Origin, micros
from everest_pipelines.core.sleep.calibration import calibration_of
from everest_pipelines.core.sleep.fold import Folded, fold
from everest_pipelines.text.ids import digest

FIRST = dt.date(2024, 1, 1)
TOOLS = tuple(
    """pnpm npm yarn uv pip cargo make just docker podman ruff black biome vite webpack
    """.split()  # noqa: SIM905
)
THINGS = tuple(
    """tests fixtures migrations schemas logs comments docstrings branches commits changelogs
    endpoints handlers widgets queues caches tokens invoices carts reports sessions
    """.split()  # noqa: SIM905
)
PLACES = ("api", "web", "worker", "billing", "search", "auth", "mobile", "infra", "docs", "cli")
FAILURES = (
    ("missing_dependency", "Missing dependency: ModuleNotFoundError: No module named '{t}'"),
    ("command_not_found", "Command not found: bash: {t}: command not found"),
    ("lint_error", "Lint error: {p}/{h}.py:{n}:1: F401 imported but unused"),
    ("build_error", "Build error: src/{h}.ts({n},5): error TS2304: Cannot find name '{t}'"),
    ("test_failure", "Test failure: {n} failed in {p} {h}"),
    ("cli_usage", "Wrong command-line usage: unknown option --{h} for {t}"),
    ("runtime_error", "Runtime error: KeyError: '{h}' in {p}"),
)


def day_end(day: str) -> int:
    """The exclusive end of a UTC day in microseconds."""
    after = dt.date.fromisoformat(day) + dt.timedelta(days=1)
    return micros(dt.datetime(after.year, after.month, after.day, tzinfo=dt.UTC))


def rule(dice: random.Random) -> str:
    first, second = dice.sample(TOOLS, 2)
    thing, other = dice.sample(THINGS, 2)
    place = dice.choice(PLACES)
    return dice.choice(
        (
            f"Use {first}, not {second}, in {place}.",
            f"Never commit {thing} of {place} before the {other} pass.",
            f"Keep {thing} next to the {other} in {place}.",
            f"Ask before you touch {thing} in {place}.",
            f"The {place} {thing} run on port {dice.randint(3000, 9999)}.",
            f"Don't add {thing} to the {place} {other}.",
        )
    )


def made_episode(dice: random.Random, number: int, day: dt.date, said: list[str]) -> Episode:
    draw = dice.random()
    family = f"{day.isoformat()}-{dice.randint(0, 2)}"
    at = day_end(day.isoformat()) - dice.randint(1, 80_000_000_000)
    sub, title, quote, origin = "", "", "", Origin.HUMAN
    kind, standing = EpisodeKind.CORRECTION, False
    if draw < 0.7:
        kind, origin = EpisodeKind.ERROR, Origin.TOOL
        sub, pattern = dice.choice(FAILURES)
        title = pattern.format(
            t=dice.choice(TOOLS),
            p=dice.choice(PLACES),
            h=dice.choice(THINGS),
            n=dice.randint(1, 999),
        )
    elif draw < 0.95:
        if said and dice.random() < 0.4:
            title = dice.choice(said)
        else:
            title = rule(dice)
            said.append(title)
        quote, standing = title, dice.random() < 0.4
    else:
        kind, origin = EpisodeKind.SURPRISE, Origin.ASSISTANT
        title = f"Wait, the {dice.choice(THINGS)} are not what I expected in {dice.choice(PLACES)}"
    return Episode(
        episode_id=digest("made", str(number)),
        kind=kind,
        sub=sub,
        title=title,
        gist=title,
        quote=quote,
        quote_to=len(quote),
        origin=origin,
        standing=standing,
        sure=True,
        score=1.0,
        occurred_at=at,
        turn_id=f"turn-{number}",
        session_id=family,
        family_id=family,
        fix="ran it again with the right name" if dice.random() < 0.3 else "",
        settled_at=at,
    )


def made(episodes: int, projects: int, days: int) -> dict[str, list[tuple[str, Episode]]]:
    dice = random.Random(7)
    rows: dict[str, list[tuple[str, Episode]]] = {}
    said: dict[str, list[str]] = {}
    for number in range(episodes):
        project = f"project-{dice.randrange(projects):02d}"
        day = FIRST + dt.timedelta(days=dice.randrange(days))
        episode = made_episode(dice, number, day, said.setdefault(project, []))
        rows.setdefault(project, []).append((day.isoformat(), episode))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--projects", type=int, default=20)
    parser.add_argument("--days", type=int, default=730)
    parser.add_argument("--one-night", action="store_true")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    days, projects = (1, 1) if asked.one_night else (asked.days, asked.projects)
    rows = made(asked.episodes, projects, days)
    embedder = HashedEmbedder()
    calibration = calibration_of(embedder.space)
    horizon = (FIRST + dt.timedelta(days=days)).isoformat()

    started = time.process_time()
    vectors = {}
    for own in rows.values():
        matrix = embedder.embed([text_of(episode) for _, episode in own])
        vectors.update((e.episode_id, row) for (_, e), row in zip(own, matrix, strict=True))
    embedded = time.process_time()
    folded: list[Folded] = [
        fold(
            own,
            vectors,
            scope=project,
            horizon=horizon,
            day_end=day_end,
            entries=(),
            calibration=calibration,
        )
        for project, own in sorted(rows.items())
    ]
    ended = time.process_time()
    result = {
        "episodes": asked.episodes,
        "projects": projects,
        "days": days,
        "cpu_s": round(ended - embedded, 2),
        "embed_cpu_s": round(embedded - started, 2),
        "cells_visited": sum(one.days for one in folded),
        "revisions": sum(len(one.lessons) for one in folded),
        "lessons": len({row.lesson_id for one in folded for _, row in one.lessons}),
        "merges": sum(len(one.merges) for one in folded),
        "predictions": sum(len(one.predictions) for one in folded),
        "waiting": sum(one.waiting for one in folded),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
