"""Merges what `defs/` offers, and stamps what every asset has; nothing else."""

import enum
from functools import lru_cache

import dagster as dg

from everest_pipelines.defs import jobs, resources
from everest_pipelines.defs.episodes import assets as episodes
from everest_pipelines.defs.measures import assets as measures
from everest_pipelines.defs.measures import checks as measures_checks
from everest_pipelines.defs.outputs import assets as outputs
from everest_pipelines.defs.outputs import sensors as outputs_sensors
from everest_pipelines.defs.partitions import grid
from everest_pipelines.defs.sleep import assets as sleep
from everest_pipelines.defs.sleep import sensors as sleep_sensors
from everest_pipelines.defs.transcripts import assets as transcripts
from everest_pipelines.defs.transcripts import sensors as transcripts_sensors
from everest_pipelines.lake.calendar import Calendar


class Owner(enum.StrEnum):
    """Who is asked first when something is red."""

    READING = "team:reading"
    MEMORY = "team:memory"
    OUTPUTS = "team:outputs"


GROUPS = {  # the folders of defs/ -> who owns them
    "transcripts": (transcripts.ASSETS, Owner.READING),
    "episodes": (episodes.ASSETS, Owner.READING),
    "sleep": (sleep.ASSETS, Owner.MEMORY),
    "outputs": (outputs.ASSETS, Owner.OUTPUTS),
    "measures": (measures.ASSETS, Owner.OUTPUTS),
}


@lru_cache(maxsize=8)
def build(calendar: Calendar, ingest_minutes: int = 15) -> dg.Definitions:
    """The definitions for a lake with this calendar."""
    cells = grid(calendar)

    def stamped(group: str) -> list[dg.AssetsDefinition | dg.AssetSpec]:
        """One pass over all specs of a group: the grid in force, group, owner, domain tag."""
        members, owner = GROUPS[group]

        def stamp(spec: dg.AssetSpec) -> dg.AssetSpec:
            return spec.replace_attributes(
                partitions_def=cells if spec.partitions_def else None,
                group_name=group,
                owners=[str(owner)],
                tags={**spec.tags, "everest/stage": group},
            )

        return list(dg.map_asset_specs(stamp, members))

    return dg.Definitions(
        assets=[asset for group in GROUPS for asset in stamped(group)],
        asset_checks=measures_checks.CHECKS,
        jobs=jobs.JOBS,
        sensors=[
            transcripts_sensors.transcript_sensor(ingest_minutes),
            sleep_sensors.night_sensor,
            outputs_sensors.ledger_sensor,
        ],
        resources={"night": resources.night_resource()},
        executor=dg.in_process_executor,
    )


def of_environment() -> dg.Definitions:
    """The definitions for the home and settings in force. Raises SettingsError."""
    home, settings = resources.in_force()
    return build(Calendar.of(home.ensure(), settings), settings.ingest_minutes)


defs = of_environment()
