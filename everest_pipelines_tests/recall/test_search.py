from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everest_pipelines.recall.episodes import search_episodes
from everest_pipelines.recall.format import terminal
from everest_pipelines.recall.search import Hit, bearing, search
from everest_pipelines.recall.snapshot import Snapshot
from everest_pipelines.recall.terms import query_terms
from everest_pipelines_tests.recall.rows import (
    ELSEWHERE,
    HERE,
    LESSONS,
    episode,
    lesson,
    snapshot,
)


@pytest.fixture(scope="module")
def recall(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    episodes = [
        episode("The migration failed: relation users exists"),
        episode("The migration failed elsewhere", project=ELSEWHERE),
    ]
    return snapshot(tmp_path_factory.mktemp("recall"), episodes=episodes)


def _texts(hits: list[Hit]) -> list[str]:
    return [hit.text for hit in hits]


def test_the_lesson_that_bears_on_the_prompt_comes_first(recall: Snapshot) -> None:
    hits = search(recall, "please install the dependencies with npm", project=HERE)
    assert hits[0].text == "Use pnpm, not npm, to install dependencies."
    assert set(hits[0].why.split(", ")) == {"npm", "install", "dependencies"}
    assert hits[0].state == "stated"
    assert hits[0].score > 0


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("which test should I run on 5433?", "Run the integration tests"),
        ("push it", "Never push"),
        ("帮我部署一下", "部署之前"),
        ("PUSH the branch", "Never push"),
        ("cat dist/app.js", "ENOENT"),
        ("how does the build work here", "ENOENT"),  # by its fix
    ],
)
def test_words_meet_across_case_plural_script_and_fix(
    recall: Snapshot, prompt: str, expected: str
) -> None:
    assert any(text.startswith(expected) for text in _texts(search(recall, prompt, project=HERE)))


@pytest.mark.parametrize(
    "prompt",
    [
        *(
            "ok",
            "OK.",
            "go on",
            "Go on!",
            "好的",
            "好的\uff0c继续",
            "weiter",
            "ja, mach weiter",
            "vale",
        ),
        *("sí, sigue", "yes please", "continue", "y", "2", "👍", "…", "", "   ", "thanks!", "可以"),
        *("looks good, try again", "sounds good", "do it", "谢谢", "the of and", "行"),
    ],
)
def test_a_prompt_that_says_nothing_finds_nothing(tmp_path: Path, prompt: str) -> None:
    lessons = [lesson(f"{prompt} is what the person said"), lesson("go on and continue: 好的 继续")]
    with snapshot(tmp_path, lessons) as opened:
        assert search(opened, prompt, project=HERE) == []
        assert search(opened, f"{prompt} person", project=HERE)


def test_without_a_content_word_in_common_nothing_is_returned(recall: Snapshot) -> None:
    assert search(recall, "what is the weather like on the moon?", project=HERE) == []
    assert search(recall, "to the without not", project=HERE) == []


def test_another_project_is_never_searched(recall: Snapshot) -> None:
    prompt = "install dependencies with yarn in English"
    here, there = search(recall, prompt, project=HERE), search(recall, prompt, project=ELSEWHERE)
    assert {hit.scope for hit in here} == {HERE, "everywhere"}
    assert {hit.scope for hit in there} == {ELSEWHERE, "everywhere"}
    assert _texts(search(recall, prompt, project="unknown")) == [LESSONS[4]["text"]]
    assert search(recall, "yarn", project=HERE) == []
    found = search_episodes(recall, "migration failed", project=HERE)
    assert [hit.gist for hit in found] == ["The migration failed: relation users exists"]


def test_never_more_than_k(tmp_path: Path) -> None:
    lessons = [lesson(f"Deploy rule {n}") for n in range(200)]
    with snapshot(tmp_path, lessons) as opened:
        for k in (0, 1, 5, 50):
            assert len(search(opened, "deploy", project=HERE, k=k)) == k
        assert search(opened, "deploy", project=HERE, k=-1) == []


def test_hidden_lessons_are_not_shown_and_others_take_their_place(tmp_path: Path) -> None:
    lessons = [lesson(f"Deploy rule {n}", strength=9.0 - n / 50) for n in range(200)]
    with snapshot(tmp_path, lessons) as opened:
        first = search(opened, "deploy", project=HERE, k=3)
        hidden = {entry["id"] for entry in lessons[:190]}
        later = search(opened, "deploy", project=HERE, k=3, hidden=hidden)
        assert len(later) == 3
        assert not hidden & {hit.lesson_id for hit in later}
        assert [hit.text for hit in first] == [entry["text"] for entry in lessons[:3]]
        by_value = {lessons[0]["value_key"]}
        assert first[0] not in search(opened, "deploy", project=HERE, hidden=by_value)


def test_only_the_kind_asked_for(recall: Snapshot) -> None:
    assert _texts(search(recall, "run tests", project=HERE, kind="error")) == [LESSONS[6]["text"]]
    assert search(recall, "pnpm", project=HERE, kind="error") == []


def test_recency_and_strength_decide_between_equals_only(tmp_path: Path) -> None:
    old = "2025-01-01T00:00:00.000000Z"
    lessons = [
        lesson("Deploy on Friday", id="old0", last_seen=old),
        lesson("Deploy on Friday", id="new0"),
        lesson("Deploy on Friday", id="str0", strength=2.0),
        lesson("Deploy with the canary script", id="can0", last_seen=old, strength=0.2),
    ]
    with snapshot(tmp_path, lessons) as opened:
        same = [hit.lesson_id for hit in search(opened, "friday deploy", project=HERE)]
        assert same == ["str0", "new0", "old0", "can0"]
        assert search(opened, "deploy canary", project=HERE)[0].lesson_id == "can0"


def test_an_empty_memory_answers_with_nothing(tmp_path: Path) -> None:
    with snapshot(tmp_path, []) as opened:
        assert search(opened, "deploy", project=HERE) == []
        assert search_episodes(opened, "deploy", project=HERE) == []


@settings(deadline=None)
@given(
    st.one_of(st.text(), st.lists(st.sampled_from(['"', "*", "NEAR(", "AND", "-", "pnpm", "("])))
)
def test_no_prompt_is_a_syntax_error(recall: Snapshot, prompt: Any) -> None:
    text = prompt if isinstance(prompt, str) else " ".join(prompt)
    hits = search(recall, text, project=HERE)
    assert len(hits) <= 5
    if "pnpm" in query_terms(text):
        assert hits


def test_a_prompt_of_thousands_of_words_is_pruned_to_its_rarest(recall: Snapshot) -> None:
    prompt = " ".join(f"word{n}" for n in range(40_000)) + " pnpm"
    assert _texts(search(recall, prompt, project=HERE)) == [LESSONS[0]["text"]]


def test_importing_search_loads_the_standard_library_and_our_two_rooms_only() -> None:
    code = (
        "import sys\n"
        "import everest_pipelines.recall.search, everest_pipelines.recall.format\n"
        "import everest_pipelines.recall.overlay, everest_pipelines.recall.switch\n"
        "import everest_pipelines.recall.project\n"
        "print(*sorted(sys.modules))"
    )
    command = [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    ours = {name for name in names if name.startswith("everest_pipelines")}
    foreign = {
        name
        for name in set(names) - ours
        if name.split(".")[0] not in sys.stdlib_module_names and name != "__main__"
    }
    assert not foreign
    assert "everest_pipelines.recall.search" in ours
    rooms = {".".join(name.split(".")[:2]) for name in ours}
    assert rooms == {"everest_pipelines", "everest_pipelines.recall", "everest_pipelines.text"}
    assert "everest_pipelines.recall.build" not in ours


NAMED = [
    lesson("Deploys run on a cluster in EKS.", aliases=["k8s", "Kubernetes", "dead letter"]),
    lesson("Errors are returned, never thrown.", aliases=["error handling"]),
    lesson("Docs say how the cluster is paid for and who pays."),
]


@pytest.mark.parametrize("prompt", ["k8s?", "kubernets pods", "a dead letter again", "Kubernetes"])
def test_what_a_prompt_calls_by_its_name_is_shown_alone(tmp_path: Path, prompt: str) -> None:
    with snapshot(tmp_path, NAMED) as opened:
        assert _texts(bearing(opened, prompt, project=HERE)) == [NAMED[0]["text"]]
        assert _texts(search(opened, prompt, project=HERE))[0] == NAMED[0]["text"]
        assert bearing(opened, prompt, project=ELSEWHERE) == []


@pytest.mark.parametrize("prompt", ["k9s pods", "jubernetes", "a letter", "who is there"])
def test_two_slips_or_half_a_name_are_no_name(tmp_path: Path, prompt: str) -> None:
    with snapshot(tmp_path, NAMED) as opened:
        assert bearing(opened, prompt, project=HERE) == []


def test_sharing_one_word_is_found_when_asked_and_not_shown_unasked(recall: Snapshot) -> None:
    assert search(recall, "where is main defined", project=HERE)
    assert bearing(recall, "where is main defined", project=HERE) == []
    shown = bearing(recall, "never push to main, I said", project=HERE)
    assert _texts(shown) == ["Never push to main without asking."]


@pytest.mark.parametrize(
    "prompt", ["да", "хорошо, продолжай", "oui, merci", "sí, adelante", "vas-y", "certo", "Да!"]
)
def test_agreement_in_other_languages_says_nothing(tmp_path: Path, prompt: str) -> None:
    with snapshot(tmp_path, [lesson(f"{prompt} is what they say")]) as opened:
        assert search(opened, prompt, project=HERE) == []
        assert search(opened, f"{prompt} pnpm say", project=HERE)


def test_the_score_is_the_sum_of_the_parts_that_explain_shows(recall: Snapshot) -> None:
    hit = search(recall, "install dependencies with npm", project=HERE)[0]
    assert [name for name, _ in hit.parts] == ["words", "recency", "strength"]
    assert hit.score == pytest.approx(sum(value for _, value in hit.parts))
    assert f"words {hit.parts[0][1]:.3f}" in terminal([hit], explain=True)
