from __future__ import annotations

import json
import re

import pytest

from everest_pipelines.core.records import LessonKind, State
from everest_pipelines.core.render import Evidence, lesson_file, short_id
from everest_pipelines_tests.core.render.lessons import HOSTILE, make_lesson

EVIDENCE = [
    Evidence(quote="use pnpm", day="2026-03-01", session_id="aaaaaaaa-1", kind="correction"),
    Evidence(quote="pnpm, please", day="2026-03-04", session_id="bbbbbbbb-2", origin="human"),
]


def _text(lesson_text: str = "Use pnpm.", quote: str = "use pnpm") -> str:
    evidence = [Evidence(quote=quote, day="2026-03-01", session_id="s")]
    return lesson_file(make_lesson(lesson_text), evidence)[1].decode()


def test_the_file_holds_rule_why_evidence_and_how_to_say_it_is_wrong() -> None:
    lesson = make_lesson("Use pnpm.", seen=2, families=2, days=2, state=State.CORROBORATED)
    name, content = lesson_file(lesson, EVIDENCE)
    text = content.decode()
    short = short_id(lesson.lesson_id)
    assert name == f"everest-{short}.md"
    for expected in (
        "\nUse pnpm.\n",
        "Seen 2 times, in 2 independent sessions, on 2 days.",
        "2026-03-01, session `aaaaaaaa`, correction: `use pnpm`",
        f"everest wrong {short}",
    ):
        assert expected in text
    assert text.index("2026-03-04, s") < text.index("2026-03-01, s")


def test_evidence_in_any_order_gives_the_same_bytes() -> None:
    lesson = make_lesson()
    assert lesson_file(lesson, EVIDENCE) == lesson_file(lesson, EVIDENCE[::-1])
    assert lesson_file(lesson, EVIDENCE) != lesson_file(lesson, EVIDENCE[:1])


def test_the_fix_of_an_error_is_in_its_file() -> None:
    lesson = make_lesson("ENOENT", lesson_kind=LessonKind.ERROR, fix="mkdir -p build")
    assert "mkdir -p build" in lesson_file(lesson, [])[1].decode()
    assert "What then worked" not in _text()


def test_more_evidence_than_fits_is_counted() -> None:
    many = [Evidence(quote=f"q{n}", day="2026-03-01", session_id=str(n)) for n in range(25)]
    text = lesson_file(make_lesson(), many)[1].decode()
    assert text.count("session `") == 10
    assert "and 15 more" in text


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_text_or_quote_breaks_out(hostile: str) -> None:
    plain, text = _text(), _text(hostile, hostile)
    assert re.findall(r"^#+ .*", _unfenced(text), re.M) == re.findall(r"^#+ .*", plain, re.M)
    assert "<" not in _unfenced(text)
    assert "<!--" not in text and "-->" not in text
    assert not re.search(r"</?(?:everest|system)", text)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u200b]", text)
    front = text.split("---\n")[1].splitlines()
    assert [line.split(":")[0] for line in front] == [
        line.split(":")[0] for line in plain.split("---\n")[1].splitlines()
    ]
    for line in front:
        json.loads(line.split(": ", 1)[1])


def test_a_placeholder_stays_as_it_was_said() -> None:
    said = "Branches are named feat/<number>-<what>, in List<T>"
    text = _text(said, said)
    assert "&lt;" not in text
    assert text.count(said) == 3  # the description, the fence and the quote
    assert f"`{said}`" in text
    assert f"\n{said}\n" in text


def _unfenced(text: str) -> str:
    return re.sub(r"^(`{3,})text\n.*?^\1$", "", text, flags=re.M | re.S)


def test_an_id_that_is_no_plain_word_names_no_file() -> None:
    with pytest.raises(ValueError, match="cannot name a file"):
        lesson_file(make_lesson(lesson_id="../../etc"), [])
