"""Fits the cuts of an embedding space on labelled pairs and themes, and writes them as data.

    python benchmarks/calibrate.py --near-duplicates FILE --themes FILE [--write] --json

Pairs that pass the guard must be the same matter with the precision wanted. The cut is the highest
that still finds nine tenths of what the lowest such cut finds: the guard's words were written with
these pairs in sight, so the cut keeps a margin. Besides the near-duplicates, all pairs of sentences
in one language count, so that the precision holds at the base rate of a real night and not only on
pairs chosen to be close.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

import msgspec

from everest_pipelines.core.embed import Embedder, HashedEmbedder
from everest_pipelines.core.sleep import fitting, guard
from everest_pipelines.night.models.spaces import open_embedder
from everest_pipelines.text.hashed import DIMENSION, mask_error
from everest_pipelines.text.settings import load

PRECISION = 0.95
FLOOR = 0.35  # below it two hashed texts of five words share one word by chance
MARGIN = 0.9  # of the recall is kept when the cut is raised
MERGE_ABOVE_JOIN = 0.05  # a wrong merge moves many sources, a wrong join one


def rows(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def pairs_of(kind: str, near: list[dict[str, Any]], themes: list[dict[str, Any]]):
    """(a, b, same, from near-duplicates) for one kind."""
    for pair in near:
        if pair["kind"] == kind:
            yield pair["a"], pair["b"], bool(pair["same"]), True
    own = [row for row in themes if row["theme"].startswith("err-") == (kind == "error")]
    for one, two in itertools.combinations(own, 2):
        if one["lang"] == two["lang"]:
            yield one["text"], two["text"], one["theme"] == two["theme"], False
    if kind == "error":  # messages of different pairs are different errors, mostly
        messages = [pair for pair in near if pair["kind"] == "error" and pair["same"]]
        for one, two in itertools.combinations(messages, 2):
            yield one["a"], two["a"], False, False


def passes(kind: str, a: str, b: str) -> bool:
    if kind == "rule":
        return guard.rules_apart(guard.stance(a), guard.stance(b)) is None
    return guard.errors_apart(guard.error_signs(a), guard.error_signs(b)) is None


def scored(kind: str, embedder: Embedder, pairs: list[tuple[str, str, bool, bool]]):
    shown = mask_error if kind == "error" else str
    left = embedder.embed([shown(a) for a, *_ in pairs])
    right = embedder.embed([shown(b) for _, b, *_ in pairs])
    scores = (left * right).sum(axis=1)
    return [
        (round(float(score), 6) if passes(kind, a, b) else -1.0, same, near)
        for score, (a, b, same, near) in zip(scores, pairs, strict=True)
    ]


def measure(found: list[tuple[float, bool, bool]], cut: float) -> dict[str, float | int]:
    joined = [(same, near) for score, same, near in found if score >= cut]
    near_joined = [same for same, near in joined if near]
    near_same = sum(same for _, same, near in found if near)
    return {
        "joined": len(joined),
        "precision": round(sum(s for s, _ in joined) / max(1, len(joined)), 4),
        "near_precision": round(sum(near_joined) / max(1, len(near_joined)), 4),
        "near_recall": round(sum(near_joined) / max(1, near_same), 4),
        "others_joined": sum(not s for s, _ in joined),
    }


def fit(found: list[tuple[float, bool, bool]]) -> tuple[float, dict[str, float | int]]:
    enough = [
        step / 100
        for step in range(int(FLOOR * 100), 100)
        if min(measure(found, step / 100)[key] for key in ("precision", "near_precision"))
        >= PRECISION
    ]
    if not enough:
        return 0.99, measure(found, 0.99)
    wanted = MARGIN * measure(found, enough[0])["near_recall"]
    cut = max(step for step in enough if measure(found, step)["near_recall"] >= wanted)
    return cut, measure(found, cut)


def fit_model(asked: argparse.Namespace) -> None:
    """A space of a model: fitted on the themes alone, by clustering (see core.sleep.fitting)."""
    settings = load({}, Path("/nonexistent/config.toml"))
    themes = fitting.read_themes(asked.themes.read_text(encoding="utf-8"), str(asked.themes))
    languages = [one for one in asked.languages.split(",") if one]
    fitted = fitting.fit(open_embedder(asked.space, settings), themes, languages=languages)
    card = {**fitted.card, "fitted_by": "benchmarks/calibrate.py", "languages": languages}
    fitted = msgspec.structs.replace(fitted, also=tuple(asked.also), card=card)
    if asked.write:
        folder = Path(guard.__file__).parent / "calibrations"
        body = msgspec.json.format(msgspec.json.encode(fitted, order="sorted"), indent=2)
        (folder / f"{fitted.space}.json").write_bytes(body + b"\n")
    print(json.dumps({"space": fitted.space, "cuts": msgspec.to_builtins(fitted.cuts)} | card))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--near-duplicates", type=Path, required=True)
    parser.add_argument("--themes", type=Path, required=True)
    parser.add_argument("--write", action="store_true", help="write the packaged calibration")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--space", default="hashed", help="hashed, wordllama, minilm, ollama:NAME")
    parser.add_argument("--languages", default="", help="that the model knows, such as en,de")
    parser.add_argument("--also", nargs="*", default=[], help="patterns of spaces it holds for too")
    asked = parser.parse_args()
    if asked.space != "hashed":
        fit_model(asked)
        return
    embedder = HashedEmbedder()
    near, themes = rows(asked.near_duplicates), rows(asked.themes)
    cuts: dict[str, dict[str, float]] = {}
    card: dict[str, Any] = {"fitted_by": "benchmarks/calibrate.py", "precision_wanted": PRECISION}
    for kind in ("rule", "error"):
        found = scored(kind, embedder, list(pairs_of(kind, near, themes)))
        cut, measured = fit(found)
        merge = round(min(0.95, cut + MERGE_ABOVE_JOIN), 2)
        cuts[kind] = {"join": cut, "cluster": cut, "merge": merge}
        card[kind] = {"pairs": len(found), **measured}
        if not asked.json:
            for step in range(30, 100, 5):
                print(kind, step / 100, measure(found, step / 100))
    for kind in ("note", "surprise"):  # no labels: free text, as rules but without their guard
        cuts[kind] = {"join": 0.7, "cluster": 0.7, "merge": 0.8}
    result = {
        "space": embedder.space,
        "dimension": DIMENSION,
        "centre": [],
        "cuts": cuts,
        "fitted": True,
        "card": card,
    }
    if asked.write:
        folder = Path(guard.__file__).parent / "calibrations"
        text = json.dumps(result, indent=2, sort_keys=True) + "\n"
        (folder / f"{embedder.space}.json").write_text(text, encoding="utf-8")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
