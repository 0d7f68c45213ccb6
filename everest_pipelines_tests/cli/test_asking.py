"""Asking the memory and taking something back: wrong, recall, sql; and what is refused."""

from __future__ import annotations

import errno
import json
import os
import sys
import warnings
from argparse import Namespace
from pathlib import Path

import pytest

from everest_pipelines.cli import commands, memory, places, sql, up
from everest_pipelines.cli.checks import Case, folders
from everest_pipelines.cli.main import main
from everest_pipelines.cli.setup import switch
from everest_pipelines.recall import overlay
from everest_pipelines.text import ledger
from everest_pipelines.text.settings import load
from everest_pipelines_tests.cli.conftest import Everest, Made


def body(out: str) -> dict[str, object]:
    return json.loads(out.splitlines()[-1])


def lesson_of_harbor(copied: Made) -> dict[str, str]:
    lines = (copied.home.current / "lessons.jsonl").read_text().splitlines()
    return next(one for one in map(json.loads, lines) if one["scope"].startswith("code-harbor"))


def test_a_wrong_lesson_leaves_every_file_that_agents_read_at_once(
    copied: Made, everest: Everest
) -> None:
    claude = Path(copied.environ["EVEREST_CLAUDE_DIR"])
    switch(copied.home, on=True)
    assert everest("publish")[0] == 0
    lesson = lesson_of_harbor(copied)

    def holders() -> set[str]:
        """Where the lesson stands: files of the generation and of the agents."""
        seen = [p for root in (copied.home.current.resolve(), claude) for p in root.rglob("*")]
        words = lesson["id"].encode()[:12]
        named = {p.name for p in seen if p.is_file() and lesson["id"][:8] in p.name}
        return named | {
            p.name
            for p in seen
            if p.name in ("lessons.jsonl", "MEMORY.md")
            and (words in p.read_bytes() or lesson["short_id"].encode() in p.read_bytes())
        }

    query = f"select count(*) as n from lessons_now where lesson_id = '{lesson['id']}'"
    assert {"lessons.jsonl", "MEMORY.md"} < holders()
    assert body(everest("sql", query, "--json")[1])["rows"] == [[1]]
    code, out, err = everest("wrong", lesson["short_id"], "--json")
    assert code == 0, err
    assert body(out)["published"] is True
    assert holders() == set()
    assert body(everest("sql", query, "--json")[1])["rows"] == [[0]]
    code, out, _ = everest("wrong", lesson["short_id"])
    assert code == 0
    assert "hidden already" in out
    assert len(ledger.read(copied.home, ("veto",)).entries) == 1


def test_a_wrong_lesson_is_hidden_while_a_run_is_at_work_and_the_files_follow(
    copied: Made, everest: Everest
) -> None:
    import fcntl

    lesson = lesson_of_harbor(copied)
    with copied.home.lock.open("a+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code, out, err = everest("wrong", lesson["short_id"])
        assert code == 0
        assert out.startswith("Hidden: ")
        assert "everest publish" in err
    assert lesson["id"] in overlay.hidden(copied.home)
    assert lesson_of_harbor(copied) == lesson
    code, out, _ = everest("wrong", lesson["short_id"])
    assert code == 0
    assert out.startswith("Was hidden already")
    assert lesson_of_harbor(copied) != lesson


def test_what_was_called_wrong_stays_so_when_publishing_fails(
    copied: Made, everest: Everest, monkeypatch: pytest.MonkeyPatch
) -> None:
    from everest_pipelines.night import publish

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(publish, "publish", full)
    lesson = lesson_of_harbor(copied)
    code, _, err = everest("wrong", lesson["short_id"])
    assert code == 1
    assert "No space left" in err
    assert lesson["id"] in overlay.hidden(copied.home)
    assert len(ledger.read(copied.home, ("veto",)).entries) == 1


@pytest.mark.parametrize("everything", [True, False])
def test_a_lesson_goes_when_its_project_is_held_and_is_said_to_stay_when_all_is(
    copied: Made, everest: Everest, monkeypatch: pytest.MonkeyPatch, everything: bool
) -> None:
    from everest_pipelines.night import publish
    from everest_pipelines.night.gates import GateResult

    lesson = lesson_of_harbor(copied)
    project = "" if everything else lesson["scope"]
    held = GateResult(gate="counts", project=project, passed=False, sentence="one is open")

    def evaluate(*_: object) -> list[GateResult]:
        return [held]

    monkeypatch.setattr(publish, "evaluate", evaluate)
    code, out, err = everest("wrong", lesson["short_id"], "--json")
    assert code == int(everything)
    assert body(out)["published"] is not everything
    assert ("not published: counts" in err) is everything
    shown = (copied.home.current / "lessons.jsonl").read_text()
    assert (lesson["id"] in shown) is everything
    assert lesson["id"] in overlay.hidden(copied.home)


def test_a_call_that_ended_before_the_ledger_is_made_whole_by_the_next(
    copied: Made, everest: Everest
) -> None:
    lesson = lesson_of_harbor(copied)
    overlay.hide(copied.home, lesson["id"], value_key=lesson["value_key"])
    assert ledger.read(copied.home, ("veto",)).entries == []
    assert everest("wrong", lesson["short_id"])[0] == 0
    assert len(ledger.read(copied.home, ("veto",)).entries) == 1


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_what_the_system_refuses_is_one_line_with_the_path(
    empty: Made, everest: Everest, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refused(_: Namespace) -> int:
        raise OSError(number, os.strerror(number), "/some/where")

    monkeypatch.setattr(places, "paths", refused)
    code, out, err = everest("paths")
    assert (code, out) == (5, "")
    assert err == f"everest: /some/where: {os.strerror(number)}.\n"


def test_another_error_of_the_system_is_not_hidden(
    empty: Made, everest: Everest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Namespace) -> int:
        raise OSError(errno.EIO, "Input/output error", "/some/where")

    monkeypatch.setattr(places, "paths", broken)
    with pytest.raises(OSError, match="Input/output"):
        everest("paths")


@pytest.mark.parametrize("query", ["", "  ", "-- only a comment", ";"])
def test_a_query_that_says_nothing_is_an_error(
    published: Made, everest: Everest, query: str
) -> None:
    code, _, err = everest("sql", "--", query)
    assert code == 2
    assert "says nothing" in err
    assert everest("sql", "select 1 -- and a comment")[0] == 0


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (("sql", "select 1", "--limit", "1"), ("sql", "select 1", "--limit", "0")),
        (("recall", "x", "-k", "1"), ("recall", "x", "-k", "0")),
        (("up", "--port", "65535"), ("up", "--port", "99999")),
        (("up", "--port", "1"), ("up", "--port", "0")),
    ],
)
def test_a_number_out_of_range_is_refused(good: tuple[str, ...], bad: tuple[str, ...]) -> None:
    assert commands.parser().parse_args(good)
    with pytest.raises(SystemExit) as ended:
        main(bad)
    assert ended.value.code == 2


def test_a_pipe_gets_whole_values_separated_by_tabs(published: Made, everest: Everest) -> None:
    query = "select 1 as a, 'x' || chr(9) || 'y' || chr(10) || '\\' as b, repeat('z', 500) as c"
    code, out, _ = everest("sql", f"{query}, null as d")
    assert code == 0
    assert out == "a\tb\tc\td\n1\tx\\ty\\n\\\\\t" + "z" * 500 + "\t\n"


def test_a_terminal_gets_a_table_where_it_fits_and_else_a_line_a_value(
    published: Made, everest: Everest, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert everest("sql", "select 1 as a, 2 as b")[1] == "a\tb\n1\t2\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    assert everest("sql", "select 1 as a, 2 as b")[1] == "a  b\n─  ─\n1  2\n"
    rows: list[tuple[object, ...]] = [(1, "日本"), (22, "b")]
    assert sql.on_terminal(["n", "text"], rows) == [
        "n   text",
        "──  ────",
        "1   日本",
        "22  b",
    ]
    long = "z " * 60 + "end"
    assert sql.on_terminal(["n", "text"], [(1, long), (2, None)]) == [
        "n     1",
        f"text  {long}",
        "",
        "n     2",
        "text",
    ]


LENIENT = {"paths", "doctor", "on", "off", "prime"}  # they must work with wrong settings
NEEDED = {
    "recall": ["x"], "wrong": ["abcd"], "remember": ["x"], "sql": ["select 1"],
    "ingest": ["/nowhere"], "setup": ["--yes"], "uninstall": ["--yes"], "rebuild": ["--yes"],
    "rezone": ["--yes"],
}  # fmt: skip


@pytest.mark.parametrize(
    "command", [one.name for one in commands.COMMANDS if one.name not in LENIENT]
)
def test_an_unknown_variable_stops_every_command_but_those_that_mend(
    published: Made, everest: Everest, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("EVEREST_RENDR", "1")
    code, _, err = everest(command, *NEEDED.get(command, []))
    assert code == 5
    assert "EVEREST_RENDER" in err


def test_recall_takes_words_without_quotes_and_the_start_of_a_key(
    published: Made, everest: Everest
) -> None:
    code, out, _ = everest("recall", "use", "pnpm", "--project", "code-tidepool", "--json")
    assert code == 0
    found = body(out)
    assert str(found["project"]).startswith("code-tidepool-web-")
    assert found["hits"]
    code, _, err = everest("recall", "pnpm", "--project", "no-such-project")
    assert code == 2
    assert "code-tidepool-web" in err
    code, _, err = everest("recall", "pnpm", "--project", "code-")
    assert code == 2
    assert "several projects" in err


def test_recall_of_one_kind_and_its_explanation(published: Made, everest: Everest) -> None:
    asked = ("recall", "pnpm", "--project", "code-tidepool", "--k", "3")
    for kind in ("rule", "error", "episode"):
        hits = body(everest(*asked, "--kind", kind, "--json")[1])["hits"]
        assert len(hits) <= 3
        if kind == "episode":
            assert all(str(hit["project"]).startswith("code-tidepool") for hit in hits)
            assert any("pnpm" in hit["gist"] + hit["quote"] for hit in hits)
        else:
            assert {hit["kind"] for hit in hits} <= {kind}
    assert body(everest(*asked, "--kind", "rule", "--json")[1])["hits"]
    with pytest.raises(SystemExit):
        everest(*asked, "--kind", "session")
    assert "(words " in everest(*asked, "--explain")[1]
    assert "(words " in everest(*asked, "--kind", "episode", "--explain")[1]


def test_recall_outside_a_project_says_so_and_names_the_projects(
    published: Made, everest: Everest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = everest("recall", "pnpm")
    assert code == 0
    assert "no known project" in err
    assert "code-tidepool-web" in err
    _, _, err = everest("recall", "zzzzqq", "--project", "code-tidepool-web")
    assert "no known project" not in err
    assert "shares a word" in err


def test_only_the_first_projects_are_named() -> None:
    assert memory.listed([]) == "none yet"
    assert memory.listed(["a", "b"]) == "a, b"
    assert memory.listed([str(n) for n in range(25)]).endswith("19 and 5 more")


def test_recall_imports_nothing_heavy(published: Made, tmp_path: Path) -> None:
    import subprocess

    script = (
        "import sys; from everest_pipelines.cli.main import main; main(['recall', 'x']);"
        "print([m for m in ('msgspec', 'duckdb', 'pyarrow', 'rich', 'dagster', 'numpy')"
        " if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_daemons_own_superseded_warning_is_the_only_one_not_heard() -> None:
    action, message, category = up.UNHEARD.split(":")
    assert (action, category) == ("ignore", "FutureWarning")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", message=message, category=FutureWarning)
        warnings.warn("Function `dev_command` is superseded and …", FutureWarning, stacklevel=1)
        warnings.warn("Function `another` is superseded and …", FutureWarning, stacklevel=1)
    assert len(heard) == 1


def test_doctor_notes_a_folder_of_two_projects_and_calls_it_neither_good_nor_wrong(
    copied: Made, everest: Everest
) -> None:
    from msgspec.structs import replace

    from everest_pipelines.lake.lake import Lake

    lake = Lake(copied.home)
    case = Case(copied.home, load(copied.environ, copied.home.config), (), {}, "linux")
    assert list(folders(case)) == []
    before = everest("doctor")[0]
    first, second, *others = lake.read_table("projects")
    shared = [replace(one, folders=["-both"]) for one in (first, second)]
    lake.write_table("projects", [*shared, *others])
    (finding,) = folders(case)
    assert (finding.good, finding.note) == (False, True)
    code, out, _ = everest("doctor")
    assert code == before
    assert "note   -both belongs to 2 projects" in out


def test_a_withheld_lesson_is_not_recalled_but_stays_in_the_owners_list(
    published: Made, everest: Everest, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first, *_) = json.loads(everest("lessons", "--json")[1])["lessons"]
    ask = ("recall", first["text"], "--project", first["scope"], "--json")
    assert first["id"] in everest(*ask)[1]
    monkeypatch.setenv("EVEREST_WITHHOLD", "1")
    assert json.loads(everest(*ask)[1])["hits"] == []
    assert first["id"] in everest("lessons", "--json")[1]
