"""Reading what is published: the generation in force and the one before this night."""

from __future__ import annotations

from everest_pipelines.core.records import Day, LessonRevision
from everest_pipelines.lake import generations, parquet
from everest_pipelines.lake.columns import from_arrow
from everest_pipelines.lake.generations import Generation
from everest_pipelines.lake.schemas import spec_of
from everest_pipelines.text.home import Home

PARTIAL = "partial"  # the file that marks the early generation of a first import


def is_partial(generation: Generation | None) -> bool:
    """Whether a generation was made before all that there was had been read."""
    return generation is not None and PARTIAL in generation.manifest.extra


def current(home: Home) -> Generation | None:
    """The generation in force, or None before the first."""
    return generations.current(home)


def before(home: Home, horizon: Day) -> Generation | None:
    """The newest generation of an earlier horizon that is still kept.

    A night is told against it, so that a night that runs again tells the same.
    """
    for name in reversed(generations.names(home)):
        manifest = generations.manifest_of(home.published / name)
        if manifest.horizon < horizon and PARTIAL not in manifest.extra:
            return Generation(
                name=name, path=home.published / name, changed=False, manifest=manifest
            )
    return None


def lessons(home: Home, generation: Generation | None) -> list[LessonRevision]:
    """The lessons that a generation shows; none where there is no generation."""
    if generation is None:
        return []
    spec = spec_of("lessons_now")
    return [
        row
        for file in generation.files["lessons_now"]
        if file.rows
        for row in from_arrow(spec, parquet.read(spec, home.published_files / file.name))
    ]
