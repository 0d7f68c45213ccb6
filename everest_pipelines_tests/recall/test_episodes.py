"""Past episodes: neighbours, sessions, and what was replaced."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from everest_pipelines.recall.episodes import search_episodes
from everest_pipelines.recall.snapshot import Snapshot
from everest_pipelines_tests.recall.rows import ELSEWHERE, HERE, episode, snapshot

SECOND = 1_000_000
START = 1_772_366_400_000_000


def _talk(session: str, *said: str, **more: Any) -> list[dict[str, Any]]:
    day = int(session.removeprefix("s")) * 86_400 * SECOND
    return [
        episode(text, session=session, occurred_at=START + day + at * SECOND, **more)
        for at, text in enumerate(said)
    ]


@pytest.fixture
def opened(tmp_path: Path) -> Snapshot:
    talks = [
        *_talk("s1", "Where do uploads go?", "To the bucket in Frankfurt.", "Thanks, merging."),
        *_talk("s2", "The uploads page is blue.", "Now it is green."),
        *_talk("s3", "Lunch was good.", "Coffee too."),
        *_talk("s4", "uploads of another project", "its bucket", project=ELSEWHERE),
    ]
    return snapshot(tmp_path, episodes=talks)


def _found(opened: Snapshot, prompt: str, **more: Any) -> list[str]:
    hits = search_episodes(opened, prompt, project=HERE, **{"k": 10, **more})
    return [hit.gist for hit in hits]


def test_what_stands_beside_a_match_comes_along_and_what_does_not_stays_away(
    opened: Snapshot,
) -> None:
    found = _found(opened, "where do uploads go")
    assert found[0] == "Where do uploads go?"
    assert "To the bucket in Frankfurt." in found
    assert not {"Lunch was good.", "Coffee too.", "its bucket"} & set(found)
    beside = search_episodes(opened, "uploads", project=HERE, k=10)
    assert {hit.why for hit in beside} == {"uploads", ""}
    assert all(dict(hit.parts)["beside"] > 0 for hit in beside if not hit.why)


def test_where_no_episode_shares_a_word_nothing_is_returned(opened: Snapshot) -> None:
    assert _found(opened, "kubernetes") == []
    assert _found(opened, "ok") == []
    assert _found(opened, "uploads", k=0) == []
    assert len(_found(opened, "uploads", k=2)) == 2


def test_hidden_episodes_and_other_kinds_are_left_out(opened: Snapshot) -> None:
    first = search_episodes(opened, "uploads", project=HERE, k=1)[0]
    hidden = frozenset({first.episode_id})
    assert first.gist not in _found(opened, "uploads", hidden=hidden)
    assert _found(opened, "uploads", hidden=hidden)
    assert _found(opened, "uploads", kind="session") == []


def test_a_session_that_speaks_of_it_often_comes_before_one_that_names_it_once(
    tmp_path: Path,
) -> None:
    talks = [
        *_talk("s1", "The cache is cold.", "Warm the cache at start.", "Cache it by tenant."),
        *_talk("s2", "The cache is cold.", "We had lunch."),
    ]
    talks[3]["id"], talks[0]["id"] = "0" * 32, "f" * 32  # ties would go to the other
    with snapshot(tmp_path, episodes=talks) as opened:
        hits = search_episodes(opened, "cold cache", project=HERE, k=1)
    assert [hit.session for hit in hits] == ["s1"]


OLD = "We keep invoices for seven years, rounded to whole blocks, without a grace allowance."
NEW = "Amendment on invoices: whole blocks stay, and a grace allowance of 25 units comes first."


@pytest.mark.parametrize("prompt", ["how long do we keep invoices", "invoices rounded grace years"])
def test_what_says_that_it_replaces_comes_before_what_it_replaced(
    tmp_path: Path, prompt: str
) -> None:
    other = [*_talk("s5", "Amendment: the logo is green now."), *_talk("s6", "Tests are slow.")]
    talks = [*_talk("s1", OLD), *_talk("s2", NEW), *other]
    with snapshot(tmp_path, episodes=talks) as opened:
        found = _found(opened, prompt)
    assert found.index(NEW) == found.index(OLD) - 1
    plain = NEW.replace("Amendment on", "About")
    with snapshot(tmp_path, episodes=[*_talk("s1", OLD), *_talk("s2", plain), *other]) as opened:
        assert _found(opened, prompt)[0] == OLD


def test_an_earlier_text_replaces_nothing_that_comes_after_it(tmp_path: Path) -> None:
    talks = [*_talk("s2", OLD), *_talk("s1", NEW)]
    with snapshot(tmp_path, episodes=talks) as opened:
        assert _found(opened, "how long do we keep invoices")[0] == OLD


def test_an_amended_commit_replaces_no_decision(tmp_path: Path) -> None:
    said = OLD + " Please amend the last commit."
    with snapshot(tmp_path, episodes=[*_talk("s1", OLD), *_talk("s2", said)]) as opened:
        rows = opened.connection.execute("SELECT count(*) FROM episodes WHERE replaced_by > 0")
        assert rows.fetchone()[0] == 0
