"""Somebody else's settings file: what we add is there, everything else stays as it was."""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everest_pipelines.cli import edit_json, edit_toml
from everest_pipelines.cli.edit_json import BrokenFileError

NAMES = st.text(alphabet='ab"\\/é,:{}[]# ', max_size=4) | st.sampled_from(["hooks", "mcpServers"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='a"\\/*,:{}[]é\n', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=10,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)
OURS = {"command": "/bin/everest", "args": ["serve"], "x": {"y": []}}
COMMENTS = st.sampled_from(["", "", " ", "\n", ' // it\'s, "x": {\n', "/* , ] } */", "\r\n", "\t"])
PATHS = [("mcpServers", "everest"), ("everest",), ("hooks", "Stop", -1), ("a", "b", "c")]


@st.composite
def written(draw: st.DrawFn) -> tuple[str, Any, bool]:
    """A text as somebody may have typed it, its value, and whether it has comments."""
    value = draw(OBJECTS)
    indent = draw(st.sampled_from([None, 1, 2, 4, "\t"]))
    text = json.dumps(value, indent=indent, ensure_ascii=draw(st.booleans()))
    comments = draw(st.booleans())
    if comments:
        places: set[int] = set()
        closing: set[int] = set()

        def walk(node: edit_json.Node) -> None:
            places.add(node.end)
            for start, _, child in node.members:
                places.add(start)
                walk(child)
            if node.members:
                closing.add(node.members[-1][2].end)

        walk(edit_json.read(text, comments=True))
        for place in sorted(places, reverse=True):
            extra = draw(COMMENTS)
            if place in closing and draw(st.booleans()):
                extra = "," + extra
            text = text[:place] + extra + text[place:]
    if draw(st.booleans()):
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    return text + draw(st.sampled_from(["", "\n", "\n\n"])), value, comments


def is_free(value: Any, path: tuple[Any, ...]) -> bool:
    """Whether nothing else stands where the path leads or on the way."""
    for key in path[:-1]:
        if not isinstance(value, dict):
            return False
        if key not in value:
            return True
        value = value[key]
    return (
        isinstance(value, list)
        if path[-1] == -1
        else (isinstance(value, dict) and path[-1] not in value)
    )


@given(written(), st.sampled_from(PATHS))
def test_what_is_added_is_there_and_nothing_else_changed(
    case: tuple[str, Any, bool], path: tuple[Any, ...]
) -> None:
    text, value, comments = case
    assert edit_json.read(text, comments=comments).value == value
    if not is_free(value, path):
        return
    after = edit_json.add(text, path, OURS, comments=comments)
    wanted = json.loads(json.dumps(value))
    at = wanted
    for here, following in itertools.pairwise(path):
        at = at.setdefault(here, [] if following == -1 else {})
    if path[-1] == -1:
        at.append(OURS)
    else:
        at[path[-1]] = OURS
    assert edit_json.read(after, comments=comments).value == wanted
    rest = iter(after)
    assert all(sign in rest for sign in text), "only inserted"
    index = len(at) - 1 if path[-1] == -1 else path[-1]
    back = edit_json.remove(after, (*path[:-1], index), comments=comments)
    at.pop(index)
    assert edit_json.read(back, comments=comments).value == wanted
    assert len(re.findall(r"// it's|/\* , \] \} \*/", back)) == len(
        re.findall(r"// it's|/\* , \] \} \*/", text)
    )


@given(written())
def test_every_member_can_be_taken_out_alone(case: tuple[str, Any, bool]) -> None:
    text, value, comments = case
    for key in value:
        left = edit_json.read(edit_json.remove(text, (key,), comments=comments), comments=comments)
        assert left.value == {name: one for name, one in value.items() if name != key}


@given(OBJECTS, st.text(alphabet='{}[]",:\\tfn01e-+./* \n', max_size=12))
def test_what_json_refuses_is_refused_and_what_it_takes_is_taken(value: Any, junk: str) -> None:
    for text in (junk, json.dumps(value), json.dumps(value)[:-1], json.dumps(value) + junk):
        try:
            wanted = json.loads(text)
        except ValueError:
            with pytest.raises(BrokenFileError):
                edit_json.read(text, comments=False)
        else:
            assert edit_json.read(text, comments=False).value == wanted


def test_a_broken_file_is_told_with_its_line() -> None:
    broken = (('{\n "a": 1\n "b": 2\n}', 3), ('{\n\n "a": }', 3), ("{", 1), ('{"a":1,}', 1))
    for text, line in broken:
        with pytest.raises(BrokenFileError) as error:
            edit_json.read(text, comments=False)
        assert error.value.line == line
    with pytest.raises(BrokenFileError, match="comment"):
        edit_json.read('{} // "x"', comments=False)
    assert edit_json.read('{"a":1,} // x', comments=True).value == {"a": 1}


def test_the_files_own_hand_is_kept() -> None:
    text = '{\n\t"a": 1, // one\n\t"b": {"c": 2}\n}\n'
    after = edit_json.add(text, ("mcp", "everest"), {"d": [1]}, comments=True)
    assert after == (
        '{\n\t"a": 1, // one\n\t"b": {"c": 2},\n\t"mcp": {\n\t\t"everest": {\n\t\t\t"d": [\n'
        "\t\t\t\t1\n\t\t\t]\n\t\t}\n\t}\n}\n"
    )
    assert edit_json.add(text, ("b", "x"), 3, comments=True) == text.replace("2}", '2, "x": 3}')
    assert edit_json.remove(after, ("mcp",), comments=True) == text


TABLES = st.dictionaries(
    st.sampled_from(["model", "projects", "a b", "tools"]),
    st.integers() | st.text(alphabet="a'\"[]#=\n", max_size=6) | st.booleans(),
    max_size=3,
)


@given(TABLES, st.dictionaries(st.sampled_from(["one", "two"]), TABLES, max_size=2), st.booleans())
def test_a_table_comes_and_goes_without_a_trace(
    top: dict[str, Any], servers: dict[str, Any], crlf: bool
) -> None:
    lines = [f"{json.dumps(name)} = {json.dumps(value)}  # kept" for name, value in top.items()]
    for name, table in servers.items():
        lines += ["", f"[ mcp_servers.{name} ] # mine"]
        lines += [f"{json.dumps(key)} = {json.dumps(value)}" for key, value in table.items()]
    text = "\n".join(lines) + ("\n" if lines else "")
    if crlf:
        text = text.replace("\n", "\r\n")
    before = tomllib.loads(text)
    after = edit_toml.add(text, ("mcp_servers", "everest"), OURS)
    assert after.startswith(text)
    wanted = {**before, "mcp_servers": {**before.get("mcp_servers", {}), "everest": OURS}}
    assert tomllib.loads(after) == wanted
    later = after + "\n[later]\nx = 1\n"
    assert edit_toml.remove(after, ("mcp_servers", "everest")) == text
    left = edit_toml.remove(later, ("mcp_servers", "everest"))
    assert tomllib.loads(left) == {**before, "later": {"x": 1}}


def test_a_toml_file_without_room_is_refused() -> None:
    with pytest.raises(BrokenFileError, match="no room"):
        edit_toml.add('mcp_servers = { x = { command = "y" } }\n', ("mcp_servers", "everest"), OURS)
    with pytest.raises(BrokenFileError) as error:
        edit_toml.add("a = 1\nb = = 2\n", ("mcp_servers", "everest"), OURS)
    assert error.value.line == 2
    hidden = '[mcp_servers.everest]\na = 1\nb = """\n[x]\n"""\n[later]\nc = 1\n'
    with pytest.raises(BrokenFileError):
        edit_toml.remove(hidden, ("mcp_servers", "everest"))
