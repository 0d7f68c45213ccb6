"""The gate of every writer and the view of every reader."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everest_pipelines.core import trust
from everest_pipelines.core.records import (
    EVERYWHERE,
    VISIBLE_STATES,
    LessonKind,
    LessonRevision,
    Origin,
    State,
)
from everest_pipelines.core.trust import Actor, Via
from everest_pipelines.text.value_key import value_key
from everest_pipelines_tests.core.sleep.making import day_end, day_of, folded, review, said

DAY = 86_400_000_000
NOW = day_end(day_of(0))


def lesson(text: str = "Use tabs.", state: State = State.STATED, **more: Any) -> LessonRevision:
    fields: dict[str, Any] = {
        "lesson_id": text.lower(),
        "revision": 1,
        "text": text,
        "lesson_kind": LessonKind.RULE,
        "scope": "shop",
        "state": state,
        "strength": 1.0,
        "seen": 1,
        "first_seen_at": NOW - DAY,
        "last_seen_at": NOW - DAY,
        "source_episode_ids": (f"e-{text}",),
        "valid_from": NOW,
        "value_key": value_key(text),
        "origin": Origin.HUMAN,
    }
    return LessonRevision(**(fields | more))


def seen(rows: list[LessonRevision], entries: Any = (), overlay: Any = (), **more: Any) -> set[str]:
    at = more.pop("at", NOW)
    return {row.text for row in trust.visible(rows, list(entries), set(overlay), at=at, **more)}


def test_only_visible_states_are_seen() -> None:
    rows = [lesson(state.value, state) for state in State]
    assert seen(rows) == {state.value for state in VISIBLE_STATES}


def test_the_newest_revision_at_the_asked_time_rules() -> None:
    old = lesson()
    new = lesson(revision=2, valid_from=NOW + DAY, state=State.SUPERSEDED, valid_to=NOW + DAY)
    assert seen([new, old]) == {"Use tabs."}
    assert seen([new, old], at=NOW + DAY) == set()
    assert seen([new, old], at=NOW - 1) == set()


def test_what_has_ended_is_gone_and_what_ends_later_is_not() -> None:
    assert seen([lesson(valid_to=NOW)]) == set()
    assert seen([lesson(valid_to=NOW + 1)]) == {"Use tabs."}


def test_a_faded_lesson_is_out_unless_the_person_keeps_it() -> None:
    late = NOW + 200 * DAY
    rows = [lesson("faded"), lesson("kept", State.APPROVED), lesson("pinned", State.PINNED)]
    assert seen(rows) == {"faded", "kept", "pinned"}
    assert seen(rows, at=late) == {"kept", "pinned"}


@pytest.mark.parametrize("hidden", ["use tabs.", value_key("Use tabs.")])
def test_the_overlay_hides_by_id_and_by_value(hidden: str) -> None:
    rows = [lesson(), lesson("Use spaces.")]
    assert seen(rows, overlay={hidden}) == {"Use spaces."}
    assert seen(rows, overlay={"something else"}) == {"Use tabs.", "Use spaces."}


def test_a_project_sees_its_own_and_what_holds_everywhere_and_nothing_else() -> None:
    rows = [
        lesson("mine"),
        lesson("theirs", scope="other"),
        lesson("shared", State.APPROVED, scope=EVERYWHERE, decided_by="human"),
    ]
    assert seen(rows, scope="shop") == {"mine", "shared"}
    assert seen(rows, scope="other") == {"theirs", "shared"}
    for widened in ("", "*", "../other", "%"):
        assert "theirs" not in seen(rows, scope=widened)


def test_a_lesson_that_went_everywhere_is_not_shown_twice() -> None:
    shared = lesson(
        "Use tabs.",
        State.APPROVED,
        scope=EVERYWHERE,
        lesson_id="new",
        source_lesson_ids=("use tabs.",),
    )
    assert [row.lesson_id for row in trust.visible([lesson(), shared], [], set(), at=NOW)] == [
        "new"
    ]


def test_a_rejection_hides_every_spelling_of_the_value_and_a_neighbour_stays() -> None:
    rows = [
        lesson("Use tabs."),
        lesson("USE  tabs!"),
        lesson("Use t\u0430bs."),
        lesson("Use spaces."),
    ]
    no = review(1, "reject", 1, lesson_id="use tabs.", value_key=value_key("Use tabs."))
    assert seen(rows, [no]) == {"Use spaces."}
    assert seen(rows, [no], at=NOW + 730 * DAY) == set()  # all faded, the rejected too
    assert len(seen(rows)) == 4


def test_a_rejection_in_one_project_buries_nothing_in_another() -> None:
    rows = [lesson("mine"), lesson("mine", scope="other", lesson_id="x")]
    no = review(1, "reject", 1, lesson_id="mine", value_key=value_key("mine"), scope="shop")
    assert [row.scope for row in trust.visible(rows, [no], set(), at=NOW)] == ["other"]


def test_the_persons_later_approval_lifts_a_rejection_and_an_agents_does_not() -> None:
    key = value_key("Use tabs.")
    no = review(1, "reject", 1, lesson_id="use tabs.", value_key=key)
    forged = review(2, "approve", 2, lesson_id="use tabs.", value_key=key, actor="agent")
    yes = review(3, "approve", 2, lesson_id="use tabs.", value_key=key)
    assert trust.tombstones([no, forged]) == {key}
    assert seen([lesson()], [no, forged]) == set()
    assert seen([lesson()], [no, yes]) == {"Use tabs."}


def test_a_deleted_file_hides_its_lesson_until_the_person_decides() -> None:
    veto = {"id": "00000001", "kind": "veto", "recorded_at": NOW, "lesson_id": "use tabs."}
    rows = [lesson(), lesson("Use spaces.")]
    assert seen(rows, [veto]) == {"Use spaces."}
    assert seen(rows, [veto, review(2, "approve", 1, lesson_id="use tabs.")]) == {
        "Use tabs.",
        "Use spaces.",
    }


def test_a_veto_finds_its_lesson_again_after_reclustering_and_only_in_its_scope() -> None:
    rows = [lesson(), lesson("Use spaces."), lesson("Use tabs.", scope="other", lesson_id="x")]
    base = {
        "id": "00000001",
        "kind": "veto",
        "recorded_at": NOW,
        "lesson_id": "gone",
        "scope": "shop",
    }
    by_source = base | {"sources": ["e-Use tabs.", "e-other"]}
    shown = trust.visible(rows, [by_source], set(), at=NOW)
    assert [(row.text, row.scope) for row in shown] == [
        ("Use spaces.", "shop"),
        ("Use tabs.", "other"),
    ]
    assert len(seen(rows, [base])) == 2, "what resolves to nothing hides nothing"
    lifted = base | {"id": "00000002", "action": "lift", "lesson_id": "gone"}
    assert seen(rows, [by_source, lifted]) == {"Use tabs.", "Use spaces."}
    forged = review(2, "approve", 1, lesson_id="gone", actor="agent")
    assert [one["id"] for one in trust.vetoes([by_source, forged])] == ["00000001"]
    ended = review(2, "retire", 1, lesson_id="gone")
    assert [one["id"] for one in trust.vetoes([by_source, ended])] == ["00000001"]
    assert trust.vetoes([by_source, review(2, "edit", 1, lesson_id="gone")]) == []


def test_a_forgotten_value_is_gone() -> None:
    forget = {
        "id": "1",
        "kind": "forget",
        "recorded_at": NOW,
        "value_keys": [value_key("Use tabs.")],
    }
    assert seen([lesson(), lesson("Use spaces.")], [forget]) == {"Use spaces."}


def test_reviews_resolve_by_id_then_value_then_overlap_and_the_rest_is_listed() -> None:
    rows = [lesson(), lesson("Use spaces.")]
    last = trust.newest(rows)
    by_value = review(1, "pin", 1, lesson_id="gone", value_key=value_key("use SPACES"))
    by_source = review(2, "pin", 1, lesson_id="gone", sources=["e-Use tabs.", "other"])
    nothing = review(3, "pin", 1, lesson_id="gone")
    assert trust.resolve(by_value, last) == "use spaces."
    assert trust.resolve(by_source, last) == "use tabs."
    assert trust.unresolved(rows, [by_value, by_source, nothing]) == [nothing]
    alias = [lesson(), lesson("Theme", State.STATED, source_lesson_ids=("use tabs.",))]
    assert trust.resolve(review(4, "pin", 1, lesson_id="use tabs."), trust.newest(alias)) == "theme"


def test_a_review_the_fold_already_knew_is_not_applied_twice() -> None:
    known = review(1, "approve", 0, lesson_id="use tabs.")
    later = lesson(state=State.SUPERSEDED, valid_to=NOW)  # written after the review was folded
    assert trust.apply_entries([later], [known]) == [later]
    fresh = review(2, "approve", 1, lesson_id="use tabs.")
    *_, row = trust.apply_entries([lesson()], [fresh])
    assert (row.state, row.revision, row.decided_by) == (State.APPROVED, 2, "human")


def test_on_top_and_folded_reviews_come_to_the_same() -> None:
    rows = [said("Use tabs.", 0, "a"), said("Keep functions short.", 0, "a")]
    before = [row for _, row in folded(rows, 0).lessons]
    by_text = {row.text: row for row in before}
    for number, action in enumerate(sorted(trust.ACTIONS)):
        target = by_text["Use tabs."]
        fields = {"lesson_id": target.lesson_id, "value_key": target.value_key}
        entry = review(number, action, 1, text="Use real tabs.", **fields)
        on_top = trust.visible(before, [entry], set(), at=day_end(day_of(1)))
        after = [row for _, row in folded(rows, 1, [entry]).lessons]
        inside = trust.visible(after, [entry], set(), at=day_end(day_of(1)))
        assert [(r.lesson_id, r.text, r.state) for r in on_top] == [
            (r.lesson_id, r.text, r.state) for r in inside
        ]
        assert "Keep functions short." in {row.text for row in inside}


def test_nobody_but_the_person_in_the_terminal_can_approve_or_pin() -> None:
    for old in (None, *State):
        for new in (State.APPROVED, State.PINNED):
            for actor in Actor:
                for via in Via:
                    allowed = trust.may(old, new, actor, via)
                    person = actor == Actor.PERSON and via == Via.TERMINAL
                    assert allowed == (old == new or (person and old is not None))


def test_agents_models_and_importers_never_rise_above_a_candidate() -> None:
    for old, new, actor, _ in trust.TRANSITIONS:
        if actor in (Actor.AGENT, Actor.MODEL, Actor.IMPORTER):
            assert (old, new) == (None, State.CANDIDATE)


def test_pinned_and_ended_lessons_are_moved_by_the_person_alone() -> None:
    for old, new, actor, _ in trust.TRANSITIONS:
        if old in (State.PINNED, State.REJECTED, State.RETIRED) and old != new:
            assert actor == Actor.PERSON


GATED = [
    (lesson(), {}, None),
    (lesson(), {"dead": {value_key("use TABS")}}, "rejected this value"),
    (lesson(state=State.REJECTED), {"dead": {value_key("use TABS")}}, None),
    (lesson(text=" "), {}, "needs a text"),
    (lesson(text=" ", state=State.CANDIDATE), {}, None),
    (lesson(text=" ", state=State.REJECTED), {}, None),
    (lesson(value_key="0"), {}, "value key"),
    (lesson(lesson_kind=LessonKind.NOTE, state=State.CANDIDATE), {}, None),
    (
        lesson(lesson_kind=LessonKind.NOTE, state=State.APPROVED, decided_by="human"),
        {"previous": State.CANDIDATE, "actor": Actor.PERSON, "via": Via.TERMINAL},
        None,
    ),
    (lesson(scope=EVERYWHERE, state=State.CANDIDATE), {}, None),
    (
        lesson(scope=EVERYWHERE, state=State.APPROVED, decided_by="human"),
        {"previous": State.STATED, "actor": Actor.PERSON, "via": Via.TERMINAL},
        None,
    ),
    (lesson(state=State.APPROVED), {}, "only the person"),
    (lesson(state=State.PINNED, decided_by="human"), {}, "may not move"),
    (lesson(lesson_kind=LessonKind.SURPRISE), {}, "own claim"),
    (lesson(lesson_kind=LessonKind.NOTE), {}, "own claim"),
    (lesson(scope=EVERYWHERE), {}, "everywhere"),
    (lesson(), {"previous": State.PINNED}, "may not move"),
    (lesson(), {"actor": Actor.AGENT, "via": Via.MCP}, "may not move"),
    (lesson(state=State.CANDIDATE), {"actor": Actor.AGENT, "via": Via.MCP}, None),
]


@pytest.mark.parametrize(("row", "how", "why"), GATED)
def test_the_gate_refuses_with_a_reason_and_lets_the_rest_through(
    row: LessonRevision, how: dict[str, Any], why: str | None
) -> None:
    answer = trust.gate(row, how.pop("dead", set()), **how)
    assert (answer is None) if why is None else (answer is not None and why in answer)


def test_the_wire_digest_changes_with_the_content_and_not_with_itself() -> None:
    row = trust.sealed(lesson())
    assert trust.sealed(row) == row
    other = msgspec.structs.replace(row, text="Use spaces.")
    assert trust.sealed(other).hash != row.hash


@settings(max_examples=60, deadline=None)
@given(
    names=st.permutations(["a", "b", "c", "d"]),
    actions=st.lists(st.tuples(st.sampled_from(sorted(trust.ACTIONS)), st.sampled_from("abcd"))),
    data=st.data(),
)
def test_the_view_does_not_depend_on_any_order(
    names: list[str], actions: list[tuple[str, str]], data: st.DataObject
) -> None:
    rows = [lesson(name) for name in names]
    entries = [
        review(number, action, 1, lesson_id=name, value_key=value_key(name))
        for number, (action, name) in enumerate(actions)
    ]
    mixed = data.draw(st.permutations(entries))
    first = trust.visible(sorted(rows, key=lambda row: row.text), entries, set(), at=NOW)
    assert trust.visible(rows, mixed, set(), at=NOW) == first


# The table of §7 in another spelling: who may move what to where. "-" is: newly made.
OPEN = "candidate stated corroborated disputed"
TABLE = {
    ("night", "fold"): [
        ("-", f"{OPEN} rejected"),
        (f"{OPEN} superseded", f"{OPEN} superseded retired rejected"),
    ],
    ("agent", "inbox"): [("-", "candidate")],
    ("agent", "mcp"): [("-", "candidate")],
    ("model", "fold"): [("-", "candidate")],
    ("importer", "inbox"): [("-", "candidate")],
    ("importer", "fold"): [("-", "candidate")],
    ("person", "transcript"): [("approved", "superseded"), ("retired", OPEN)],
    ("person", "terminal"): [
        (" ".join(state.value for state in State), "approved pinned rejected retired")
    ],
}


def test_the_table_of_moves_is_the_one_that_is_written_down() -> None:
    wanted = {
        (None if old == "-" else State(old), State(new), Actor(actor), Via(via))
        for (actor, via), rows in TABLE.items()
        for olds, news in rows
        for old in olds.split()
        for new in news.split()
    }
    assert wanted == trust.TRANSITIONS


def test_each_action_of_a_review_asks_for_its_state_and_other_entries_for_none() -> None:
    wanted = {
        "approve": State.APPROVED,
        "pin": State.PINNED,
        "edit": State.APPROVED,
        "reject": State.REJECTED,
        "wrong": State.REJECTED,
        "retire": State.RETIRED,
    }
    for action, state in wanted.items():
        entry = review(1, action, 1, lesson_id="x")
        assert trust.decided(entry) == state
        assert trust.decided(entry | {"actor": "person", "channel": "terminal"}) == state
        assert trust.decided(entry | {"kind": "veto"}) is None
        assert trust.decided(entry | {"actor": "agent"}) is None
        assert trust.decided(entry | {"channel": "mcp"}) is None
    assert trust.decided(review(1, "applaud", 1)) is None
    assert set(trust.ACTIONS) == set(wanted)


def test_a_tombstone_falls_with_the_new_words_of_an_edit_too() -> None:
    key, new = value_key("Use tabs."), value_key("Use two spaces.")
    no = review(1, "reject", 1, lesson_id="x", value_key=key)
    also = review(2, "wrong", 1, lesson_id="y", value_key=new)
    edit = review(3, "edit", 1, lesson_id="x", value_key=key, text="Use two spaces.")
    assert trust.tombstones([no, also]) == {key, new}
    assert trust.tombstones([no, also, edit]) == frozenset()
    assert trust.tombstones([no, edit, also]) == frozenset(), "in the order of their ids"
    for action in ("approve", "pin"):
        raised = review(4, action, 1, lesson_id="x", value_key=key)
        assert trust.tombstones([no, raised]) == frozenset()
    retired = review(4, "retire", 1, lesson_id="x", value_key=key)
    assert trust.tombstones([no, retired]) == {key}, "a retirement neither buries nor raises"
    assert trust.tombstones([retired]) == frozenset()
    forgotten = {"id": "9", "kind": "forget", "value_keys": [key]}
    assert trust.tombstones([edit, forgotten]) == {key}
    elsewhere = no | {"scope": "other"}
    assert trust.tombstones([elsewhere], scope="shop") == frozenset()
    assert trust.tombstones([elsewhere]) == trust.tombstones([elsewhere], scope="other") == {key}
