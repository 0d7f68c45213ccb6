"""Commands that read a published memory."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from everest_pipelines_tests.cli.conftest import Everest, Made

DOCS = Path(__file__).resolve().parents[2] / "docs"
QUERIES = re.findall(r"```sql\n(.*?)```", (DOCS / "sql.md").read_text(encoding="utf-8"), re.DOTALL)
# Of these the sample holds nothing: they must run, and may give no rows.
MAY_BE_EMPTY = ("from merges", "from verifications", "having count(distinct family_id)")


def last_object(out: str) -> dict[str, object]:
    return json.loads(out.splitlines()[-1])


def test_the_page_has_queries() -> None:
    assert len(QUERIES) >= 8


@pytest.mark.parametrize("query", QUERIES, ids=[query.split("\n")[0][:50] for query in QUERIES])
def test_every_query_of_the_page_runs_and_answers(
    published: Made, everest: Everest, query: str
) -> None:
    code, out, err = everest("sql", query, "--json")
    assert code == 0, err
    body = last_object(out)
    assert body["columns"]
    if not any(words in query for words in MAY_BE_EMPTY):
        assert body["rows"]


def test_a_wrong_query_is_a_message_and_no_traceback(published: Made, everest: Everest) -> None:
    code, _, err = everest("sql", "select nothing_like_it from lessons_now")
    assert code == 2
    assert "nothing_like_it" in err
    assert "Next:" in err
    assert everest("sql", "select 1")[0] == 0


def test_sql_before_the_first_night_names_the_next_command(empty: Made, everest: Everest) -> None:
    code, _, err = everest("sql", "select 1")
    assert code == 4
    assert "everest night" in err


def test_the_sample_teaches_what_was_said_in_it(published: Made, everest: Everest) -> None:
    code, out, _ = everest("lessons", "--json")
    assert code == 0
    lessons = last_object(out)["lessons"]
    assert isinstance(lessons, list)
    texts = "\n".join(lesson["text"].casefold() for lesson in lessons)
    for words in ("uv", "pnpm", "src/components", "never push to main", "mock the database"):
        assert words in texts, words


def test_lessons_of_one_project_are_its_own(published: Made, everest: Everest) -> None:
    _, out, _ = everest("lessons", "--json", "--project", "code-tidepool-web")
    lessons = last_object(out)["lessons"]
    assert isinstance(lessons, list)
    assert lessons
    assert all(lesson["scope"].startswith("code-tidepool-web") for lesson in lessons)


def test_recall_finds_a_lesson_in_its_project_and_not_in_another(
    published: Made, everest: Everest
) -> None:
    scopes = {
        lesson["scope"]
        for lesson in last_object(everest("lessons", "--json")[1])["lessons"]  # type: ignore[union-attr]
    }
    tide = next(scope for scope in scopes if scope.startswith("code-tidepool-web"))
    harbor = next(scope for scope in scopes if scope.startswith("code-harbor-api"))
    found = last_object(everest("recall", "pnpm", "--project", tide, "--json")[1])
    assert found["hits"]
    other = last_object(everest("recall", "pnpm", "--project", harbor, "--json")[1])
    assert other["hits"] == []


def test_status_of_a_good_memory_exits_0_and_shows_the_quarantine(
    published: Made, everest: Everest
) -> None:
    code, out, err = everest("status", "--json")
    assert code == 0, err
    body = last_object(out)
    assert body["quarantined"] == {"torn": 1}
    assert body["left_behind"] is False
    assert everest("status")[0] == 0


def test_a_transcript_that_cannot_be_read_makes_status_exit_1(
    copied: Made, everest: Everest
) -> None:
    assert everest("status")[0] == 0
    from msgspec.structs import replace

    from everest_pipelines.lake.lake import Lake

    lake = Lake(copied.home)
    first, *others = lake.read_table("files")
    lake.write_table("files", [replace(first, error="cannot be read: Permission denied"), *others])
    code, _, err = everest("status")
    assert code == 1
    assert first.path in err


def test_morning_is_printed_as_published(published: Made, everest: Everest) -> None:
    code, out, _ = everest("morning")
    assert code == 0
    assert out == (published.home.current / "morning.md").read_text(encoding="utf-8")


def test_nothing_private_is_readable_by_others(published: Made) -> None:
    found = [
        path
        for path in published.home.root.rglob("*")
        if not path.is_symlink() and path.stat().st_mode & 0o077
    ]
    assert found == []
    assert (published.home.lake / "transcripts").is_dir()


def test_the_published_lessons_fit_the_schema(published: Made) -> None:
    schema = json.loads((DOCS / "lessons.schema.json").read_text(encoding="utf-8"))
    lines = (published.home.current / "lessons.jsonl").read_bytes().splitlines()
    assert lines
    for line in lines:
        Draft202012Validator(schema).validate(json.loads(line))
