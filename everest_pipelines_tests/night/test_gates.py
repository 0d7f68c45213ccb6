"""Each gate is red for what it stands for, for nothing less, and only for the project concerned."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from everest_pipelines.core.records import (
    EVERYWHERE,
    Episode,
    EpisodeKind,
    LessonKind,
    LessonRevision,
    Origin,
    State,
)
from everest_pipelines.night.gates import (
    ACCEPTABLE,
    GATES,
    REMOVED_LEAST,
    Candidate,
    blocked_projects,
    evaluate,
)
from everest_pipelines.text.value_key import value_key


def lesson(text: str = "Use tabs.", **more: Any) -> LessonRevision:
    fields: dict[str, Any] = {
        "lesson_id": f"{abs(hash(text)):032x}"[:32],
        "revision": 1,
        "text": text,
        "lesson_kind": LessonKind.RULE,
        "scope": "shop",
        "state": State.STATED,
        "strength": 1.0,
        "seen": 1,
        "first_seen_at": 0,
        "last_seen_at": 0,
        "source_episode_ids": ("e1",),
        "valid_from": 0,
        "value_key": value_key(text),
        "origin": Origin.HUMAN,
    }
    return LessonRevision(**(fields | more))


def episode(name: str, quote: str) -> Episode:
    return Episode(
        episode_id=name, kind=EpisodeKind.NOTE, quote=quote, origin=Origin.HUMAN, occurred_at=0
    )


GOOD = Candidate(
    visible=[lesson(), lesson("Use spaces.", scope="other", source_episode_ids=("e2",))],
    published=[lesson()],
    project_of_episode={"e1": "shop", "e2": "other"},
    episodes={"e1": episode("e1", "Use tabs."), "e2": episode("e2", "Use spaces.")},
    rejected_keys={"shop": {value_key("Use npm.")}, "other": {value_key("Use tabs.")}},
    forgotten=("a forgotten text",),
)
KEY = "AKIA" + "IOSFODNN7EXAMPLQ"


def with_(**changes: Any) -> Candidate:
    return msgspec.structs.replace(GOOD, **changes)


def red(candidate: Candidate, accept: tuple[str, ...] = ()) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for one in evaluate(candidate, accept):
        if not one.passed:
            found.setdefault(one.gate, set()).add(one.project)
            assert one.next_command.startswith("everest ")
    return found


def also(*rows: LessonRevision) -> list[LessonRevision]:
    return [*GOOD.visible, *rows]


def test_a_good_candidate_passes_every_gate_with_one_result_each() -> None:
    results = evaluate(GOOD)
    assert [one.gate for one in results] == list(GATES)
    assert all(one.passed and not one.accepted for one in results)
    assert blocked_projects(results) == set()


@pytest.mark.parametrize(
    "leaky",
    [
        lesson(f"Use the key {KEY}."),
        lesson(quote=f"the key is {KEY}"),
        lesson(fix=f"export AWS_ACCESS_KEY_ID={KEY}"),
        lesson("It held a forgotten text."),
        lesson(quote="it held a forgotten text"),
        lesson(fix="a forgotten text"),
    ],
)
def test_leak_is_red_for_everything(leaky: LessonRevision) -> None:
    assert red(with_(visible=[leaky])) == {"leak": {""}}
    assert red(with_(visible=[leaky]), ("leak",)) == {"leak": {""}}, "never accepted"
    assert red(with_(visible=[lesson()], forgotten=("",))) == {}, "the control"


def test_scope_is_red_where_another_projects_episode_lies_beneath() -> None:
    foreign = lesson("Use uv.", source_episode_ids=("e1", "e2"))
    assert red(with_(visible=also(foreign))) == {"scope": {"shop"}}
    assert red(with_(visible=also(foreign)), ("scope",)) == {"scope": {"shop"}}
    unknown = lesson("Use uv.", source_episode_ids=("e9",))
    assert red(with_(visible=also(unknown))) == {}
    shared = lesson("Use uv.", scope=EVERYWHERE)
    assert red(with_(visible=also(shared))) == {"scope": {EVERYWHERE}}
    for state in (State.APPROVED, State.PINNED):
        assert red(with_(visible=also(msgspec.structs.replace(shared, state=state)))) == {}
    own = with_(visible=also(shared), project_of_episode={"e1": EVERYWHERE, "e2": "other"})
    assert red(own)["scope"] == {"shop"}, "said everywhere itself: not raised from a project"


@pytest.mark.parametrize("state", list(State))
def test_forbidden_is_red_for_every_state_that_is_not_shown(state: State) -> None:
    found = red(with_(visible=also(lesson("Use uv.", state=state))))
    shown = state in {
        State.STATED,
        State.CORROBORATED,
        State.APPROVED,
        State.PINNED,
        State.DISPUTED,
    }
    assert found == ({} if shown else {"forbidden": {"shop"}})


def test_forbidden_is_red_for_a_rejected_value_in_its_own_scope_alone() -> None:
    assert red(with_(visible=also(lesson("use NPM")))) == {"forbidden": {"shop"}}
    assert red(with_(visible=also(lesson("use NPM"))), ("forbidden",)) == {"forbidden": {"shop"}}
    elsewhere = lesson("Use npm.", scope="other", source_episode_ids=("e2",))
    assert red(with_(visible=also(elsewhere))) == {}


def test_counts_is_red_for_missing_days_and_may_be_accepted() -> None:
    lacking = with_(missing={"shop": [("episodes", "2026-01-01"), ("sleep", "2026-01-02")]})
    assert red(lacking) == {"counts": {"shop"}}
    assert red(lacking, ("counts",)) == {}
    assert red(lacking, ("removal",)) == {"counts": {"shop"}}
    accepted = [one for one in evaluate(lacking, ("counts",)) if one.accepted]
    assert [(one.gate, one.project) for one in accepted] == [("counts", "shop")]


def many(count: int, scope: str = "shop") -> list[LessonRevision]:
    source = ("e1",) if scope == "shop" else ("e2",)
    return [
        lesson(f"Rule {number} of {scope}.", scope=scope, source_episode_ids=source)
        for number in range(count)
    ]


def test_removal_is_red_for_more_than_a_fifth_and_at_least_ten() -> None:
    before = many(40)
    for gone, expected in ((9, {}), (10, {"removal": {"shop"}})):
        assert red(with_(published=before, visible=before[gone:])) == expected
    large = many(60)
    for gone, expected in ((12, {}), (13, {"removal": {"shop"}})):
        assert red(with_(published=large, visible=large[gone:])) == expected
    assert red(with_(published=before, visible=before[10:]), ("removal",)) == {}
    rejected = frozenset(one.lesson_id for one in before[:10])
    by_person = with_(published=before, visible=before[10:], rejected_ids=rejected)
    assert red(by_person) == {}, "human rejections aside"
    assert REMOVED_LEAST == 10
    theirs = many(40, "other")
    both = with_(published=[*before, *theirs], visible=[*before, *theirs[20:]])
    assert red(both) == {"removal": {"other"}}


def test_opposites_is_red_for_a_rule_and_its_opposite_in_one_lesson() -> None:
    torn = lesson(source_episode_ids=("e1", "e3"))
    said = GOOD.episodes | {"e3": episode("e3", "Never use tabs.")}
    one = with_(visible=[torn], episodes=said, project_of_episode={"e1": "shop", "e3": "shop"})
    assert red(one) == {"opposites": {"shop"}}
    assert red(one, ("opposites",)) == {}
    error = msgspec.structs.replace(torn, lesson_kind=LessonKind.ERROR)
    assert red(msgspec.structs.replace(one, visible=[error])) == {}, "errors have no opposites"
    agreed = GOOD.episodes | {"e3": episode("e3", "Please use tabs.")}
    assert red(msgspec.structs.replace(one, episodes=agreed)) == {}, "the control"


def test_only_three_gates_may_be_accepted_and_the_rest_never() -> None:
    assert sorted(ACCEPTABLE) == ["counts", "opposites", "removal"]
    assert set(GATES) - ACCEPTABLE == {"leak", "scope", "forbidden"}


def test_the_next_command_accepts_mends_or_looks() -> None:
    worst = with_(
        visible=[lesson("use NPM", quote=KEY), *many(30)[10:]],
        published=many(30),
        missing={"shop": [("sleep", "2026-01-01")]},
    )
    commands = {one.gate: one.next_command for one in evaluate(worst) if not one.passed}
    assert commands == {
        "leak": "everest doctor",
        "forbidden": "everest doctor",
        "counts": "everest night",
        "removal": "everest publish --accept removal",
    }
    sentences = {one.gate: one.sentence for one in evaluate(with_(missing={"s": [("a", "b")] * 3}))}
    assert sentences["counts"] == "3 stage days are missing or open, the first a b"
    assert "(and 1 more)" in next(
        one.sentence
        for one in evaluate(with_(visible=[lesson("use NPM"), lesson("use npm!")]))
        if one.gate == "forbidden"
    )


def test_a_blocked_project_is_named_and_an_accepted_one_is_not() -> None:
    lacking = with_(missing={"shop": [("sleep", "2026-01-01")], "other": [("sleep", "2026-01-01")]})
    assert blocked_projects(evaluate(lacking)) == {"shop", "other"}
    assert blocked_projects(evaluate(lacking, ("counts",))) == set()
