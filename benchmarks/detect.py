"""Score the detectors against hand labels.

    python benchmarks/detect.py --transcripts DIR --gold FILE [--standing FILE] [--cv] [--json]

Scores the shipped coefficients; ``--cv`` trains out of fold (by project) and scores those. The
last line of the output is one JSON object. A gold line needs a session, a kind, and a uuid or a
line; ``unsure`` lines are left out; a record that stands in several files counts once.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from intervals import Outcome

from everest_pipelines.core.detect import correction, error, refusal, statement, surprise
from everest_pipelines.core.detect.model import Model
from everest_pipelines.core.detect.model import load as load_model
from everest_pipelines.core.detect.rule_cues import is_direct
from everest_pipelines.core.detect.scene import Place, Scene
from everest_pipelines.core.records import Episode, Turn
from everest_pipelines.text.ids import digest


@dataclass
class Label:
    """One gold line with what it points to."""

    row: dict[str, Any]
    session: str
    kind: str
    sub: str
    project: str
    call: str = ""
    uuid: str = ""
    message: str = ""
    path: str = ""
    line: int = 0
    codex: bool = False
    place: Place | None = None


@dataclass
class Corpus:
    """The families of a folder, laid out as scenes."""

    scenes: list[Scene]
    by_id: dict[str, Place] = field(default_factory=dict)
    by_line: dict[tuple[str, int], Place] = field(default_factory=dict)


def read_corpus(root: Path) -> Corpus:
    """Every transcript below ``root``, through the registry of formats, as families."""
    turns: list[Turn] = []
    for path in sorted(root.rglob("*")):
        if path.is_file() and path.suffix in (".jsonl", ".json"):
            turns.extend(_read_file(path, path.relative_to(root).as_posix()))
    return corpus_of(turns)


def _read_file(path: Path, name: str) -> Iterable[Turn]:
    from everest_pipelines.core.transcripts.registry import format_of

    with path.open("rb") as file:
        head = file.read(65_536)
        found = format_of(head, name)
        if found is None:
            return []
        file.seek(0)
        blocks = iter(lambda: file.read(1 << 20), b"")
        return found.read(blocks, path=name, start=0).turns


def corpus_of(turns: Sequence[Turn]) -> Corpus:
    """Scenes of families: sessions that share a turn belong together, each turn counts once."""
    root: dict[str, str] = {}

    def find(session: str) -> str:
        while root.setdefault(session, session) != session:
            session = root[session]
        return session

    owner: dict[str, Turn] = {}
    order = sorted(turns, key=lambda t: (t.session_started_at, t.session_id, t.sha256, t.line_from))
    kept: list[Turn] = []
    lines: dict[str, list[tuple[str, int, int]]] = defaultdict(list)
    for turn in order:
        lines[turn.turn_id].append((turn.source_path, turn.line_from, turn.line_to))
        first = owner.setdefault(turn.turn_id, turn)
        if first is turn:
            kept.append(turn)
            find(turn.session_id)
        else:
            root[find(turn.session_id)] = find(first.session_id)
    groups: dict[str, list[Turn]] = defaultdict(list)
    for turn in kept:
        groups[find(turn.session_id)].append(turn)
    corpus = Corpus([Scene(groups[name]) for name in sorted(groups)])
    for scene in corpus.scenes:
        for place in scene.places():
            corpus.by_id.setdefault(place.turn.turn_id, place)
            for path, low, high in lines[place.turn.turn_id]:
                if high - low < 50:
                    for line in range(low, high + 1):
                        corpus.by_line.setdefault((path, line), place)
    for turn in kept:
        if turn.duplicate_of in corpus.by_id:
            for path, low, _ in lines[turn.turn_id]:
                corpus.by_line.setdefault((path, low), corpus.by_id[turn.duplicate_of])
    return corpus


class Records:
    """The raw records that gold lines point to."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = sorted(path for path in root.rglob("*.jsonl") if path.is_file())
        self.cache: dict[Path, list[bytes]] = {}

    def lines(self, path: Path) -> list[bytes]:
        if path not in self.cache:
            self.cache[path] = path.read_bytes().split(b"\n")
        return self.cache[path]

    def find(self, row: dict[str, Any]) -> tuple[str, int, dict[str, Any]]:
        """The file (relative), line and record of a gold row; an empty record when absent."""
        session, uuid = str(row["session"]), str(row.get("uuid") or "")
        named = self.root / str(row.get("file") or "-")
        if row.get("file") and named.is_file():
            paths = [named]
        else:
            paths = [path for path in self.files if session in path.as_posix()]
        line = int(row.get("line") or 0)
        for path in paths:
            rel = path.relative_to(self.root).as_posix()
            if line and line <= len(self.lines(path)):
                record = _record(self.lines(path)[line - 1], uuid)
                if not uuid or record.get("uuid") == uuid:
                    return rel, line, record
            if uuid:
                for number, raw in enumerate(self.lines(path), 1):
                    if uuid.encode() in raw:
                        record = _record(raw, uuid)
                        if record.get("uuid") == uuid:
                            return rel, number, record
        return "", line, {}


def _record(raw: bytes, uuid: str) -> dict[str, Any]:
    decoder, text, found = json.JSONDecoder(), raw.decode("utf-8", "replace").strip(), {}
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError:
        while text:
            try:
                found, end = decoder.raw_decode(text)
            except json.JSONDecodeError:
                break
            if isinstance(found, dict) and uuid and found.get("uuid") == uuid:
                break
            text = text[end:].strip()
    return found if isinstance(found, dict) else {}


def read_labels(path: Path, records: Records, corpus: Corpus) -> list[Label]:
    """The gold lines with the place each points to; unsure ones and repeats are left out."""
    labels: list[Label] = []
    seen: set[tuple[str, str, str, int]] = set()
    for raw in path.read_bytes().splitlines():
        if not raw.strip():
            continue
        row = orjson.loads(raw)
        if row.get("unsure"):
            continue
        name, line, record = records.find(row)
        label = Label(
            row=row,
            session=str(row["session"]),
            kind=str(row.get("kind") or row.get("gold_kind") or ""),
            sub=str(row.get("sub") or ""),
            project=str(row.get("project") or Path(name).parent.name or row["session"]),
            uuid=str(row.get("uuid") or record.get("uuid") or ""),
            path=name,
            line=line,
            codex="payload" in record or row.get("agent") == "codex",
        )
        message = record.get("message")
        if isinstance(message, dict):
            label.message = str(message.get("id") or "")
            content = message.get("content")
            for block in content if isinstance(content, list) else []:
                if isinstance(block, dict) and block.get("type") == "tool_result":
                    label.call = str(block.get("tool_use_id") or "")
        label.call = str(row.get("tool_use_id") or label.call)
        key = (label.kind, label.uuid, "" if label.uuid else name, 0 if label.uuid else line)
        if key in seen:
            continue
        seen.add(key)
        label.place = place_of(label, corpus)
        labels.append(label)
    return labels


def place_of(label: Label, corpus: Corpus) -> Place | None:
    """The turn a label points to."""
    for name in (label.uuid, label.message):
        if name and name in corpus.by_id:
            return corpus.by_id[name]
    return corpus.by_line.get((label.path, label.line))


def spoken(labels: Iterable[Label]) -> list[Label]:
    """The labels of human turns: corrections and what is none."""
    return [label for label in labels if label.kind in ("correction", "not_correction")]


def standing_labels(path: Path, labels: Sequence[Label]) -> list[tuple[Label, bool, str]]:
    """Human turns and refusals' reasons with whether they stand, and the words that do."""
    judged: dict[tuple[str, str, int], tuple[str, str]] = {}
    for raw in path.read_bytes().splitlines():
        row = orjson.loads(raw)
        uuid = str(row.get("uuid") or "")
        key = (str(row["session"]), uuid, 0 if uuid else int(row.get("line") or 0))
        judged[key] = (str(row["standing"]), str(row.get("quote") or ""))
    found: list[tuple[Label, bool, str]] = []
    for label in labels:
        reason = label.kind == "refusal" and bool(label.row.get("correction"))
        if label.kind not in ("correction", "not_correction") and not reason:
            continue
        uuid = str(label.row.get("uuid") or "")
        verdict, quote = judged.get((label.session, uuid, 0 if uuid else label.line), ("no", ""))
        if verdict != "unsure":
            found.append((label, verdict == "yes", quote))
    # the same words queued, copied or resumed are labelled once: count them once
    said = {_said(label) for label, yes, _ in found if yes and label.place}
    first: set[str] = set()
    kept: list[tuple[Label, bool, str]] = []
    for label, yes, quote in sorted(found, key=lambda one: not one[1]):
        words = _said(label)
        if words in first and (yes or words in said):
            continue
        first.add(words)
        kept.append((label, yes, quote))
    return kept


def _said(label: Label) -> str:
    """The words of a long turn, which nobody types twice; short ones are told apart."""
    text = " ".join(label.place.turn.text.split()) if label.place else ""
    return text if len(text) > 60 else f"{label.path}:{label.line}"


def score_calls(corpus: Corpus, labels: Sequence[Label]) -> dict[str, Any]:
    """Tool errors, refusals and interruptions: every call and stop of the labelled sessions."""
    sessions = {label.session for label in labels}
    errors: dict[str, Episode] = {}
    refused: dict[str, Episode] = {}
    stops: dict[str, Episode] = {}
    for scene in corpus.scenes:
        made = {e.episode_id: e for e in error.detect(scene)}
        made.update({e.episode_id: e for e in refusal.detect(scene)})
        for turn in scene.turns:
            for call in turn.tool_calls:
                for kind, into in (
                    ("error", errors),
                    ("refusal", refused),
                    ("interruption", stops),
                ):
                    for owner in (turn.turn_id, *_reasons(scene, turn)):
                        found = made.get(digest(owner, kind, call.id))
                        if found:
                            into[call.id] = found
            stop = made.get(digest(turn.turn_id, "interruption", "turn"))
            if stop:
                stops[turn.turn_id] = stop
    return {
        "tool_error": _score_errors(errors, labels, sessions),
        "refusal": _score_refusals(refused, labels, sessions),
        "interruption": _score_stops(stops, labels, sessions),
    }


def _reasons(scene: Scene, turn: Turn) -> list[str]:
    return [p.turn.turn_id for p in scene.words if p.turn.parent == turn.turn_id]


def _score_errors(
    found: dict[str, Episode], labels: Sequence[Label], sessions: set[str]
) -> dict[str, Any]:
    outcome, right, both = Outcome(), 0, 0
    gold = {x.call: x for x in labels if x.kind == "tool_error" and x.call and not x.codex}
    negative = {
        c for c, x in gold.items() if x.sub == "sibling_cancelled" or x.row.get("expected_failure")
    }
    for call, label in gold.items():
        wanted = call not in negative
        outcome.add(label.session, wanted, call in found)
        if wanted and call in found and label.sub:
            both += 1
            right += found[call].sub == label.sub
    codex = {label.session for label in labels if label.codex}
    for call, episode in found.items():
        if call not in gold and episode.session_id in sessions - codex:
            outcome.add(episode.session_id, False, True)
    return {**outcome.score(), "class_accuracy": round(right / both, 4) if both else None}


def _score_refusals(
    found: dict[str, Episode], labels: Sequence[Label], sessions: set[str]
) -> dict[str, Any]:
    outcome, carries = Outcome(), Outcome()
    gold = {x.call: x for x in labels if x.kind == "refusal" and x.call}
    for call, label in gold.items():
        outcome.add(label.session, True, call in found)
        carried = call in found and bool(found[call].quote)
        carries.add(label.session, bool(label.row.get("correction")), carried)
    for call, episode in found.items():
        if call not in gold and episode.session_id in sessions:
            outcome.add(episode.session_id, False, True)
            carries.add(episode.session_id, False, bool(episode.quote))
    return {**outcome.score(), "carries_correction": carries.score()}


def _score_stops(
    found: dict[str, Episode], labels: Sequence[Label], sessions: set[str]
) -> dict[str, Any]:
    outcome, met = Outcome(), set[str]()
    for label in labels:
        if label.kind != "interruption":
            continue
        at = label.call or (label.place.turn.turn_id if label.place else "")
        outcome.add(label.session, True, at in found)
        met.add(at)
    for at, episode in found.items():
        if at not in met and episode.session_id in sessions:
            outcome.add(episode.session_id, False, True)
    return outcome.score()


def score_surprise(corpus: Corpus, labels: Sequence[Label]) -> dict[str, Any]:
    """Precision over the labelled texts only; recall over the cue-matched labelled ones."""
    found = {e.turn_id for scene in corpus.scenes for e in surprise.detect(scene)}
    outcome = Outcome()
    for label in labels:
        if label.kind in ("surprise", "not_surprise"):
            at = label.place.turn.turn_id if label.place else ""
            outcome.add(label.session, label.kind == "surprise", at in found)
    return outcome.score()


Probability = dict[int, float]  # by position among the labels
Cuts = dict[int, dict[str, float]]


@dataclass
class Scores:
    """Probabilities and cuts of labels, by position."""

    all: Probability = field(default_factory=dict)
    direct: Probability = field(default_factory=dict)  # what the sure cut looks at
    cuts: Cuts = field(default_factory=dict)


def shipped_corrections(labels: Sequence[Label]) -> Scores:
    """The shipped model's probability and cuts for each label; nothing where no turn is found."""
    model = load_model(correction.NAME)
    if model is None:
        return Scores()
    scores = {
        i: correction.probability(x.place) or 0.0 for i, x in enumerate(labels) if has_words(x)
    }
    return Scores(scores, scores, dict.fromkeys(range(len(labels)), cuts_of(model)))


def shipped_standing(labels: Sequence[Label]) -> Scores:
    """The same for the likeliest sentence, and the likeliest in the shape of a rule."""
    model = load_model(statement.MODEL)
    if model is None:
        return Scores()
    found = Scores(cuts=dict.fromkeys(range(len(labels)), cuts_of(model)))
    for i, label in enumerate(labels):
        for one in statement.scored(label.place) if has_words(label) else []:
            found.all[i] = max(found.all.get(i, 0.0), one.score)
            if is_direct(one.sentence.text):
                found.direct[i] = max(found.direct.get(i, 0.0), one.score)
    return found


def has_words(label: Label) -> bool:
    """Whether the label's turn is one in which a person speaks."""
    return label.place is not None and label.place.turn.turn_id in label.place.scene.spoken


def cuts_of(model: Model) -> dict[str, float]:
    return {"sure": model.sure, "best": model.best, "likely": model.likely}


def score_model(sessions: Sequence[str], gold: Sequence[bool], scores: Scores) -> dict[str, Any]:
    """Scores at the best cut, and precision and recall at the sure and the likely cut."""
    at: dict[str, Outcome] = {name: Outcome() for name in ("best", "sure", "likely")}
    for i, (session, wanted) in enumerate(zip(sessions, gold, strict=True)):
        for name, outcome in at.items():
            cuts = scores.cuts[i]
            found = scores.direct.get(i, -1.0) >= cuts["sure"]
            if name != "sure":
                found = found or scores.all.get(i, -1.0) >= cuts[name]
            outcome.add(session, wanted, found)
    sure = {**at["sure"].pair(), "found": sum(found for _, _, found in at["sure"].rows)}
    return {**at["best"].score(), "sure": sure, "likely": at["likely"].pair()}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--transcripts", type=Path, required=True)
    parser.add_argument("--gold", type=Path, required=True)
    parser.add_argument("--standing", type=Path)
    parser.add_argument("--cv", action="store_true", help="train out of fold, by project")
    parser.add_argument("--json", action="store_true", help="the JSON line alone")
    options = parser.parse_args(arguments)
    corpus = read_corpus(options.transcripts)
    labels = read_labels(options.gold, Records(options.transcripts), corpus)
    kinds = score_calls(corpus, labels)
    kinds["surprise"] = score_surprise(corpus, labels)
    turns = spoken(labels)
    stood = standing_labels(options.standing, labels) if options.standing else []
    if options.cv:
        import train_detect

        said, stated = train_detect.out_of_fold(turns, stood)
    else:
        said = shipped_corrections(turns)
        stated = shipped_standing([label for label, _, _ in stood])
    kinds["correction"] = score_model(
        [x.session for x in turns], [x.kind == "correction" for x in turns], said
    )
    if stood:
        kinds["standing"] = score_model(
            [x.session for x, _, _ in stood], [yes for _, yes, _ in stood], stated
        )
    unmatched = sum(x.place is None for x in turns)
    result = {"kinds": kinds, "labels": len(labels), "unmatched_turns": unmatched, "cv": options.cv}
    if not options.json:
        for kind, row in kinds.items():
            print(
                f"{kind:13} P {row['precision']:.3f} R {row['recall']:.3f} F1 {row['f1']:.3f} "
                f"{row['interval']} {row.get('sure', '')} {row.get('likely', '')}"
            )
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
