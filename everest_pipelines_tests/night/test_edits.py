"""What is done to rendered files counts when the person did it, and only then."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from pathlib import Path

import pytest

from everest_pipelines.core.records import LessonRevision
from everest_pipelines.core.render.plain import file_name, short_id
from everest_pipelines.night import edits, published, review
from everest_pipelines.night.render import render
from everest_pipelines.night.workspace import Workspace
from everest_pipelines.recall import overlay
from everest_pipelines.text import ledger
from everest_pipelines_tests.night.homes import copy_some, night, workspace

FOLDER = "D--oh-my-posh"


class Scene:
    """A home that was rendered from, and the agent's folder beside it."""

    def __init__(self, root: Path) -> None:
        self.home, self.claude = root / "home", root / "claude"
        self.memory = self.claude / "projects" / FOLDER / "memory"

    def night(self) -> Workspace:
        return night(self.home, self.claude, EVEREST_RENDER="1")

    def ws(self) -> Workspace:
        return workspace(self.home, self.claude, EVEREST_RENDER="1")

    def shown(self) -> dict[str, LessonRevision]:
        ws = self.ws()
        found = published.lessons(ws.home, published.current(ws.home))
        return {lesson.lesson_id: lesson for lesson in found}

    def file(self, lesson: LessonRevision) -> Path:
        return self.memory / file_name(lesson.lesson_id)

    def agent_runs(self, command: str) -> None:
        """A session in which the agent runs a command, now."""
        at = dt.datetime.now(tz=dt.UTC).isoformat().replace("+00:00", "Z")
        common = {
            "sessionId": "agent-1",
            "timestamp": at,
            "cwd": "D:/oh-my-posh",
            "version": "2.1.0",
        }
        call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": command}}
        lines = [
            {
                **common,
                "type": "user",
                "uuid": "u1",
                "parentUuid": None,
                "message": {"role": "user", "content": "Tidy up the notes."},
            },
            {
                **common,
                "type": "assistant",
                "uuid": "u2",
                "parentUuid": "u1",
                "message": {"id": "m1", "role": "assistant", "model": "m", "content": [call]},
            },
        ]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (self.memory.parent / "agent-1.jsonl").write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def rendered(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("rendered")
    copy_some(shared / "transcripts" / "claude", root / "claude", (FOLDER,))
    Scene(root).night()
    return root


@pytest.fixture
def scene(rendered: Path, tmp_path: Path) -> Scene:
    shutil.copytree(rendered, tmp_path / "copy", symlinks=True)
    found = Scene(tmp_path / "copy")

    render(found.ws())  # renders are known by path: the copy has an entry of its own
    assert len(found.shown()) > 2, "the control: lessons are rendered"
    return found


def test_a_deleted_file_hides_its_lesson_from_the_next_night_on_and_asks(scene: Scene) -> None:
    before = scene.shown()
    one, *rest = before.values()
    scene.file(one).unlink()
    ws = scene.night()
    assert scene.shown().keys() == before.keys() - {one.lesson_id}
    assert one.lesson_id in overlay.hidden(ws.home)
    assert not scene.file(one).exists()
    assert all(scene.file(other).exists() for other in rest)
    asked = [q for q in review.questions(ws) if q.lesson.lesson_id == one.lesson_id]
    assert [q.why.startswith("its file was deleted") for q in asked] == [True]
    count = len(ledger.read(ws.home, ("veto",)).entries)
    scene.night()
    assert len(ledger.read(ws.home, ("veto",)).entries) == count, "said once"


def test_an_edited_file_hides_its_lesson_and_offers_the_new_words(scene: Scene) -> None:
    before = scene.shown()
    one, two, *_ = before.values()
    path = scene.file(one)
    text = path.read_text(encoding="utf-8")
    fence = text.index("```text\n") + len("```text\n")
    path.write_text(text[:fence] + "Say it so.\n" + text[text.index("```", fence) :], "utf-8")
    memory = scene.memory / "MEMORY.md"
    lines = memory.read_text(encoding="utf-8").splitlines(keepends=True)
    memory.write_text("".join(x for x in lines if short_id(two.lesson_id) not in x), "utf-8")
    ws = scene.night()
    assert scene.shown().keys() == before.keys() - {one.lesson_id, two.lesson_id}
    asked = {q.lesson.lesson_id: q for q in review.questions(ws)}
    assert asked[one.lesson_id].proposed == "Say it so."
    assert "was deleted" in asked[two.lesson_id].why


def test_what_an_agent_did_is_restored_and_reported(scene: Scene) -> None:
    before = scene.shown()
    one = next(iter(before.values()))
    scene.agent_runs(f"rm {scene.file(one)}")
    scene.file(one).unlink()
    ws = scene.night()
    assert scene.shown().keys() == before.keys()
    assert scene.file(one).exists()
    told = ledger.read(ws.home, ("veto",)).entries
    assert [(e["action"], e["why"]) for e in told] == [("lift", "deleted by an agent")]


def test_a_hand_that_is_seen_late_is_still_an_agents(scene: Scene) -> None:
    before = scene.shown()
    one = next(iter(before.values()))
    scene.file(one).unlink()
    at_once = edits.take(scene.ws())  # a sensor's tick, before the transcript is read
    assert [change.lesson.lesson_id for change in at_once.hidden] == [one.lesson_id]
    scene.agent_runs(f"rm {scene.file(one)}")
    path = scene.memory.parent / "agent-1.jsonl"
    rendered_at = at_once.hidden[0].rendered_at
    at = dt.datetime.fromtimestamp(rendered_at / 1e6 + 0.001, dt.UTC).isoformat()
    lines = [json.loads(line) | {"timestamp": at} for line in path.read_text("utf-8").splitlines()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    ws = scene.night()
    assert scene.shown().keys() == before.keys()
    assert scene.file(one).exists()
    assert one.lesson_id not in overlay.hidden(ws.home)


def test_a_missing_folder_or_many_files_gone_at_once_hide_nothing_and_ask(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = scene.shown()
    shutil.move(scene.memory, scene.memory.with_name("aside"))
    assert [("is gone" in q) for q in edits.look(scene.ws()).questions] == [True]
    scene.night()
    assert scene.shown().keys() == before.keys()
    monkeypatch.setattr(edits, "REMOVED_LEAST", 2)
    for lesson in list(before.values())[:2]:
        scene.file(lesson).unlink()
    asked = edits.look(scene.ws())
    assert (asked.hidden, len(asked.questions)) == ([], 1)
    scene.night()
    assert scene.shown().keys() == before.keys()
    monkeypatch.undo()
    scene.file(next(iter(before.values()))).unlink()
    assert len(edits.look(scene.ws()).hidden) == 1, "the control: fewer are taken at their word"


def test_files_of_a_render_that_was_killed_are_nobodys_edit(scene: Scene) -> None:
    one = next(iter(scene.shown().values()))
    ledger_file = next((scene.home / "ledger" / "render").glob("*.jsonl"))
    known = ledger_file.read_text("utf-8")
    stale = known.replace(
        json.loads(known.splitlines()[-1])["files"][scene.file(one).name], "0" * 64
    )
    ledger_file.write_text(stale, "utf-8")
    assert edits.look(scene.ws()).hidden == []
    scene.file(one).write_text("something else", "utf-8")
    assert len(edits.look(scene.ws()).hidden) == 1, "the control"
