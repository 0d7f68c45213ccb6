"""Set-up: real-shaped settings files of every agent, changed by what is ours and given back."""

from __future__ import annotations

import json
import os
import plistlib
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from everest_pipelines.cli import services
from everest_pipelines.cli.agents import agents
from everest_pipelines.cli.services import Service
from everest_pipelines.recall import prime
from everest_pipelines.recall.snapshot import FILE_NAME, build
from everest_pipelines.text.home import Home
from everest_pipelines.text.settings import load
from everest_pipelines_tests.cli.conftest import Everest, Made
from everest_pipelines_tests.recall.rows import HERE, LESSONS
from everest_pipelines_tests.recall.test_prime import FOLDER, event

# What the agents' own files look like, as their owners keep them.
FILES = {
    "claude/settings.json": (
        b'{\n  "model": "opus",\n  "permissions": {\n    "allow": ["Bash(npm run test:*)"],\n'
        b'    "deny": []\n  },\n  "hooks": {\n    "PreToolUse": [\n      {\n'
        b'        "matcher": "Bash",\n        "hooks": [\n          {\n'
        b'            "type": "command",\n            "command": "~/bin/guard.sh"\n          }\n'
        b'        ]\n      }\n    ],\n    "Stop": []\n  },\n'
        b'  "statusLine": {"type": "command"}\n}\n'
    ),
    "claude/.claude.json": (
        b'{"numStartups":214,"tipsHistory":{"new-user-warmup":3},"projects":{"/srv/x":{'
        b'"mcpServers":{},"lastCost":0.0213}},"mcpServers":{"github":{"type":"http",'
        b'"url":"https://api.example/mcp"}},"userID":"\xc3\xa9"}'
    ),
    "codex/config.toml": (
        b'# my codex\r\nmodel = "gpt-5-codex"\r\napproval_policy = "on-request"  # ask\r\n\r\n'
        b'[projects."/srv/x"]\r\ntrust_level = "trusted"\r\n\r\n[mcp_servers.docs]\r\n'
        b'command = "npx"\r\nargs = ["-y", "docs-mcp"]\r\n\r\n[tui]\r\nnotifications = true'
    ),
    ".config/Claude/claude_desktop_config.json": b'{\r\n\t"globalShortcut": "Ctrl+Space"\r\n}',
    ".cursor/mcp.json": (
        b'\xef\xbb\xbf{\n    // servers of the team\n    "mcpServers": {\n'
        b'        "linear": { "url": "https://mcp.example/sse" }, // keep\n    },\n}\n'
    ),
    ".codeium/windsurf/mcp_config.json": b'{"mcpServers": {}}\n',
    "gemini/settings.json": (
        b'{\n  "theme": "Default", // dark\n  /* no servers yet */\n'
        b'  "general": {"vimMode": true}\n}\n'
    ),
    "copilot/mcp-config.json": b"",
}


@pytest.fixture
def owned(empty: Made) -> Made:
    """An empty memory on a machine on which every agent is installed."""
    root = empty.home.root.parent
    for name, content in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o640)
    return empty


def files(made: Made) -> dict[str, bytes]:
    root = made.home.root.parent
    return {name: (root / name).read_bytes() for name in FILES if (root / name).exists()}


def servers(made: Made) -> dict[str, Any]:
    """Our MCP entry as each agent reads it; Claude Code's two files by the last one."""
    found = {}
    root = made.home.root.parent
    for name in FILES:
        text = (root / name).read_bytes().decode("utf-8-sig")
        if name.endswith(".toml"):
            found[name] = tomllib.loads(text)["mcp_servers"].get("everest")
        else:
            plain = "".join(line.partition(" //")[0] + "\n" for line in text.splitlines())
            plain = plain.replace("/* no servers yet */", "").replace("},\n}", "}\n}")
            plain = plain.replace("},\n    }", "}\n    }")
            found[name] = json.loads(plain or "{}").get("mcpServers", {}).get("everest")
    return found


def test_every_agent_gets_what_is_ours_and_keeps_what_is_its_owners(
    owned: Made, everest: Everest
) -> None:
    before = files(owned)
    assert everest("setup", "--yes", "--no-render")[0] == 0
    root = owned.home.root.parent
    for name, server in servers(owned).items():
        if name == "claude/settings.json":
            continue
        assert server["args"][-1] == "serve", name
        assert server["env"] == {"EVEREST_HOME": str(owned.home.root)}
        assert (root / name).stat().st_mode & 0o777 == 0o640
        kept = iter((root / name).read_bytes())
        assert all(sign in kept for sign in before[name]), name
    hooks = json.loads((root / "claude/settings.json").read_text())["hooks"]
    assert hooks["PreToolUse"][0]["hooks"][0]["command"] == "~/bin/guard.sh"
    assert {name: len(of) for name, of in hooks.items()} == {
        "PreToolUse": 2, "Stop": 1, "UserPromptSubmit": 1
    }  # fmt: skip
    toml = (root / "codex/config.toml").read_bytes()
    assert toml.count(b"\n") == toml.count(b"\r\n")
    assert (root / ".cursor/mcp.json").read_bytes().startswith(b"\xef\xbb\xbf")


def test_a_second_set_up_changes_nothing_and_undo_gives_every_byte_back(
    owned: Made, everest: Everest
) -> None:
    before = files(owned)
    everest("setup", "--yes", "--no-render")
    once = files(owned)
    assert once != before
    code, out, err = everest("setup", "--yes", "--no-render", "--json")
    assert code == 0 and json.loads(out.splitlines()[0])["changed"] == []
    assert files(owned) == once and "Set up already" in err
    assert everest("setup", "--undo", "--yes")[0] == 0
    assert files(owned) == before
    assert not (owned.home.root / "hooks").exists() and not owned.home.installed.exists()
    everest("setup", "--yes", "--no-render")
    assert files(owned) == once


def test_undo_after_somebody_elses_edit_takes_out_only_ours(owned: Made, everest: Everest) -> None:
    everest("setup", "--yes", "--no-render")
    root = owned.home.root.parent
    for name in FILES:
        path = root / name
        data = path.read_bytes()
        if name.endswith(".toml"):
            path.write_bytes(data + b"\r\n[later]\r\nx = 1\r\n")
        else:
            at = data.index(b"{") + 1
            path.write_bytes(data[:at] + b' "later": 1,' + data[at:])
    assert everest("setup", "--undo", "--yes")[0] == 0
    for name, content in files(owned).items():
        assert b"later" in content, name
        assert b'"serve"' not in content and b"prime.py" not in content, name
    settings = json.loads((root / "claude/settings.json").read_text())
    original = json.loads(FILES["claude/settings.json"])
    assert settings == {"later": 1, **original}
    assert tomllib.loads((root / "codex/config.toml").read_text()) == {
        **tomllib.loads(FILES["codex/config.toml"].decode()),
        "later": {"x": 1},
    }


def test_a_dry_run_shows_the_whole_change_and_writes_nothing(owned: Made, everest: Everest) -> None:
    before = files(owned)
    code, out, _ = everest("setup", "--dry-run", "--service", "nightly", "--holdout", "0.25")
    assert code == 0 and files(owned) == before
    assert not (owned.home.root / "hooks").exists() and not owned.home.config.exists()
    added = [line for line in out.splitlines() if line.startswith("+")]
    assert sum("prime.py" in line for line in added) == 3
    assert sum('"serve"' in line for line in added) == 7
    assert not any(line.startswith("-") and "guard" in line for line in out.splitlines())
    assert "everest-night.timer" in out
    assert not services.folder(owned.environ, "linux").exists()


@pytest.mark.parametrize(
    ("name", "broken", "where"),
    [
        ("claude/settings.json", b'{\n  "a": 1,\n}\n', "settings.json:3: a comma"),
        ("claude/settings.json", b'{\n "hooks": []\n}\n', "settings.json:2: hooks is no object"),
        ("claude/.claude.json", b"\xff\xfe{}", ".claude.json:1: is no UTF-8"),
        ("codex/config.toml", b"a = 1\nb = \n", "config.toml:2: "),
        (".cursor/mcp.json", b'{"mcpServers": 7}', "mcp.json:1: mcpServers is no object"),
        ("gemini/settings.json", b'{"a": "\n"}', "settings.json:1: a broken string"),
    ],
)
def test_a_broken_file_is_named_with_its_line_and_nothing_is_written(
    owned: Made, everest: Everest, name: str, broken: bytes, where: str
) -> None:
    (owned.home.root.parent / name).write_bytes(broken)
    before = files(owned)
    code, _, err = everest("setup", "--yes", "--no-render")
    assert code == 5 and where in err and "Nothing was changed" in err
    assert files(owned) == before
    code, out, _ = everest("doctor")
    assert code == 1 and name.rpartition("/")[2] in out


def test_another_server_of_our_name_is_left_alone(owned: Made, everest: Everest) -> None:
    path = owned.home.root.parent / ".cursor/mcp.json"
    path.write_text('{"mcpServers": {"everest": {"url": "https://climbing.example"}}}')
    before = files(owned)
    code, _, err = everest("setup", "--agent", "cursor", "--yes", "--no-render")
    assert code == 2 and "is not ours" in err and files(owned) == before


def test_what_an_older_set_up_left_is_replaced_and_doubles_go(
    owned: Made, everest: Everest
) -> None:
    path = owned.home.root.parent / "claude/settings.json"
    everest("setup", "--agent", "claude", "--yes", "--no-render")
    body = json.loads(path.read_text())
    old = {"hooks": [{"type": "command", "command": "/gone/python /x/hooks/prime.py"}]}
    body["hooks"]["Stop"] += [old, old]
    path.write_text(json.dumps(body))
    code, out, _ = everest("doctor")
    assert code == 1 and "twice" in out and "/gone/python, which is not there" in out
    everest("setup", "--agent", "claude", "--yes", "--no-render")
    assert len(json.loads(path.read_text())["hooks"]["Stop"]) == 1
    assert "Claude Code is set up." in everest("doctor")[1]
    everest("setup", "--undo", "--yes")
    assert b"prime.py" not in path.read_bytes()


def test_a_linked_file_is_changed_where_it_lies(owned: Made, everest: Everest) -> None:
    path = owned.home.root.parent / "gemini/settings.json"
    kept = path.with_name("dotfiles.json")
    path.rename(kept)
    path.symlink_to(kept.name)
    everest("setup", "--agent", "gemini", "--yes", "--no-render")
    assert path.is_symlink() and b"serve" in kept.read_bytes()
    everest("setup", "--undo", "--yes")
    assert path.is_symlink() and kept.read_bytes() == FILES["gemini/settings.json"]


def test_a_file_that_was_not_there_goes_again(owned: Made, everest: Everest) -> None:
    path = owned.home.root.parent / ".cursor/mcp.json"
    path.unlink()
    everest("setup", "--agent", "cursor", "--yes", "--no-render")
    assert json.loads(path.read_text())["mcpServers"]["everest"]
    assert path.stat().st_mode & 0o777 == 0o600
    everest("setup", "--undo", "--yes")
    assert not path.exists()


def test_each_installed_hook_answers_as_the_agent_runs_it(owned: Made, everest: Everest) -> None:
    home = owned.home
    build(
        home.published / "g" / FILE_NAME, lessons=LESSONS, episodes=[], generation="g",
        projects=[(FOLDER, HERE)],
    )  # fmt: skip
    home.current.symlink_to("g")
    assert everest("setup", "--yes", "--no-render", "--holdout", "0")[0] == 0
    settings = json.loads((home.root.parent / "claude/settings.json").read_text())
    expected = {prime.PROMPT: LESSONS[0], prime.STOP: LESSONS[0], prime.TOOL: LESSONS[6]}
    for name, lesson in expected.items():
        (hook,) = [
            one
            for group in settings["hooks"][name]
            for one in group["hooks"]
            if "prime.py" in one["command"]
        ]
        assert hook["type"] == "command" and hook["timeout"] == 2
        done = subprocess.run(
            ["/bin/sh", "-c", hook["command"]],
            input=json.dumps(event(name, session_id=name)).encode(),
            capture_output=True,
            env={"PATH": os.environ["PATH"], "HOME": "/nowhere", "CLAUDE_PROJECT_DIR": FOLDER},
            cwd="/",
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert str(lesson["text"]) in done.stdout.decode()
        assert json.loads(done.stdout)
    assert load({}, home.config).holdout == 0


def test_the_table_knows_each_agents_file(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    settings = load(environ, tmp_path / "config.toml")
    known = agents(Home(tmp_path / "home"), settings, environ)
    where = {
        name: sorted({str(place.file.relative_to(tmp_path)) for place in agent.places})
        for name, agent in known.items()
        if name != "claude-desktop"
    }
    assert where == {
        "claude": [".claude.json", ".claude/settings.json"],
        "codex": [".codex/config.toml"],
        "cursor": [".cursor/mcp.json"],
        "windsurf": [".codeium/windsurf/mcp_config.json"],
        "gemini": [".gemini/settings.json"],
        "copilot": [".copilot/mcp-config.json"],
    }


@pytest.mark.parametrize("service", [Service.RESIDENT, Service.NIGHTLY])
@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_units_have_the_form_that_their_system_reads(
    tmp_path: Path, service: Service, platform: str
) -> None:
    home = Home(tmp_path / 'a b"%$')
    made = services.plan(service, home, {"HOME": str(tmp_path)}, platform)
    assert made.write and not made.remove
    for path, content in made.write.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if platform == "darwin":
            body = plistlib.loads(content)
            assert body["EnvironmentVariables"] == {"EVEREST_HOME": str(home.root)}
            assert path.stem == body["Label"]
        else:
            assert content.decode().count("[Unit]") == 1
    programs = services.installed({"HOME": str(tmp_path)}, platform)
    assert all(Path(program).exists() for program in programs.values()) and programs
    if platform == "linux" and shutil.which("systemd-analyze"):
        done = subprocess.run(
            ["systemd-analyze", "--user", "verify", *map(str, made.write)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "everest" not in done.stderr
    gone = services.plan(Service.NONE, home, {"HOME": str(tmp_path)}, platform)
    assert not gone.write and set(gone.remove) == set(made.write)


def test_the_service_is_written_and_taken_out(
    owned: Made, everest: Everest, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[str, ...]] = []
    monkeypatch.setattr(services, "_run", lambda command: ran.append(command) or True)
    folder = services.folder(owned.environ, "linux")
    monkeypatch.setattr(services.sys, "platform", "linux")
    everest("setup", "--yes", "--no-render", "--service", "nightly")
    assert {path.name for path in folder.iterdir()} == {
        "everest-night.service", "everest-night.timer"
    }  # fmt: skip
    assert ("systemctl", "--user", "enable", "--now", "everest-night.timer") in ran
    everest("setup", "--yes", "--no-render", "--service", "resident")
    assert {path.name for path in folder.iterdir()} == {"everest.service"}
    assert ("systemctl", "--user", "disable", "--now", "everest-night.timer") in ran
    assert "everest.service is installed" in everest("doctor")[1]
    assert everest("uninstall", "--yes")[0] == 0
    assert list(folder.iterdir()) == []


def test_uninstall_keeps_the_home_and_purge_deletes_it_but_no_other_folder(
    owned: Made, everest: Everest
) -> None:
    before = files(owned)
    everest("setup", "--yes", "--no-render")
    everest("remember", "keep me")
    assert everest("uninstall", "--yes")[0] == 0
    assert files(owned) == before and owned.home.ledger.is_dir()
    assert everest("uninstall", "--purge", "--yes")[0] == 0
    assert not owned.home.root.exists()
    owned.home.root.mkdir()
    (owned.home.root / "thesis.tex").write_text("years of work")
    code, _, err = everest("uninstall", "--purge", "--yes")
    assert code == 2 and "no home" in err
    assert (owned.home.root / "thesis.tex").exists()


def test_uninstall_takes_out_what_was_rendered(copied: Made, everest: Everest) -> None:
    projects = Path(copied.environ["EVEREST_CLAUDE_DIR"]) / "projects"

    def there() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in projects.rglob("*") if path.is_file()}

    before = there()
    assert everest("setup", "--yes")[0] == 0
    assert len(there()) > len(before)
    assert everest("uninstall", "--yes")[0] == 0
    assert there() == before
