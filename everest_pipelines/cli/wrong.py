"""``everest wrong``: a lesson is hidden first of all, then taken out of what is published.

Until the lesson is hidden only the standard library, text and recall are imported.
"""

from __future__ import annotations

from argparse import Namespace

from everest_pipelines.cli.context import answer, now, opened, tell
from everest_pipelines.recall import overlay
from everest_pipelines.recall.format import plain
from everest_pipelines.recall.snapshot import Lesson, open_snapshot
from everest_pipelines.text import ledger
from everest_pipelines.text.errors import BusyError, CallerError, EverestError
from everest_pipelines.text.home import Home
from everest_pipelines.text.settings import Settings

FOLLOWS = ("The agents' files follow when the run at work ends; then: everest publish",)


def run(arguments: Namespace) -> int:
    """Hide a lesson from the next call on, keep that in the ledger, and publish without it.

    1 when the lesson is hidden but still stands in a file that agents read.
    """
    place, settings = opened()
    with open_snapshot(place) as snapshot:
        lesson = snapshot.lesson(arguments.id)
    if lesson is None:
        return _hidden_before(arguments, place)
    fresh = _hide(place, lesson, arguments.why or "wrong")
    if not arguments.json:
        print(("Hidden: " if fresh else "Was hidden already: ") + plain(lesson.text), flush=True)
    left = _take_out(place, settings, lesson.id)
    if arguments.json:
        answer(
            {"lesson_id": lesson.id, "text": lesson.text, "changed": fresh, "published": not left}
        )
    if left is None:
        return 0
    tell(*left)
    return int(left != FOLLOWS)


def _hidden_before(arguments: Namespace, place: Home) -> int:
    """The answer for a lesson that is published no more because it was called wrong."""
    wanted = str(arguments.id).strip().lower()
    known = [entry for entry in overlay.read(place) if entry.id.startswith(wanted)]
    if not known:
        raise CallerError(
            f"No lesson has an id that starts with {arguments.id}.", "everest lessons"
        )
    if arguments.json:
        answer({"lesson_id": known[0].id, "text": "", "changed": False, "published": True})
    else:
        print(f"{wanted} is hidden already.")
    return 0


def _hide(place: Home, lesson: Lesson, why: str) -> bool:
    """Into the overlay, then the ledger; False when it was hidden before."""
    at = now()
    fresh = overlay.hide(place, lesson.id, value_key=lesson.value_key, why=why, at=at)
    if fresh or not _is_kept(place, lesson):
        entry = {
            "lesson_id": lesson.id,
            "value_key": lesson.value_key,
            "why": why,
            "via": "everest wrong",
        }
        ledger.append(place, "veto", entry, now=at)
    return fresh


def _is_kept(place: Home, lesson: Lesson) -> bool:
    """Whether the ledger knows too: a call that was ended between the two has left it out."""
    return any(one.get("lesson_id") == lesson.id for one in ledger.read(place, ("veto",)).entries)


def _take_out(place: Home, settings: Settings, lesson_id: str) -> tuple[str, ...] | None:
    """Publish and render what is left; None when the lesson is out, else sentences.

    Whatever fails here, the lesson stays hidden from every way of recall.
    """
    try:
        from everest_pipelines.lake.generations import current
        from everest_pipelines.lake.lock import held
        from everest_pipelines.night.publish import publish
        from everest_pipelines.night.render import render
        from everest_pipelines.night.workspace import open_workspace

        with held(place, "everest wrong", wait=False):
            generation = current(place)
            if generation is None:
                return None
            ws = open_workspace(place, settings)
            done = publish(ws, generation.manifest.horizon)
            failures = render(ws).failures
    except BusyError:
        return FOLLOWS
    except (EverestError, OSError) as error:
        return (f"It is hidden, but the agents' files still hold it: {error}",)
    everything = any(gate.project == "" for gate in done.blocked)
    if everything or any(lesson.lesson_id == lesson_id for lesson in done.visible):
        return (
            *(f"not published: {one.gate} {one.project}: {one.sentence}" for one in done.blocked),
            "It is hidden; the agents' files follow with the next: everest night",
        )
    if failures:
        return tuple(f"left behind: {failure.where}: {failure.what}" for failure in failures)
    return None
