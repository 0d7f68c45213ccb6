"""What agents and people read: one generation, swapped in whole behind the gates."""

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import dagster as dg

from everest_pipelines.defs.events import Reported, report
from everest_pipelines.defs.outputs.checks import (
    GATE_SPECS,
    STANDING_SPEC,
    gate_results,
    standing_result,
)
from everest_pipelines.defs.partitions import whole
from everest_pipelines.defs.resources import NightRun, wordless

if TYPE_CHECKING:
    from pathlib import Path


@dg.asset(
    deps=[whole("lessons"), whole("merges"), "ledger"],
    check_specs=[*GATE_SPECS, STANDING_SPEC],
    kinds={"duckdb"},
)
def published(
    context: dg.AssetExecutionContext, night: dg.ResourceParam[NightRun]
) -> Iterator[Reported]:
    """The generation that readers see: tables, lessons, snapshot and report, swapped in at once.

    Stale when a day has closed since, or when the ledger holds a decision it does not know. A red
    gate keeps the project it names at its last good lessons; the check's sentence ends with the
    command that mends or accepts it.
    """
    from everest_pipelines.night.publish import publish

    with wordless("publish"):
        done = publish(night.ws, night.horizon, night.accept)
    night.publication = done
    context.log.info(f"published {done.generation}, {len(done.visible)} lessons")
    yield report(
        context,
        "published",
        {
            "generation": done.generation,
            "horizon": done.horizon,
            "changed": done.changed,
            "visible": len(done.visible),
            "new": done.new,
            "updated": done.updated,
            "removed": done.removed,
            "merged": done.merged,
            "red_gates": len(done.blocked),
            **{f"lessons_{state}": count for state, count in done.by_state.items()},
        },
    )
    yield from gate_results(done.gates)
    with wordless("the check standing_invariant"):
        result = standing_result(night)
    yield result


def _generation(night: NightRun) -> "Path | None":
    from everest_pipelines.lake import generations

    current = generations.current(night.ws.home)
    return current.path if current else None


def _file(
    context: dg.AssetExecutionContext, night: NightRun, key: str, name: str
) -> dg.MaterializeResult:
    """Report one file of the generation: where it is, how large, and its digest."""
    folder = _generation(night)
    if folder is None or not (folder / name).is_file():
        return report(context, key, {"bytes": 0})
    content = (folder / name).read_bytes()
    return report(
        context,
        key,
        {
            "path": dg.MetadataValue.path(str(folder / name)),
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        },
    )


@dg.asset(deps=["published"], kinds={"json"})
def lessons_jsonl(
    context: dg.AssetExecutionContext, night: dg.ResourceParam[NightRun]
) -> dg.MaterializeResult:
    """`lessons.jsonl` of the generation: one visible lesson a line, the format others read.

    The same transcripts and ledger give the same bytes; the digest shows when they changed.
    """
    return _file(context, night, "lessons_jsonl", "lessons.jsonl")


@dg.multi_asset(
    specs=[
        dg.AssetSpec(
            "memory_md",
            deps=["published"],
            kinds={"markdown"},
            description=(
                "The section between our markers in each project's `MEMORY.md`. Written into the"
                " agents' folders only when rendering is on (`everest setup`); else it lies under"
                " the generation's `render/` alone. A red `rendered` names a folder left alone."
            ),
        ),
        dg.AssetSpec(
            "lesson_files",
            deps=["published"],
            kinds={"markdown"},
            description="One `everest-<id>.md` a lesson, beside `memory_md` and written with it.",
        ),
    ],
    check_specs=[
        dg.AssetCheckSpec(
            "rendered",
            asset="memory_md",
            description="Red when a folder could not be written, or two projects share it.",
        )
    ],
)
def rendered(
    context: dg.AssetExecutionContext, night: dg.ResourceParam[NightRun]
) -> Iterator[Reported]:
    """Bring the agents' own folders to what the generation says, where that is switched on."""
    from everest_pipelines.defs.outputs.checks import rendered_result
    from everest_pipelines.night.render import render

    with wordless("render"):
        done = render(night.ws)
    night.rendered = done
    folder = _generation(night)
    sections = list(folder.glob("render/*/MEMORY.md")) if folder else []
    files = list(folder.glob("render/*/everest-*.md")) if folder else []
    yield report(
        context,
        "memory_md",
        {
            "projects": len(sections),
            "folders_written": len(done.folders),
            "rendering_on": done.enabled,
        },
    )
    yield report(
        context,
        "lesson_files",
        {"files": len(files), "written": len(done.written), "removed": len(done.removed)},
    )
    yield rendered_result(done)


@dg.asset(deps=["published"], kinds={"sqlite"})
def recall_snapshot(
    context: dg.AssetExecutionContext, night: dg.ResourceParam[NightRun]
) -> dg.MaterializeResult:
    """`recall.sqlite` of the generation: what hooks and `everest recall` search."""
    return _file(context, night, "recall_snapshot", "recall.sqlite")


@dg.asset(deps=["published"], kinds={"markdown"})
def morning(
    context: dg.AssetExecutionContext, night: dg.ResourceParam[NightRun]
) -> dg.MaterializeResult:
    """`morning.md` of the generation: what the night did, what was left behind, what to review."""
    return _file(context, night, "morning", "morning.md")


ASSETS = [published, lessons_jsonl, rendered, recall_snapshot, morning]
