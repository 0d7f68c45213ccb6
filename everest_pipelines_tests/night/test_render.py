"""Outside the home only our own section and our own files are ever touched, and only when asked."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from everest_pipelines.night import ignoring
from everest_pipelines.night.publish import publish
from everest_pipelines.night.render import RenderReport, render, take_back
from everest_pipelines.night.workspace import Workspace
from everest_pipelines.text import ledger
from everest_pipelines_tests.night.homes import HORIZON, copy_some, night, workspace

FOLDER = "D--oh-my-posh"
OTHER = "-experiments-worktrees"
OWNERS = (
    b"# What I know\n\nThe owner wrote this.\n",
    b"# What I know\r\n\r\nThe owner wrote this.\r\n",
    b"no newline at the end",
    b"\xef\xbb\xbfwith a mark\n\n\n",
    "Übermut tut selten gut · 猫\n".encode(),
    b"",
)
BEGIN, END = b"<!-- everest:begin", b"<!-- everest:end -->"


class Scene:
    """A home that a night was run in, and the agent's folder beside it."""

    def __init__(self, home: Path, claude: Path) -> None:
        self.home, self.claude = home, claude
        self.memory = claude / "projects" / FOLDER / "memory"
        self.file = self.memory / "MEMORY.md"

    def ws(self, on: str = "1") -> Workspace:
        return workspace(self.home, self.claude, EVEREST_RENDER=on)

    def owner(self, content: bytes) -> None:
        self.memory.mkdir(exist_ok=True)
        self.file.write_bytes(content)

    def entries(self) -> list[dict[str, object]]:
        return ledger.read(self.ws().home, ("render",)).entries


@pytest.fixture(scope="module")
def made(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("rendered")
    claude = copy_some(shared / "transcripts" / "claude", root / "claude", (FOLDER,))
    night(root / "home", claude)
    return root


@pytest.fixture
def scene(made: Path, tmp_path: Path) -> Scene:
    """A copy of it: rendering reads the generation's files alone."""
    shutil.copytree(made / "home", tmp_path / "home", symlinks=True)
    (tmp_path / "claude" / "projects" / FOLDER).mkdir(parents=True)
    return Scene(tmp_path / "home", tmp_path / "claude")


def _state(folder: Path) -> dict[str, tuple[str, int, int]]:
    """Every file's digest, mode and time."""
    return {
        str(path.relative_to(folder)): (
            hashlib.sha256(path.read_bytes()).hexdigest(),
            path.stat().st_mode,
            path.stat().st_mtime_ns,
        )
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_a_night_touches_nothing_outside_the_home_unless_asked(
    shared: Path, tmp_path: Path
) -> None:
    claude = copy_some(shared / "transcripts" / "claude", tmp_path / "claude", (FOLDER,))
    before = _state(claude)
    ws = night(tmp_path / "home", claude)
    assert _state(claude) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["claude", "home"]
    assert not render(ws).enabled
    night(tmp_path / "home", claude, EVEREST_RENDER="1")
    assert _state(claude) != before, "the control: asked, it is written"


@pytest.mark.parametrize("owners", OWNERS)
def test_the_owners_lines_stay_byte_for_byte_around_ours(scene: Scene, owners: bytes) -> None:
    scene.owner(owners)
    report = render(scene.ws())
    after = scene.file.read_bytes()
    assert after.startswith(owners)
    assert after.count(BEGIN) == after.count(END) == 1
    assert after[len(owners) :].strip().startswith(BEGIN)
    if b"\r\n" in owners:
        assert after.count(b"\n") == after.count(b"\r\n")
    else:
        assert b"\r" not in after
    ours = after[after.index(BEGIN) : after.index(END)]
    assert ours.count(b"\n") < 30
    assert len(ours) < 3 * 1024
    files = [name for name in _contents(scene.memory) if name.startswith("everest-")]
    assert files
    assert all(f"({name})".encode() in ours for name in files)
    assert {str(scene.memory / name) for name in (*files, "MEMORY.md")} == set(report.written)
    assert not report.failures


@pytest.mark.parametrize("owners", OWNERS)
def test_what_was_written_is_taken_back_byte_for_byte(scene: Scene, owners: bytes) -> None:
    scene.owner(owners)
    (scene.memory / "everest-ideas.md").write_bytes(b"the owner's own\n")
    before = _contents(scene.memory)
    render(scene.ws())
    assert _contents(scene.memory) != before
    take_back(scene.ws())
    assert _contents(scene.memory) == before


def test_a_folder_that_we_made_goes_again(scene: Scene) -> None:
    render(scene.ws())
    assert scene.file.exists()
    take_back(scene.ws("0"))
    assert not scene.memory.exists()
    assert scene.memory.parent.exists()


def test_before_a_change_there_is_a_copy_in_the_home(scene: Scene) -> None:
    scene.owner(OWNERS[0])
    render(scene.ws())
    copies = [path for path in scene.ws().home.backups.rglob("*") if path.is_file()]
    assert [path.read_bytes() for path in copies] == [OWNERS[0]]
    assert copies[0].stat().st_mode & 0o777 == 0o600


def test_a_second_night_writes_nothing(scene: Scene) -> None:
    scene.owner(OWNERS[1])
    render(scene.ws())
    before, entries = _state(scene.claude), scene.entries()
    assert entries
    report = render(scene.ws())
    assert _state(scene.claude) == before
    assert not report.written
    assert not report.removed
    assert scene.entries() == entries


def test_a_render_that_was_killed_before_its_entry_gets_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "append", killed)
        with pytest.raises(KeyboardInterrupt):
            render(scene.ws())
    assert scene.file.exists()
    assert not scene.entries()
    render(scene.ws())
    assert len(scene.entries()) == 1


def test_the_owner_writes_on_and_only_our_lines_change(scene: Scene) -> None:
    scene.owner(OWNERS[0])
    render(scene.ws())
    rendered = scene.file.read_bytes()
    edited = rendered.replace(b"- `", b"- edited `", 1) + b"and a line below\n"
    assert edited != rendered + b"and a line below\n"
    scene.owner(edited)
    report = render(scene.ws())
    assert report.written == [str(scene.file)]
    assert scene.file.read_bytes() == rendered + b"and a line below\n"
    take_back(scene.ws())
    assert scene.file.read_bytes().splitlines() == [*OWNERS[0].splitlines(), b"and a line below"]


@pytest.mark.parametrize(
    "broken",
    [
        b"mine\n" + BEGIN + b" -->\nours\n",
        b"mine\n" + END + b"\n",
        END + b"\n" + BEGIN + b" -->\n",
        (BEGIN + b" -->\n" + END + b"\n") * 2,
        "caf\u00e9\n".encode("latin-1"),
    ],
)
def test_a_file_that_is_not_understood_stays_as_it_is_and_is_named(
    scene: Scene, broken: bytes
) -> None:
    scene.owner(broken)
    before = _state(scene.claude)
    report = render(scene.ws())
    assert [failure.where for failure in report.failures] == [str(scene.file)]
    assert _state(scene.claude) == before
    assert not report.written
    night(scene.home, scene.claude, EVEREST_RENDER="1")  # and the night ends well
    assert _state(scene.claude) == before


def test_a_memory_that_is_no_folder_is_named(scene: Scene) -> None:
    scene.memory.write_bytes(b"a file\n")
    report = render(scene.ws())
    assert len(report.failures) == 1
    assert scene.memory.read_bytes() == b"a file\n"


def test_the_owners_link_and_mode_stay(scene: Scene, tmp_path: Path) -> None:
    notes = tmp_path / "dotfiles" / "MEMORY.md"
    notes.parent.mkdir()
    notes.write_bytes(OWNERS[0])
    notes.chmod(0o644)
    scene.memory.mkdir()
    scene.file.symlink_to(notes)
    render(scene.ws())
    assert os.readlink(scene.file) == str(notes)
    assert BEGIN in notes.read_bytes()
    assert notes.stat().st_mode & 0o777 == 0o644
    take_back(scene.ws())
    assert notes.read_bytes() == OWNERS[0]


def test_a_folder_that_two_projects_map_to_is_left_alone(shared: Path, tmp_path: Path) -> None:
    claude = copy_some(shared / "transcripts" / "claude", tmp_path / "claude", (FOLDER, OTHER))
    for path in (claude / "projects" / OTHER).glob("*.jsonl"):
        shutil.copy(path, claude / "projects" / FOLDER)
    shutil.rmtree(claude / "projects" / OTHER)
    before = _state(claude)
    ws = night(tmp_path / "home", claude, EVEREST_RENDER="1")
    report: RenderReport = render(ws)
    assert report.shared_folders == [FOLDER]
    assert not report.written
    assert _state(claude) == before


def test_a_folder_that_went_is_not_made_again(scene: Scene) -> None:
    shutil.rmtree(scene.claude)
    report = render(scene.ws())
    assert not report.written
    assert not scene.claude.exists()


def test_a_project_that_is_kept_out_leaves_nothing_behind(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "claude", tmp_path / "claude")
    scene = Scene(tmp_path / "home", tmp_path / "claude")
    ws = night(scene.home, scene.claude, EVEREST_RENDER="1")
    assert scene.file.exists()
    (root,) = {row.root for row in ws.lake.read_table("projects") if FOLDER in row.folders}
    ignoring.ignore(ws, root)
    night(scene.home, scene.claude, HORIZON, EVEREST_RENDER="1")
    assert not scene.memory.exists() or not any(scene.memory.iterdir())


def test_what_is_withheld_this_week_is_in_no_file_that_agents_read(
    made: Path, tmp_path: Path
) -> None:
    shutil.copytree(made, tmp_path / "copy", symlinks=True)
    home, claude = tmp_path / "copy" / "home", tmp_path / "copy" / "claude"
    memory = claude / "projects" / FOLDER / "memory"
    seen = {}
    for share in ("0", "1", "0.5", "0"):
        ws = workspace(home, claude, EVEREST_RENDER="1", EVEREST_WITHHOLD=share)
        publish(ws, HORIZON)
        render(ws)
        seen[share] = {path.name for path in memory.glob("everest-*.md")}
        lessons = (ws.home.current / "lessons.jsonl").read_bytes().count(b"\n")
        assert lessons >= len(seen["0"]) > 0
    assert seen["1"] == set() and seen["0.5"] < seen["0"]
    text = (memory / "MEMORY.md").read_text()
    assert all(name in text for name in seen["0"])
