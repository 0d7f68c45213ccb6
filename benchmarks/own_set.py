"""The product's own set: what past sessions taught, and what the next prompts and errors were.

``own-set.json`` holds references into the real transcripts and no text: ``memory`` (a rule is a
span of a person's turn, an error the result of a failed call) and ``queries`` (a prompt or an error
text) with the ids of the memory that ``bears`` on it, judged by reading. A query is asked in a
memory of what the sessions of its project taught, without its own session. ``tune`` names the
projects that cuts may be chosen on; the others are held out. How it was made, and how far that
goes, stands in its ``about``.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from everest_pipelines.core.detect.error_classes import LABELS, classify
from everest_pipelines.core.detect.sentences import as_rule
from everest_pipelines.recall.search import bearing, search
from everest_pipelines.recall.snapshot import Snapshot, build, open_file
from everest_pipelines.text.ids import digest
from everest_pipelines.text.value_key import value_key

SET = Path(__file__).with_name("own-set.json")
SHOWN = 3
ERROR_TEXT = 2000  # characters of an error that are asked by: a hook cuts what it is given


class Texts:
    """Texts by reference, checked against their digests."""

    def __init__(self, transcripts: Path) -> None:
        self.transcripts = transcripts
        self.lines: dict[str, list[bytes]] = {}

    def of(self, reference: dict[str, Any]) -> str:
        """Raises ValueError when the transcript says something else by now."""
        name = reference["file"]
        if name not in self.lines:
            self.lines[name] = (self.transcripts / name).read_bytes().split(b"\n")
        record = json.loads(self.lines[name][reference["line"] - 1].replace(b"\0", b""))
        text = _text(record)
        if hashlib.sha256(text.encode()).hexdigest()[:16] != reference["digest"]:
            raise ValueError(f"{name}:{reference['line']} is not what the set was made of.")
        return text


def _text(record: dict[str, Any]) -> str:
    """The words of a Claude Code or Codex record, or the output of its tool result."""
    message = record.get("message") or record.get("payload") or record
    content = message.get("content") or message.get("message") or ""
    if isinstance(content, str):
        return content
    found: list[str] = []
    for part in content:
        if part.get("type") in ("text", "input_text"):
            found.append(part.get("text", ""))
        elif part.get("type") == "tool_result":
            output = part.get("content") or ""
            whole = (
                [one.get("text", "") for one in output] if isinstance(output, list) else [output]
            )
            found.append("\n".join(whole))
    return "\n".join(found)


def measure(shared: Path, folder: Path) -> dict[str, Any]:
    """Figures of the held-out projects, and of those that were tuned on beside them."""
    given = json.loads(SET.read_text(encoding="utf-8"))
    texts = Texts(shared / "transcripts")
    lessons = [(one, _lesson(one, texts)) for one in given["memory"]]
    snapshots: dict[tuple[str, str], Snapshot] = {}
    tuned = set(given["tune"])
    asks: dict[str, Callable[[Snapshot, str], tuple[list[str], list[str]]]] = {
        "everest": _everest,
        "any word": _any_word,
    }
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for query in given["queries"]:
        place = (query["project"], query["session"])
        if place not in snapshots:
            path = folder / f"{digest(*place)}.sqlite"
            kept = [
                lesson
                for one, lesson in lessons
                if one["project"] == place[0] and one["session"] != place[1]
            ]
            build(path, lessons=kept, episodes=[], generation="benchmark")
            snapshots[place] = open_file(path)
        text = texts.of(query)
        text = text[:ERROR_TEXT] if query["kind"] == "error" else text
        for name, ask in asks.items():
            ranked, shown = ask(snapshots[place], text)
            rows[name].append({**query, "ranked": ranked, "shown": shown})
    found: dict[str, Any] = {}
    for name, answers in rows.items():
        held = [row for row in answers if row["project"] not in tuned]
        found[name] = {
            **figures(held),
            "by_kind": _by(held, "kind"),
            "tuned_on": figures([row for row in answers if row["project"] in tuned]),
        }
    return found


def _lesson(one: dict[str, Any], texts: Texts) -> dict[str, Any]:
    text = texts.of(one)
    if one["kind"] == "rule":
        said = text[slice(*one["span"])]
        words, quote = as_rule(" ".join(said.split())), said
    else:
        found = classify("", "", text)
        words, quote = f"{LABELS[found.name]}: {found.line}"[:160], ""
    return {
        "id": one["id"],
        "short_id": one["id"],
        "kind": one["kind"],
        "scope": "here",
        "state": "stated",
        "text": words,
        "fix": "",
        "quote": quote,
        "strength": 1.0,
        "seen": 1,
        "last_seen": "2026-01-01T00:00:00.000000Z",
        "value_key": value_key(words),
    }


def _everest(snapshot: Snapshot, text: str) -> tuple[list[str], list[str]]:
    ranked = [hit.lesson_id for hit in search(snapshot, text, project="here", k=SHOWN)]
    shown = [hit.lesson_id for hit in bearing(snapshot, text, project="here", k=SHOWN)]
    return ranked, shown


def _any_word(snapshot: Snapshot, text: str) -> tuple[list[str], list[str]]:
    """The baseline: show the best three that share any word."""
    ranked = [hit.lesson_id for hit in search(snapshot, text, project="here", k=SHOWN)]
    return ranked, ranked


def figures(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Recall among three and precision of what is shown; silence where nothing bears."""
    asked = [row for row in rows if row["bears"]]
    nothing = [row for row in rows if not row["bears"]]
    shown = [(one, row["bears"]) for row in rows for one in row["shown"]]
    return {
        "queries": len(rows),
        "asked": len(asked),
        "r_at_1": _share(bool({*row["bears"]} & {*row["ranked"][:1]}) for row in asked),
        "r_at_3": _share(bool({*row["bears"]} & {*row["ranked"]}) for row in asked),
        "shown_at_3": _share(bool({*row["bears"]} & {*row["shown"]}) for row in asked),
        "shown": len(shown),
        "precision": _share(one in bears for one, bears in shown),
        "silence": _share(not row["shown"] for row in nothing),
    }


def _by(rows: list[dict[str, Any]], field: str) -> dict[str, Any]:
    kinds = sorted({row[field] for row in rows})
    return {kind: figures([row for row in rows if row[field] == kind]) for kind in kinds}


def _share(values: Any) -> float | None:
    found = list(values)
    return round(sum(found) / len(found), 4) if found else None
