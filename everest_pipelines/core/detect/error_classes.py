"""The class of a failed tool call, by rules that are read from top to bottom.

A rule looks at the tool's name, the command that ran and what came back. The first rule that
matches names the class, so the order is part of the table: what a harness says about its own
tools first (exact sentences at the start), then what well-known programs print, then the command
alone. The line that the rule matched is the line worth showing.
"""

from __future__ import annotations

import re
from typing import NamedTuple

CANCELLED = "sibling_cancelled"  # not an error of its own
COMMAND_FAILED = "command_failed"  # what no rule explains

LABELS: dict[str, str] = {
    "build_error": "Build error",
    "ci_failed": "CI check failed",
    "cli_usage": "Wrong command-line usage",
    COMMAND_FAILED: "Command failed",
    "command_not_found": "Command not found",
    "edit_ambiguous": "Edit matched several places",
    "edit_no_match": "Edit found no match",
    "edit_noop": "Edit changed nothing",
    "edit_stale": "File changed since it was read",
    "edit_without_read": "Edit without reading first",
    "environment": "The environment is broken",
    "git_error": "Git error",
    "harness_unavailable": "The agent's own service was unavailable",
    "lint_error": "Lint error",
    "missing_dependency": "Missing dependency",
    "network": "Network error",
    "path_not_found": "Path not found",
    "permission_denied": "Permission denied",
    "runtime_error": "Runtime error",
    "shell_syntax": "Shell syntax error",
    "task_handle": "Unknown background task",
    "test_failure": "Test failure",
    "timeout": "Timed out",
    "too_large": "Too large to read",
    "tool_misuse": "Tool misused",
}

_HARNESS: tuple[tuple[str, str], ...] = (
    (r"Sibling tool call errored|Cancelled: parallel tool call", CANCELLED),
    (r"File has not been read yet", "edit_without_read"),
    (r"File has been (?:unexpectedly )?modified", "edit_stale"),
    (r"String to replace not found|String not found in file", "edit_no_match"),
    (r"Failed to find expected lines|apply_patch verification failed", "edit_no_match"),
    (r"Found \d+ matches of the string to replace", "edit_ambiguous"),
    (r"No changes to make", "edit_noop"),
    (r"(?:File|Path|Directory) does not exist|EISDIR|ENOTDIR", "path_not_found"),
    (r"ENOENT: no such file or directory, posix_spawn|spawn \S+ ENO", "environment"),
    (r"ENOENT", "path_not_found"),
    (r"InputValidationError|Unknown (?:skill|tool|agent)|Agent type '", "tool_misuse"),
    (r"(?:Error: )?No such tool|Invalid (?:tool )?(?:input|parameters?|arguments)", "tool_misuse"),
    (r"Skill \S+ (?:cannot|is not)", "tool_misuse"),
    (r"No (?:shell|task|background \w+) (?:found )?with", "task_handle"),
    (r"No task found|(?:Shell|Task) \S+ is not running", "task_handle"),
    (
        r"Claude requested permissions|This (?:Bash )?command (?:requires|contains)",
        "permission_denied",
    ),
    (r"Permission (?:to|for|denied by) |\S+ in '[^']*' was blocked", "permission_denied"),
    (r"\S+ is temporarily unavailable", "harness_unavailable"),
    (r"Request failed with status code|getaddrinfo|ECONN|socket hang up", "network"),
    (r"Unable to (?:fetch|verify)|timeout of \d+ ?ms", "network"),
    (r"Command timed out|Timed out", "timeout"),
    (r"File content \(|(?:Error: )?.{0,40} exceeds (?:the )?maximum", "too_large"),
)

# (class, what came back, what the command must hold), "" where it does not matter
_PROGRAMS: tuple[tuple[str, str, str], ...] = (
    ("command_not_found", r"^.*(?:command not found|is not recognized as (?:an|the name)).*$", ""),
    (
        "shell_syntax",
        r"^.*(?:\(eval\):\d+: (?:no matches found|parse error)|syntax error near "
        r"unexpected token|unexpected EOF while looking).*$",
        r"^(?!.*(?:curl|wget))",
    ),
    (
        "cli_usage",
        r"^.*(?:unrecognized (?:subcommand|arguments?|option)|unknown (?:option|flag|"
        r"shorthand|command|switch)|invalid option|unexpected argument|no such option|"
        r"illegal option|Did you mean one of|Unknown (?:argument|command)).*$",
        "",
    ),
    (
        "git_error",
        r"^.*(?:^error: failed to push some refs|could not apply [0-9a-f]{7}|"
        r"Automatic merge failed|would be overwritten by|CONFLICT \(|"
        r"^fatal: (?!.*(?:module|go:))|paths are ignored by one of your \.gitignore|"
        r"has changes staged in the index|nothing to commit|non-fast-forward|"
        r"pathspec '.*' did not match).*$",
        "",
    ),
    (
        "test_failure",
        r"^(?:[ \t]*(?:--- FAIL|FAIL\b|✗ FAIL|not ok \d|FAILED \S+::|Tests:.*failed)"
        r"|.*\b[1-9]\d* (?:fail|failed|failing)\b|test result: FAILED).*$",
        "",
    ),
    ("ci_failed", r"^.*\bfail\b.*$", r"\bgh (?:pr checks|run (?:view|watch))"),
    (
        "path_not_found",
        r"^.*(?:FileNotFoundError|[Nn]o such file or directory|cannot access '|"
        r"file or directory not found|Cannot find path|cannot stat ').*$",
        "",
    ),
    (
        "missing_dependency",
        r"^.*(?:ModuleNotFoundError|No module named|Cannot find (?:module|"
        r"package)|command \S+ is required|unmet dependency).*$",
        "",
    ),
    (
        "build_error",
        r"^.*(?:\(typecheck\)|error TS\d+|error\[E\d+\]|SyntaxError\)|missing import "
        r"path|expected '.', found|could not compile|undefined reference|"
        r"\[build failed\]|cannot use .* as .* value|undefined: \w).*$",
        "",
    ),
    (
        "lint_error",
        r"^.*(?:\blint/\w+|\d+ issues:|Found \d+ (?:diagnostic|error|warning)|biome|"
        r"Some (?:errors|warnings) were emitted|\b\d+ errors?, \d+ warnings?|"
        r"(?:would be|needs) reformat|no-unused-vars|Unused (?:dev)?[dD]ependencies|"
        r"\bMD\d{3}\b|error\s+\S.*\s+[\w-]+/[\w-]+$).*$",
        "",
    ),
    (
        "permission_denied",
        r"^.*(?:[Pp]ermission denied|EACCES|Operation not permitted|"
        r"Access is denied).*$",
        "",
    ),
    (
        "network",
        r"^.*(?:Could not resolve host|Connection refused|Connection timed out|"
        r"Failed to connect|TLS handshake|HTTP/\S+ [45]\d\d).*$",
        "",
    ),
    ("runtime_error", r"^.*(?:^\w*(?:Error|Exception)\b: ?|^panic: |Traceback \(most).*$", ""),
    ("timeout", r"^.*(?:[Tt]imed out after|deadline exceeded).*$", ""),
)

_LINT_COMMAND = re.compile(
    r"\b(?:lint\S*|eslint|biome|ruff|flake8|pylint|pyright|mypy|ty check|clippy|rubocop|stylelint|"
    r"markdownlint\S*|prettier|vale|shellcheck|go vet|staticcheck|yamllint|actionlint)\b"
)
_TEST_COMMAND = re.compile(
    r"\b(?:(?:go|cargo|bun|npm|pnpm|yarn|dotnet|mise run|npm run|bun run|pnpm run|make|just)\s+"
    r"test\S*|pytest|jest|vitest|mocha|rspec|phpunit|playwright test|verify-\w+)"
)
_BUILD_COMMAND = re.compile(
    r"\b(?:tsc|go build|cargo (?:build|check)|typecheck|run build|make build|vite build|javac|gcc|"
    r"clang|cmake|dotnet build)\b"
)
_NO_TESTS = re.compile(r"no tests (?:ran|collected)|/ 0 selected|no test files|\d+ deselected in")

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[()][A-Z0-9]")
_TAGS = re.compile(r"</?(?:tool_use_error|error|stderr|stdout)>")
_EXIT = re.compile(r"^(?:Error: )?Exit code (-?\d+)\n?")
_WRONG = re.compile(
    r"(?i)\b(?:error|fatal|failed|failure|cannot|could not|not found|invalid|panic)\b"
)

_HARNESS_RULES = tuple((re.compile(pattern), name) for pattern, name in _HARNESS)
_PROGRAM_RULES = tuple(
    (name, re.compile(pattern, re.MULTILINE), re.compile(command, re.DOTALL) if command else None)
    for name, pattern, command in _PROGRAMS
)
_SEARCH_LIMIT = 24_000  # characters of output that are looked at, half from either end


class Classified(NamedTuple):
    """A class and the line of the output that says why."""

    name: str
    line: str
    body: str  # the cleaned output, empty when the program printed nothing


def clean(output: str) -> str:
    """The output without colours, wrapper tags and the exit-code line, head and tail only."""
    if len(output) > _SEARCH_LIMIT:
        half = _SEARCH_LIMIT // 2
        output = output[:half] + "\n" + output[-half:]
    text = _TAGS.sub("", _ANSI.sub("", output)).replace("\r", "\n").strip()
    return _EXIT.sub("", text, count=1).strip()


def classify(tool: str, command: str, output: str) -> Classified:
    """Class, telling line and cleaned output of a failed call; ``command`` may be empty."""
    body = clean(output)
    for pattern, name in _HARNESS_RULES:
        if pattern.match(body):
            return Classified(name, _first_line(body), body)
    for name, pattern, wanted in _PROGRAM_RULES:
        if wanted is not None and not wanted.search(command):
            continue
        found = pattern.search(body)
        if found:
            return Classified(name, found.group(0).strip(), body)
    line = _telling_line(body)
    if _NO_TESTS.search(body):
        return Classified(COMMAND_FAILED, line, body)
    if body:
        for wanted, name in (
            (_LINT_COMMAND, "lint_error"),
            (_TEST_COMMAND, "test_failure"),
            (_BUILD_COMMAND, "build_error"),
        ):
            if wanted.search(command):
                return Classified(name, line, body)
    return Classified(COMMAND_FAILED, line, body)


def _first_line(body: str) -> str:
    return body.split("\n", 1)[0].strip()


def _telling_line(body: str) -> str:
    lines = [line.strip() for line in body.split("\n") if line.strip()]
    for line in lines:
        if _WRONG.search(line):
            return line
    return lines[-1] if lines else ""
