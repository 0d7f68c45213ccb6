"""The grid of days and projects. `everywhere` is the reserved project of what is shared."""

import dagster as dg

from everest_pipelines.core.records import EVERYWHERE, Day, ProjectKey
from everest_pipelines.lake.calendar import Calendar

PROJECTS = "projects"  # the dynamic dimension; keys are never removed, ranges follow their order
RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"
PARTITION = "dagster/partition"


def grid(calendar: Calendar) -> dg.MultiPartitionsDefinition:
    """Days in the lake's zone from its start to today, by project."""
    return dg.MultiPartitionsDefinition(
        {
            "day": dg.DailyPartitionsDefinition(
                start_date=calendar.start, timezone=calendar.tz, end_offset=1
            ),
            "project": dg.DynamicPartitionsDefinition(name=PROJECTS),
        }
    )


# What the stages declare; `definitions.build` replaces it by the grid of the lake in force.
CELLS = grid(Calendar("UTC"))


def whole(table: str) -> dg.AssetDep:
    """That an unpartitioned asset depends on a whole table of cells.

    The mapping names no partition: with any other, Dagster lists all keys of the grid in every
    run (0.1 s per 6,000), and calls the asset unsynced because some cell is empty. What is stale
    is known from `days` alone.
    """
    return dg.AssetDep(table, partition_mapping=dg.SpecificPartitionsPartitionMapping([]))


def cell(day: Day, project: ProjectKey) -> dg.MultiPartitionKey:
    """The key of one cell."""
    return dg.MultiPartitionKey({"day": day, "project": project})


def range_tags(first: Day, last: Day, projects: list[ProjectKey]) -> dict[str, str]:
    """Tags that make a run cover all projects on the days from `first` to `last`."""
    return {
        RANGE_START: f"{first}|{EVERYWHERE}",
        RANGE_END: f"{last}|{projects[-1] if projects else EVERYWHERE}",
    }


def days_of(tags: dict[str, str]) -> tuple[Day, Day] | None:
    """The days that a run's tags ask for, or None."""
    start = tags.get(RANGE_START) or tags.get(PARTITION)
    end = tags.get(RANGE_END) or tags.get(PARTITION)
    if not start or not end:
        return None
    return start.split("|")[0], end.split("|")[0]


def register_projects(instance: dg.DagsterInstance, keys: list[ProjectKey]) -> list[ProjectKey]:
    """Tell Dagster of project keys, the reserved one first; returns all it then knows."""
    known = list(instance.get_dynamic_partitions(PROJECTS))
    new = [key for key in dict.fromkeys([EVERYWHERE, *keys]) if key not in set(known)]
    if new:
        instance.add_dynamic_partitions(PROJECTS, new)
    return known + new
