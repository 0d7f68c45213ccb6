"""Publishing and rendering what a decision asks for, at once when nobody else is at work."""

from __future__ import annotations

from everest_pipelines.text.errors import BusyError, EverestError
from everest_pipelines.text.home import Home
from everest_pipelines.text.settings import Settings

FOLLOWS = ("The agents' files follow when the run at work ends; then: everest publish",)


def publish_now(
    place: Home, settings: Settings, who: str, *, without: str = ""
) -> tuple[str, ...] | None:
    """Publish and render; None when all is out, else sentences.

    ``without``: the id of a lesson that must not be among the visible afterwards.
    """
    try:
        from everest_pipelines.lake.generations import current
        from everest_pipelines.lake.lock import held
        from everest_pipelines.night.publish import publish
        from everest_pipelines.night.render import render
        from everest_pipelines.night.workspace import open_workspace

        with held(place, who, wait=False):
            generation = current(place)
            if generation is None:
                return None
            ws = open_workspace(place, settings)
            done = publish(ws, generation.manifest.horizon)
            failures = render(ws).failures
    except BusyError:
        return FOLLOWS
    except (EverestError, OSError) as error:
        return (f"It is kept, but the agents' files do not show it yet: {error}",)
    everything = any(gate.project == "" for gate in done.blocked)
    stays = without and any(lesson.lesson_id == without for lesson in done.visible)
    if everything or stays:
        return (
            *(f"not published: {one.gate} {one.project}: {one.sentence}" for one in done.blocked),
            "It is kept; the agents' files follow with the next: everest night",
        )
    if failures:
        return tuple(f"left behind: {failure.where}: {failure.what}" for failure in failures)
    return None
