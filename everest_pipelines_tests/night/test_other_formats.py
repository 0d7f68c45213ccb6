"""Files of other agents, exports and events through the stages, watched and by hand."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from everest_pipelines.core.records import EpisodeKind, Origin
from everest_pipelines.core.transcripts.projects import project_key
from everest_pipelines.night.derive import episodes, sessions
from everest_pipelines.night.ingest import ingest
from everest_pipelines.night.look import Look, PendingFile, look
from everest_pipelines.night.recognise import recognise
from everest_pipelines.night.workspace import Workspace
from everest_pipelines.text import ledger
from everest_pipelines_tests.core.transcripts import chats
from everest_pipelines_tests.core.transcripts.chats import FILES
from everest_pipelines_tests.night.homes import workspace

PLACES = {  # where each agent writes, below its own folder
    "copilot": ("copilot", "session-state/cop-1/events.jsonl"),
    "gemini document": ("gemini", "tmp/abc/chats/session-1.json"),
    "chatgpt": ("chats", "export/conversations.json"),
    "claude-ai": ("chats", "claude/conversations.json"),
    "takeout": ("chats", "Takeout/MyActivity.json"),
    "anthropic object": ("chats", "messages.json"),
    "events": ("inbox", "tool/notes.jsonl"),
}


def a_memory(root: Path) -> Workspace:
    folders = {f"EVEREST_{name.upper()}_DIR": str(root / name) for name in ("copilot", "gemini")}
    folders |= {"EVEREST_CHATS_DIR": str(root / "chats"), "EVEREST_INBOX": str(root / "inbox")}
    return workspace(root / "home", root / "claude", **folders)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, (folder, place) in PLACES.items():
        path = tmp_path / folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(FILES[name][1])
    (tmp_path / "chats" / "export" / "user.json").write_text('{"id": "x"}')
    return tmp_path


def told(ws: Workspace) -> list[tuple[str, ...]]:
    return sorted(
        (day, project, turn.agent, turn.session_id, turn.role.value, turn.text)
        for day, project, turn in ws.lake.read("transcripts")
    )


def test_every_watched_folder_is_read_and_read_once(root: Path) -> None:
    ws = a_memory(root)
    result = ingest(ws)
    assert result.failures == []
    formats = {row.format for row in ws.lake.read_table("files")}
    assert formats == {FILES[name][0] for name in PLACES}
    assert result.counts["events"] == 3 and result.counts["quarantined"] == 0
    assert look(ws).pending == []  # the second look finds nothing new
    keys = {row.project for row in ws.lake.read_table("projects")}
    assert {project_key("/src/tidepool"), project_key("chatgpt"), project_key("claude-ai")} <= keys


def test_the_same_content_by_hand_and_watched_gives_one_set_of_rows(root: Path) -> None:
    ws = a_memory(root)
    ingest(ws)
    once, entries = told(ws), len(ledger.read(ws.home, ("event",)).entries)
    pending: list[PendingFile] = []
    for name in PLACES:
        copy = root / "by-hand" / name.replace(" ", "-")
        copy.parent.mkdir(exist_ok=True)
        folder, place = PLACES[name]
        shutil.copy2(root / folder / place, copy)
        status = copy.stat()
        pending.append(PendingFile(str(copy), "", status.st_size, status.st_mtime_ns))
    assert ingest(ws, Look(pending=pending)).failures == []
    assert told(ws) == once
    assert len(ledger.read(ws.home, ("event",)).entries) == entries == 3


def test_sessions_of_one_file_are_told_apart_day_by_day(tmp_path: Path) -> None:
    path = tmp_path / "chats" / "conversations.json"
    path.parent.mkdir()
    path.write_bytes(chats.dumped([chats.conversation(n) for n in (1, 2000, 4000)]))
    ws = a_memory(tmp_path)
    ingest(ws)
    sessions(ws)
    rows = [row for _, _, row in ws.lake.read("sessions")]
    assert sorted((row.session_id, row.human_turns) for row in rows) == [
        ("cg-1", 1), ("cg-2000", 1), ("cg-4000", 1),
    ]  # fmt: skip
    (file,) = ws.lake.read_table("files")
    assert len({day for _, day, _ in file.sessions}) == 3


def test_an_event_is_an_agent_s_note_and_never_a_person_s(tmp_path: Path) -> None:
    path = tmp_path / "inbox" / "x.jsonl"
    path.parent.mkdir()
    path.write_bytes(
        chats.lines_of(
            chats.note(1, channel="terminal", origin="human", occurred_at="2026-02-01T10:00:00Z"),
            chats.note(2, project="everywhere"),
            {"project": "p", "text": ""},
            {"text": "no project", "project": ""},
            chats.note(3, occurred_at="soon"),
            b'{"project": "p", "te',
        )
    )
    ws = a_memory(tmp_path)
    ingest(ws)
    episodes(ws)
    (note,) = [one for _, _, one in ws.lake.read("episodes") if one.kind is EpisodeKind.NOTE]
    assert (note.quote, note.origin, note.sure) == ("words 1", Origin.ASSISTANT, False)
    bad = {(row.line, row.reason) for row in ws.lake.read_table("quarantine")}
    assert bad == {
        (2, "for_everywhere"), (3, "no_text"), (4, "no_project"), (5, "bad_time"), (6, "torn"),
    }  # fmt: skip
    with path.open("ab") as file:
        file.write(chats.lines_of(chats.note(4)))
    ingest(ws)
    texts = [entry["text"] for entry in ledger.read(ws.home, ("event",)).entries]
    assert texts == ["words 1", "words 4"]


def test_secrets_in_events_never_reach_the_ledger(tmp_path: Path) -> None:
    path = tmp_path / "inbox" / "x.jsonl"
    path.parent.mkdir()
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    path.write_bytes(chats.lines_of(chats.note(1, text=f"the token is {secret} as ever")))
    ws = a_memory(tmp_path)
    ingest(ws)
    (entry,) = ledger.read(ws.home, ("event",)).entries
    assert entry["text"].startswith("the token is ") and secret not in entry["text"]


def test_what_no_format_knows_is_named_with_the_nearest_guess(root: Path) -> None:
    odd = root / "chats" / "odd.json"
    odd.write_bytes(chats.dumped([{"mapping2": {}, "current_node": "x", "children": []}]))
    ws = a_memory(root)
    (failure,) = ingest(ws).failures
    assert failure.where == str(odd)
    assert "nearest is chatgpt, by its fields children, current_node" in failure.what
    assert recognise(odd, 0).format == ""
    known = recognise(root / "chats" / "export" / "conversations.json", chats.START)
    assert (known.format, known.sessions, known.turns, known.person) == ("chatgpt", 3, 6, 3)
