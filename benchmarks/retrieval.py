"""How well what bears on a question is found, by the product's own ranking and snapshot.

    python benchmarks/retrieval.py --own | --locomo FILE | --decisions DIR | --precision DIR
        [--space NAME] --json

Every set is put into a snapshot by the builder that publishing uses and asked by the functions that
``everest recall`` and the hooks call. Beside the public sets stand two baselines over the same
texts: ``bm25`` (every word, nothing else) and ``seed`` (0.6 hashed cosine + 0.25 * 2^(-age/30 days)
+ 0.15 * min(strength, 2) / 2); beside the own set, showing whatever shares a word. No model judges
anything: rankings are compared with ids.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import math
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from everest_pipelines.recall.episodes import search_episodes
from everest_pipelines.recall.search import bearing
from everest_pipelines.recall.snapshot import Snapshot, build, open_file
from everest_pipelines.text.hashed import embed
from everest_pipelines.text.ids import digest
from everest_pipelines.text.tokens import content_words
from everest_pipelines.text.value_key import value_key

DAY = 86_400_000_000
DEEP = 20  # ranks that are looked at
Embed = Callable[[Sequence[str]], Any]  # texts -> array of unit rows


class Document(NamedTuple):
    """A text that may be found; its position in the list is its place in time and session."""

    id: str
    text: str
    session: str
    at: int  # microseconds UTC


Ranking = Callable[[str], list[str]]  # a question -> ids, best first


def product(documents: Sequence[Document], folder: Path, embedded: Embed | None) -> Ranking:
    """What ``everest recall --kind episode`` answers over these documents."""
    path = folder / f"{digest(*(one.id for one in documents))}.sqlite"
    build(
        path,
        lessons=[],
        episodes=[
            {
                "id": one.id,
                "project": "set",
                "kind": "note",
                "title": "",
                "gist": one.text,
                "quote": "",
                "session": one.session,
                "occurred_at": one.at,
            }
            for one in documents
        ],
        generation="benchmark",
    )
    snapshot = open_file(path)

    def ask(question: str) -> list[str]:
        hits = search_episodes(snapshot, question, project="set", k=DEEP)
        return [hit.episode_id for hit in hits]

    return ask if embedded is None else _with_vectors(documents, snapshot, embedded)


def _with_vectors(documents: Sequence[Document], snapshot: Snapshot, embedded: Embed) -> Ranking:
    """The same with the nearness of vectors: both as standard scores, added."""
    vectors = embedded([one.text for one in documents])
    ids = [one.id for one in documents]

    def ask(question: str) -> list[str]:
        near = (vectors @ embedded([question])[0]).tolist()
        hits = search_episodes(snapshot, question, project="set", k=len(ids))
        words = {hit.episode_id: hit.score for hit in hits}
        both = zip(_standard([words.get(one, 0.0) for one in ids]), _standard(near), strict=True)
        scores = {one: first + second for one, (first, second) in zip(ids, both, strict=True)}
        return sorted(ids, key=lambda one: (-scores[one], one))[:DEEP]

    return ask


def _standard(values: Sequence[float]) -> list[float]:
    mean = math.fsum(values) / len(values)
    spread = math.sqrt(math.fsum((one - mean) ** 2 for one in values) / len(values)) or 1.0
    return [(one - mean) / spread for one in values]


def bm25(documents: Sequence[Document]) -> Ranking:
    """Okapi BM25 (k1 1.2, b 0.6) over content words as they stand."""
    counts = [Counter(content_words(one.text)) for one in documents]
    lengths = [sum(held.values()) for held in counts]
    mean = sum(lengths) / max(1, len(lengths)) or 1.0
    holders: dict[str, list[int]] = defaultdict(list)
    for at, held in enumerate(counts):
        for word in held:
            holders[word].append(at)

    def ask(question: str) -> list[str]:
        scores: dict[int, float] = defaultdict(float)
        for word in dict.fromkeys(content_words(question)):
            rows = holders.get(word, [])
            weight = math.log(1 + (len(counts) - len(rows) + 0.5) / (len(rows) + 0.5))
            for at in rows:
                count = counts[at][word]
                scores[at] += (
                    weight * count * 2.2 / (count + 1.2 * (0.4 + 0.6 * lengths[at] / mean))
                )
        best = sorted(scores, key=lambda at: (-scores[at], documents[at].id))
        return [documents[at].id for at in best[:DEEP]]

    return ask


def seed(documents: Sequence[Document]) -> Ranking:
    """The first Everest's formula."""
    vectors = [embed(one.text) for one in documents]
    newest = max((one.at for one in documents), default=0)
    fixed = [0.25 * 2 ** (-(newest - one.at) / DAY / 30) + 0.15 * 0.5 for one in documents]

    def ask(question: str) -> list[str]:
        asked = embed(question)
        scores = [
            0.6 * math.fsum(a * b for a, b in zip(asked, vector, strict=True)) + more
            for vector, more in zip(vectors, fixed, strict=True)
        ]
        best = sorted(range(len(scores)), key=lambda at: (-scores[at], documents[at].id))
        return [documents[at].id for at in best[:DEEP]]

    return ask


RANKINGS: dict[str, Callable[[Sequence[Document]], Ranking]] = {"bm25": bm25, "seed": seed}


def systems(embedded: Embed | None, folder: Path) -> dict[str, Callable[..., Ranking]]:
    return {"everest": lambda documents: product(documents, folder, embedded), **RANKINGS}


def locomo(file: Path, embedded: Embed | None, folder: Path) -> dict[str, Any]:
    """Share of the turns that hold the evidence among the first 5, 10 and 20."""
    conversations = json.loads(file.read_text(encoding="utf-8"))
    found: dict[str, Any] = {}
    for name, make in systems(embedded, folder).items():
        sums: Counter[str] = Counter()
        for conversation in conversations:
            documents = turns(conversation)
            ask = make(documents)
            for question, wanted in questions(conversation, documents):
                count(sums, ask(question), wanted, (5, 10, 20), "recall_at")
        found[name] = means(sums)
    return found


def questions(
    conversation: dict[str, Any], documents: Sequence[Document]
) -> Iterator[tuple[str, set[str]]]:
    """Questions and the turns that hold the evidence; joined ids are split, unknown dropped."""
    known = {one.id for one in documents}
    for question in conversation["questions"]:
        joined = " ".join(question["evidence"]).replace(";", " ").replace(",", " ")
        wanted = {one for one in joined.split() if one in known}
        if wanted:
            yield question["question"], wanted


def turns(conversation: dict[str, Any]) -> list[Document]:
    documents: list[Document] = []
    for number, session in enumerate(conversation["sessions"]):
        for turn in session["turns"]:
            text = f"{turn['speaker']}: {turn['text']} {turn.get('image') or ''}".strip()
            at = number * DAY + len(documents) * 1_000_000
            documents.append(Document(turn["id"], text, f"session {number:04}", at))
    return documents


def decisions(folder_of_set: Path, embedded: Embed | None, folder: Path) -> dict[str, Any]:
    """Whether the conversation that holds the decision in force comes first."""
    conversations = json.loads((folder_of_set / "conversations.json").read_text(encoding="utf-8"))
    documents = [
        Document(
            one["id"],
            "\n".join(turn["text"] for turn in one["turns"]),
            one["id"],
            _noon(one["date"]),
        )
        for one in sorted(conversations, key=lambda one: (one["date"], one["id"]))
    ]
    [queries] = sorted(folder_of_set.glob("queries*.json"))
    found: dict[str, Any] = {}
    for name, make in systems(embedded, folder).items():
        ask = make(documents)
        sums: Counter[str] = Counter()
        amended = current = 0
        for query in json.loads(queries.read_text(encoding="utf-8")):
            ranked = ask(query["query"])
            count(sums, ranked, set(query["gold"]), (1, 3, 5), "r_at")
            if query["superseded"]:
                amended += 1
                current += _first(ranked, query["gold"]) < _first(ranked, query["superseded"])
        found[name] = {
            **means(sums),
            "current_above_superseded": current,
            "amended": amended,
        }
    return found


def _noon(day: str) -> int:
    return int(dt.datetime.fromisoformat(f"{day}T12:00:00+00:00").timestamp()) * 1_000_000


def _first(ranked: list[str], wanted: Iterable[str]) -> int:
    return min((ranked.index(one) for one in wanted if one in ranked), default=len(ranked))


def count(
    sums: Counter[str], ranked: list[str], wanted: set[str], depths: Sequence[int], name: str
) -> None:
    sums["asked"] += 1
    for depth in depths:
        sums[f"{name}_{depth}"] += len(wanted & set(ranked[:depth])) / len(wanted)  # type: ignore[assignment]
    first = _first(ranked, wanted)
    sums["mrr"] += 1 / (first + 1) if first < len(ranked) else 0  # type: ignore[assignment]


def means(sums: Counter[str]) -> dict[str, Any]:
    asked = sums.pop("asked")
    return {"asked": asked, **{name: round(value / asked, 4) for name, value in sums.items()}}


def precision(folder_of_set: Path, embedded: Embed | None, folder: Path) -> dict[str, Any]:
    """Whether just what bears on a turn is shown. Pinned beliefs and those of the person, which are
    always there, are listed apart by the set and not counted; so are open questions."""
    beliefs = json.loads((folder_of_set / "beliefs.json").read_text(encoding="utf-8"))
    cases = json.loads((folder_of_set / "cases.json").read_text(encoding="utf-8"))
    shown = [one for one in beliefs if _is_shown(one)]
    path = folder / "precision.sqlite"
    build(path, lessons=[_as_lesson(one) for one in shown], episodes=[], generation="benchmark")
    snapshot = open_file(path)
    by_id = {digest("belief", one["_id"]): one for one in shown}
    found: dict[str, Any] = {}
    for name, ask in {
        "everest": lambda case: _bearing(snapshot, case, by_id),
        "bm25": lambda case: _best_one(shown, case, bm25),
        "seed": lambda case: _best_one(shown, case, seed),
    }.items():
        found[name] = _exactness(cases, ask)
    return found


def _is_shown(belief: dict[str, Any]) -> bool:
    current = belief["epistemic_status"] != "superseded" and not belief["resolved_at"]
    return (
        current
        and not belief["pinned"]
        and belief["user_id"] == "test-user"
        and "user:universal" not in belief["scope"]
        and belief["type"] != "open_question"
    )


def _as_lesson(belief: dict[str, Any]) -> dict[str, Any]:
    names = [*belief["aliases"], belief["canonical_name"].replace("_", " ")]
    identifier = digest("belief", belief["_id"])
    return {
        "id": identifier,
        "short_id": identifier[:8],
        "kind": "rule",
        "scope": belief["scope"][0],
        "state": "approved",
        "text": belief["content"],
        "fix": "",
        "quote": "",
        "strength": 1.0,
        "seen": belief["reinforcement_count"],
        "last_seen": belief["last_reinforced_at"],
        "value_key": value_key(belief["content"]),
        "aliases": names,
    }


def _bearing(
    snapshot: Snapshot, case: dict[str, Any], by_id: dict[str, dict[str, Any]]
) -> set[str]:
    if case.get("userId"):
        return set()  # another person's home
    most = case.get("budget", {}).get("maxBeliefs", 8)
    hits = [
        hit
        for scope in case["scope"]
        for hit in bearing(snapshot, case["query"], project=scope, k=most)
    ]
    return {by_id[hit.lesson_id]["_id"] for hit in hits}


def _best_one(shown: list[dict[str, Any]], case: dict[str, Any], make: Any) -> set[str]:
    own = [one for one in shown if set(one["scope"]) & set(case["scope"])]
    documents = [Document(one["_id"], one["content"], "", 0) for one in own]
    return set(make(documents)(case["query"])[:1]) if own else set()


def _exactness(cases: list[dict[str, Any]], ask: Callable[[dict[str, Any]], set[str]]) -> Any:
    exact = cases_with = silent = cases_without = 0
    precisions: list[float] = []
    recalls: list[float] = []
    wrong: list[str] = []
    for case in cases:
        expected = case["expect"].get("relevantBeliefs", {}).get("shouldOnlyInclude")
        if expected is None:
            continue
        wanted, shown = set(expected), ask(case)
        if not wanted:
            cases_without += 1
            silent += not shown
            continue
        cases_with += 1
        exact += shown == wanted
        precisions.append(len(shown & wanted) / len(shown) if shown else 0.0)
        recalls.append(len(shown & wanted) / len(wanted))
        if shown != wanted:
            wrong.append(f"{case['caseId']}: +{sorted(shown - wanted)} -{sorted(wanted - shown)}")
    return {
        "cases": cases_with,
        "exact": exact,
        "precision": round(sum(precisions) / max(1, cases_with), 4),
        "recall": round(sum(recalls) / max(1, cases_with), 4),
        "silence": round(silent / max(1, cases_without), 4),
        "wrong": wrong,
    }


# Name of a space -> what makes its function from texts to unit rows.
SPACES: dict[str, Callable[[], Embed]] = {}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--own", action="store_true", help="the set from the real transcripts")
    which.add_argument("--locomo", type=Path, metavar="FILE")
    which.add_argument("--decisions", type=Path, metavar="DIR")
    which.add_argument("--precision", type=Path, metavar="DIR")
    parser.add_argument("--shared", type=Path, default=Path("../shared"), help="for --own")
    parser.add_argument("--space", choices=sorted(SPACES), help="words and vectors")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    arguments = parser.parse_args()
    embedded = SPACES[arguments.space]() if arguments.space else None
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if arguments.own:
            sys.path.insert(0, str(Path(__file__).resolve().parent))
            from own_set import measure

            found = measure(arguments.shared, folder)
        elif arguments.locomo:
            found = locomo(arguments.locomo, embedded, folder)
        elif arguments.decisions:
            found = decisions(arguments.decisions, embedded, folder)
        else:
            found = precision(arguments.precision, embedded, folder)
    mine = found.pop("everest")
    body = {
        "space": arguments.space or "words",
        **mine,
        "baselines": found,
        "seconds": round(time.perf_counter() - started, 1),
    }
    print(json.dumps(body) if arguments.json else json.dumps(body, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
