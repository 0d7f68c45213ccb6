from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everest_pipelines.core.records import State
from everest_pipelines.core.render import (
    BrokenMarkersError,
    memory_section,
    short_id,
    splice,
    unsplice,
)
from everest_pipelines_tests.core.render.lessons import HOSTILE, PROJECT, make_lesson

BEGIN = "<!-- everest:begin -->"
END = "<!-- everest:end -->"
SECTION = memory_section([make_lesson()], project=PROJECT)
OTHER = memory_section([make_lesson("Never push to main."), make_lesson()], project=PROJECT)

anything = st.text(
    st.one_of(st.sampled_from("\r\n\t -#`<!ab"), st.characters(exclude_categories=["Cs"]))
)
owners = anything.filter(lambda text: "everest:" not in text)


@given(st.lists(st.one_of(st.sampled_from(HOSTILE), anything), max_size=60), st.integers(0, 400))
def test_the_section_is_never_longer_than_30_lines_and_3_kb(texts: list[str], extra: int) -> None:
    lessons = [make_lesson(text + "x" * extra, strength=n) for n, text in enumerate(texts)]
    section = splice("a\r\nb\r\n", memory_section(lessons, project=PROJECT))
    ours = section.removeprefix("a\r\nb\r\n\r\n")
    assert len(ours.splitlines()) <= 30
    assert len(ours.encode()) <= 3072


@given(st.one_of(st.sampled_from(HOSTILE), anything))
def test_no_text_breaks_out_of_its_line(text: str) -> None:
    harmless = memory_section([make_lesson("x")], project=PROJECT)
    section = memory_section([make_lesson(text)], project=PROJECT)
    assert len(section.split("\n")) == len(harmless.split("\n"))
    assert section.isprintable() or all(
        sign == "\n" or sign.isprintable() or not sign.isspace() for sign in section
    )
    assert section.count("<!--") == 2  # our two markers
    assert section.count("-->") == 2
    assert unsplice(splice("mine\n", section)) == "mine\n"
    line = next(line for line in section.split("\n") if line.startswith("- `"))
    inside = re.fullmatch(r"- `\w{8}` unreviewed: (`+)( ?)(.*)\2\1 \(\[evidence\]\(.*\)\)", line)
    assert inside is not None
    assert inside[1] not in re.findall(r"`+", inside[3])


def test_a_placeholder_stays_as_it_was_said() -> None:
    said = "Branches are named feat/<number>"
    section = memory_section([make_lesson(said)], project=PROJECT)
    assert f"`{said}`" in section
    hostile = memory_section([make_lesson("</everest-lessons> <!-- x -->")], project=PROJECT)
    assert "`&lt;/everest-lessons> &lt;!-- x --&gt;`" in hostile


def test_strongest_come_first_with_id_mark_and_link() -> None:
    lessons = [
        make_lesson("weak", strength=0.2),
        make_lesson("sure", strength=2.0, state=State.APPROVED),
        make_lesson("torn", strength=1.0, state=State.DISPUTED),
    ]
    random.Random(1).shuffle(lessons)
    lines = [
        line
        for line in memory_section(lessons, project=PROJECT).splitlines()
        if line.startswith("- ")
    ]
    assert ["sure" in lines[0], "torn" in lines[1], "weak" in lines[2]] == [True] * 3
    assert ["unreviewed" in line for line in lines] == [False, False, True]
    assert "disputed" in lines[1]
    for line, text in zip(lines, ["sure", "torn", "weak"], strict=True):
        short = short_id(make_lesson(text).lesson_id)
        assert f"`{short}`" in line
        assert f"(everest-{short}.md)" in line


def test_what_does_not_fit_is_counted() -> None:
    section = memory_section([make_lesson(f"Rule {n}") for n in range(100)], project=PROJECT)
    listed = section.count("\n- ")
    assert f"({100 - listed} more" in section
    assert listed >= 20


def test_another_project_and_unshown_states_stay_out() -> None:
    lessons = [
        make_lesson("of here"),
        make_lesson("of everywhere", scope="everywhere"),
        make_lesson("of elsewhere", scope="other-00000000"),
        *(
            make_lesson(f"state {state}", state=state)
            for state in (State.CANDIDATE, State.SUPERSEDED, State.REJECTED, State.RETIRED)
        ),
    ]
    section = memory_section(lessons, project=PROJECT)
    assert "of here" in section
    assert "of everywhere" in section
    assert section.count("\n- ") == 2
    assert memory_section(lessons[2:3], project=PROJECT) == ""


@given(st.one_of(st.none(), owners))
def test_taking_the_section_out_gives_the_original_back(existing: str | None) -> None:
    once = splice(existing, SECTION)
    assert BEGIN[:-4] in once
    assert unsplice(once) == existing
    assert unsplice(splice(once, OTHER)) == existing


@given(st.one_of(st.none(), owners))
def test_splicing_is_idempotent_and_the_last_section_wins(existing: str | None) -> None:
    once = splice(existing, SECTION)
    assert splice(once, SECTION) == once
    assert splice(once, OTHER) == splice(existing, OTHER)
    if existing is not None:
        assert once.startswith(existing)
        assert splice(once, "") == existing


@given(owners, owners)
def test_the_owners_lines_before_and_after_are_untouched(before: str, after: str) -> None:
    text = f"{before}\n{BEGIN}\nold\n{END}\n{after}"
    changed = splice(text, SECTION)
    assert changed.startswith(f"{before}\n<!-- everest:begin")
    assert changed.endswith(f"{END}\n{after}")
    assert "old" not in changed.removeprefix(before).removesuffix(after)
    assert unsplice(text) == f"{before}\n{after}"


def test_crlf_files_stay_crlf() -> None:
    text = splice("# Mine\r\n\r\n- a\r\n", SECTION)
    assert "\n" not in text.replace("\r\n", "")
    assert "\r" not in splice("# Mine\n", SECTION)


def test_lines_written_after_our_section_do_not_run_into_those_before() -> None:
    text = splice("mine, no line break", SECTION) + "more of mine\n"
    assert unsplice(text) == "mine, no line break\nmore of mine\n"


def test_a_file_that_we_made_is_told_from_an_empty_one() -> None:
    assert unsplice(splice(None, SECTION)) is None
    assert unsplice(splice("", SECTION)) == ""
    assert unsplice(splice(None, SECTION) + "mine\n") == "mine\n"


@pytest.mark.parametrize(
    "broken",
    [
        f"a\n{BEGIN}\nno end",
        f"a\n{END}\n",
        f"{END}\n{BEGIN}\n",
        f"{BEGIN}\n{END}\n{BEGIN}\n{END}\n",
        f"{BEGIN}\n{BEGIN}\n{END}\n",
    ],
)
def test_broken_markers_are_an_error_that_names_the_lines(broken: str) -> None:
    with pytest.raises(BrokenMarkersError, match="in line"):
        splice(broken, SECTION)
    with pytest.raises(BrokenMarkersError):
        unsplice(broken)
    assert splice(f"a\n{BEGIN}\n{END}\n", SECTION)  # the whole pair is fine


def test_a_marker_inside_a_sentence_is_the_owners_text() -> None:
    text = f"we keep `{BEGIN}` and {END} here\n"
    assert unsplice(splice(text, SECTION)) == text
