"""Opposites and look-alikes never meet; rewordings may."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everest_pipelines.core.embed import HashedEmbedder
from everest_pipelines.core.records import LessonKind
from everest_pipelines.core.sleep import guard
from everest_pipelines.core.sleep.calibration import calibration_of
from everest_pipelines.core.sleep.guard import Block, clash, replaces, rules_apart, stance
from everest_pipelines.text.hashed import mask_error


@pytest.mark.parametrize(
    ("a", "b", "block"),
    [
        ("Use ruff, not black.", "Use black, not ruff.", Block.PREFERENCE),
        ("Use ruff instead of black.", "Prefer black to ruff.", Block.PREFERENCE),
        ("Squash the commits.", "Don't squash the commits.", Block.POLARITY),
        ("Run the linter before you push.", "Run the linter after you push.", Block.AXIS),
        ("Ask before you drop a table.", "Drop tables without asking.", Block.PERMISSION),
        ("Keep Node 20 in the image.", "Keep Node 22 in the image.", Block.NUMBER),
        ("Bundle with rollup.", "Bundle with parcel.", Block.WORD),
        ("Trust the spec; change the code.", "Trust the code; change the spec.", Block.ORDER),
        ("You may use --no-verify.", "You may not use --no-verify.", Block.POLARITY),
        ("Keep the old shims.", "Remove the old shims.", Block.POLARITY),
        ("Run the suite before a push.", "Don't run the suite before a push.", Block.POLARITY),
        ("Delete the branch.", "Never delete the branch.", Block.POLARITY),
        ("Push with force in CI.", "Never push with force in CI.", Block.POLARITY),
        ("Keep tests in lib.", "Keep tests, but not in lib.", Block.POLARITY),
        ("nimm npm, nicht pnpm", "nimm pnpm, nicht npm", Block.PREFERENCE),
        ("这里用 npm, 别用 pnpm", "这里用 pnpm, 别用 npm", Block.PREFERENCE),
    ],
)
def test_rules_that_must_not_meet_are_kept_apart(a: str, b: str, block: Block) -> None:
    assert rules_apart(stance(a), stance(b)) == block
    assert rules_apart(stance(b), stance(a)) == block


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Use ruff, not black.", "Use ruff instead of black."),
        ("Use ruff rather than black for formatting.", "Prefer ruff to black for formatting."),
        ("Never rewrite a migration.", "Don't rewrite migrations."),
        ("Don't push without running the tests.", "Run the tests before you push."),
        ("Ask before you drop a table.", "Never drop a table without asking me."),
        ("Why aren't we using table-driven tests?", "Use table-driven tests."),
        ("Never use --no-verify.", "Don't use --no-verify, ever."),
        ("Open PRs against next.", "Open pull requests against `next`."),
        ("no emojis in docs", "take the emojis out of the docs, we don't use them"),
        ("Always quote shell variables.", "you left $DIR unquoted again, quote it"),
        ("Write the changelog entry in the same commit.", "you forgot the changelog again"),
        ("Run pyright before every push.", "you didn't run pyright before the push"),
        ("Keep secrets out of logs.", "never log tokens or passwords"),
        ("Format with biome.", "you formatted with prettier again, we use biome here"),
        ("Keep the .env out of git.", "Settings come from the environment, not from git."),
        ("Keep functions short.", "that function of yours has 200 lines, split it up"),
    ],
)
def test_the_same_rule_in_other_words_may_meet(a: str, b: str) -> None:
    assert rules_apart(stance(a), stance(b)) is None


@given(st.text(max_size=80), st.text(max_size=80))
def test_the_guard_reads_anything_and_is_symmetric(a: str, b: str) -> None:
    assert rules_apart(stance(a), stance(b)) == rules_apart(stance(b), stance(a))
    assert rules_apart(stance(a), stance(a)) is None
    assert guard.errors_apart(guard.error_signs(a), guard.error_signs(a)) is None


def test_only_an_explicit_swap_replaces_and_never_a_prohibition() -> None:
    new = stance("Use npm, not pnpm.")
    assert replaces(new, stance("Use pnpm, not npm."))
    assert replaces(new, stance("Use pnpm."))
    assert not replaces(new, stance("Never use npm, use pnpm."))
    assert not replaces(stance("Use npm."), stance("Use pnpm."))
    assert not replaces(stance("Don't use pnpm."), stance("Use pnpm."))
    assert not replaces(new, stance("Use pnpm in the web folder."))


def test_a_long_number_is_swapped_wherever_it_stands() -> None:
    old = stance("Use port 5180 for the preview from now on.")
    assert replaces(stance("Not 5180. use 5190 instead of 5180 from now on."), old)
    for other in (
        "Use 5190 from now on.",
        "Not 5180.",
        "Use 5190 instead of 5181 from now on.",
        "For the metrics use 5190 instead of 5180.",
        "Use vite instead of 5180.",
    ):
        assert not replaces(stance(other), old), other
    new = stance("Use 5190 instead of 5180.")
    assert not replaces(new, stance("Never use port 5180 for the preview."))
    assert not replaces(new, stance("Use ports 5180 and 5181 for the preview."))
    assert not replaces(stance("Use 120 instead of 100."), stance("Lines have 100 characters."))


def test_another_subject_is_no_clash() -> None:
    assert clash(stance("Always squash commits."), stance("Never squash commits."))
    assert clash(stance("Answer in detail."), stance("Keep answers brief."))
    assert not clash(stance("Squash commits."), stance("Never push commits to main on a Friday."))
    assert not clash(stance("The API runs on port 1."), stance("The API runs on port 2."))


def test_errors_are_told_apart_by_class_code_and_message_and_not_by_names() -> None:
    def apart(a: str, b: str) -> Block | None:
        return guard.errors_apart(guard.error_signs(a), guard.error_signs(b))

    assert apart("error TS2304: Cannot find name 'A'", "error TS2304: Cannot find name 'B'") is None
    assert apart("error TS2304: Cannot find name 'A'", "error TS2345: Cannot find name 'A'")
    assert apart("status code 404", "status code 403") == Block.CODE
    assert apart("no such table: a", "no such column: a") == Block.WORD
    assert guard.errors_apart(
        guard.error_signs("it failed", "lint_error"), guard.error_signs("it failed", "git_error")
    )


def test_near_duplicates_are_found_at_the_precision_that_was_asked_for(shared: Path) -> None:
    cuts = calibration_of("hashed-256-v1")
    embedder = HashedEmbedder()
    lines = (shared / "benchmarks" / "near-duplicates.jsonl").read_text(encoding="utf-8")
    pairs = [json.loads(line) for line in lines.splitlines()]
    for kind, wanted in ((LessonKind.RULE, 0.6), (LessonKind.ERROR, 0.8)):
        right = wrong = same = 0
        for pair in (pair for pair in pairs if pair["kind"] == kind):
            a, b = pair["a"], pair["b"]
            if kind == LessonKind.ERROR:
                vectors = embedder.embed([mask_error(a), mask_error(b)])
                block = guard.errors_apart(guard.error_signs(a), guard.error_signs(b))
            else:
                vectors = embedder.embed([a, b])
                block = rules_apart(stance(a), stance(b))
            joined = block is None and float(vectors[0] @ vectors[1]) >= cuts.of(kind).join
            same += pair["same"]
            right += joined and pair["same"]
            wrong += joined and not pair["same"]
        assert right / same >= wanted
        assert right / (right + wrong) >= 0.95


def test_no_clashing_pair_of_the_labelled_themes_meets_in_the_built_in_space(shared: Path) -> None:
    folder = shared / "benchmarks"
    themes = [json.loads(line) for line in (folder / "lesson-themes.jsonl").open(encoding="utf-8")]
    clashing = {
        frozenset((pair["a"], pair["b"]))
        for pair in json.loads((folder / "opposites.json").read_text(encoding="utf-8"))
        if pair["relation"] == "clash"
    }
    vectors = HashedEmbedder().embed([row["text"] for row in themes])
    cut = calibration_of("hashed-256-v1").of(LessonKind.RULE).cluster
    looked = blocked = 0
    for (i, one), (j, two) in itertools.combinations(enumerate(themes), 2):
        if frozenset((one["theme"], two["theme"])) in clashing:
            looked += 1
            apart = rules_apart(stance(one["text"]), stance(two["text"])) is not None
            blocked += apart
            assert apart or float(vectors[i] @ vectors[j]) < cut
    assert looked >= 80
    assert blocked / looked >= 0.9
