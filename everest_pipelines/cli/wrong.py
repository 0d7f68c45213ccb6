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
from everest_pipelines.text.errors import CallerError
from everest_pipelines.text.home import Home


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
    from everest_pipelines.cli.taking import FOLLOWS, publish_now

    left = publish_now(place, settings, "everest wrong", without=lesson.id)
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
            "scope": lesson.scope,
            "why": why,
            "via": "everest wrong",
        }
        ledger.append(place, "veto", entry, now=at)
    return fresh


def _is_kept(place: Home, lesson: Lesson) -> bool:
    """Whether the ledger knows too: a call that was ended between the two has left it out."""
    return any(one.get("lesson_id") == lesson.id for one in ledger.read(place, ("veto",)).entries)
