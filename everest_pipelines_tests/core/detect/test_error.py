from __future__ import annotations

import pytest

from everest_pipelines.core.detect import detect
from everest_pipelines.core.detect.error_classes import LABELS, classify
from everest_pipelines.core.records import Episode, EpisodeKind, Origin, Turn
from everest_pipelines_tests.core.detect.make import Talk, call, day_of


def errors(turns: list[Turn]) -> list[Episode]:
    return [e for e in detect(turns, day_of=day_of) if e.kind == EpisodeKind.ERROR]


@pytest.mark.parametrize(
    ("tool", "command", "output", "name"),
    [
        (
            "Edit",
            "",
            "<tool_use_error>String to replace not found in file.\nString: x",
            "edit_no_match",
        ),
        ("Edit", "", "File has not been read yet. Read it first", "edit_without_read"),
        ("Edit", "", "File has been unexpectedly modified. Read it again", "edit_stale"),
        ("Edit", "", "Found 3 matches of the string to replace, but", "edit_ambiguous"),
        ("Read", "", "File does not exist. Did you mean x?", "path_not_found"),
        ("Skill", "", "Unknown skill: commit", "tool_misuse"),
        ("WebFetch", "", "Request failed with status code 403", "network"),
        ("Bash", "x", "This command requires approval", "permission_denied"),
        ("Bash", "zsh", "Exit code 127\nbash: line 1: zsh: command not found", "command_not_found"),
        ("Bash", "go test ./...", "Exit code 1\n--- FAIL: TestA (0.0s)\nFAIL", "test_failure"),
        ("Bash", "npm run build", "src/a.ts(2,9): error TS2322: Type", "build_error"),
        ("Bash", "bun run lint", "Exit code 1\n a.ts:4:1 lint/correctness/noUnused", "lint_error"),
        ("Bash", "git push", "error: failed to push some refs to 'x'", "git_error"),
        ("Bash", "x --foo", "Exit code 2\nerror: unrecognized arguments: --foo", "cli_usage"),
        (
            "Bash",
            "python -c x",
            "Traceback (most recent call last):\nValueError: x",
            "runtime_error",
        ),
        ("Bash", "cat x", "cat: x: No such file or directory", "path_not_found"),
        ("Bash", "frobnicate", "Exit code 3", "command_failed"),
        ("Bash", "frobnicate", "\x1b[31msomething odd\x1b[0m", "command_failed"),
    ],
)
def test_an_output_gets_its_class(tool: str, command: str, output: str, name: str) -> None:
    assert classify(tool, command, output).name == name
    assert name in LABELS


def test_an_error_says_what_failed_and_what_then_worked() -> None:
    talk = Talk()
    talk.human("go")
    talk.agent("", call("Edit", "File has not been read yet.", error=True, file_path="/r/a.py"))
    talk.agent("", call("Read", "1\tx", file_path="/r/a.py"))
    done = talk.agent("", call("Edit", "ok", file_path="/r/a.py"))
    (error,) = errors(talk.turns)
    assert error.sub == "edit_without_read"
    assert error.origin == Origin.TOOL
    assert error.fix == "Edit worked after a Read of `a.py`"
    assert (error.fix_turn_id, error.settled_at) == (done.turn_id, done.occurred_at)


def test_a_command_that_passes_after_edits_names_the_edited_files() -> None:
    talk = Talk()
    talk.agent("", call("Bash", "FAIL\n--- FAIL: TestX", error=True, command="make test 2>&1"))
    talk.agent("", call("Edit", "ok", file_path="/r/x.go"))
    talk.agent("", call("Bash", "ok", command="make test"))
    (error,) = errors(talk.turns)
    assert error.fix == "`make test` passed after edits of `x.go`"


def test_a_like_command_that_works_is_the_fix_and_another_is_not() -> None:
    for worked, fixed in (("bun run test", "`bun run test` worked"), ("git status", "")):
        talk = Talk()
        talk.agent("", call("Bash", "error: unrecognized subcommand 'bun'", error=True,
                            command="rtk bun run test 2>&1"))  # fmt: skip
        talk.agent("", call("Bash", "ok", command=worked))
        (error,) = errors(talk.turns)
        assert error.fix == fixed


def test_a_fix_in_another_session_or_by_a_sub_agent_is_none() -> None:
    talk = Talk()
    talk.agent("", call("Edit", "File has not been read yet.", error=True, file_path="/r/a.py"))
    other = Talk("s2")
    other.agent("", call("Edit", "ok", file_path="/r/a.py"))
    helper = Talk("s1", agent="agent-1")
    helper.agent("", call("Edit", "ok", file_path="/r/a.py"))
    (error,) = errors(talk.turns + other.turns + helper.turns)
    assert error.fix == "" and error.settled_at == error.occurred_at


def test_what_is_no_error_of_the_agent_makes_no_episode() -> None:
    talk = Talk()
    talk.agent(
        "",
        call("Bash", "<tool_use_error>Sibling tool call errored</tool_use_error>", error=True),
        call("Bash", "The user doesn't want to proceed", error=True, refused=True),
        call("Bash", "The user doesn't want to take this action right now.", error=True),
        call("Bash", "[Request interrupted by user for tool use]", error=True),
        call("Bash", "Exit code 1", error=True, command="cd src && grep -rn foo ."),
        call("Bash", "Error: Unknown command: aaaa", error=True, command="/tmp/x aaaa",
             description="Test unknown command output"),
        call("Bash", "Error: none, all is well"),
        call("Bash", None, error=True),
        call("Bash", "Exit code 1", error=True, command="make"),
    )  # fmt: skip
    (error,) = errors(talk.turns)  # the last one is the positive control
    assert error.sub == "command_failed"


def test_a_sub_agents_error_counts() -> None:
    helper = Talk(agent="agent-1")
    helper.agent("", call("Read", "File does not exist.", error=True, file_path="/x"))
    (error,) = errors(helper.turns)
    assert error.origin == Origin.TOOL


def test_input_that_was_cut_is_no_error_of_ours() -> None:
    talk = Talk()
    broken = call("Bash", "Exit code 1\nboom", error=True)
    talk.agent(
        "", type(broken)(id="c", name="Bash", input='{"command": "ma', output="boom", is_error=True)
    )
    (error,) = errors(talk.turns)
    assert error.title == "Command failed: boom"
