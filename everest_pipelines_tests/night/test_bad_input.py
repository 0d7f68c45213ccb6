"""What cannot be read costs only itself, is named, and never stops a night."""

from __future__ import annotations

import json
import os
import random
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from everest_pipelines.core.transcripts import claude as reader
from everest_pipelines.core.transcripts import reading, walk
from everest_pipelines.core.transcripts.lines import LINE_CAP
from everest_pipelines.lake import raw
from everest_pipelines.lake.operational import FileRow, QuarantineRow, unpack
from everest_pipelines.night import ingest, look
from everest_pipelines.night.run import run
from everest_pipelines.night.status import status
from everest_pipelines.night.workspace import Failure, Workspace
from everest_pipelines_tests.night.homes import HORIZON, copy_some, night, workspace
from everest_pipelines_tests.night.whole import assert_whole

HEALTHY = "-Users-dev2-wks-test-cli-cli"
OTHER = "-experiments-worktrees"
OTHER_FILE = "ef958aa1-0e93-49f0-bb71-150f63befcd1.jsonl"
LINE = 30  # of the damaged file, 1-based: the one that is damaged


class Scene:
    """Healthy real transcripts, and beside them one that a test damages."""

    def __init__(self, shared: Path, root: Path) -> None:
        self.shared = shared / "transcripts" / "claude"
        self.root = root
        self.claude = copy_some(self.shared, root / "claude", (HEALTHY,))
        self.home = root / "home"
        self.folder = self.claude / "projects" / HEALTHY
        self.bad = self.folder / OTHER_FILE
        self.lines = (self.shared / "projects" / OTHER / OTHER_FILE).read_bytes().splitlines(True)
        self.failures: list[Failure] = []

    def night(self, **variables: str) -> Workspace:
        """One night that ends well, with all that is healthy in the lake."""
        ws = workspace(self.home, self.claude, **variables)
        results, published = run(ws, HORIZON)
        self.failures = [failure for result in results for failure in result.failures]
        assert published.generation
        assert_whole(ws.home)
        assert healthy_ids(self) <= ids(ws), "a healthy file lost something"
        return ws

    def write(self, *parts: bytes) -> None:
        self.bad.write_bytes(b"".join(parts))

    def damage(self, change: Callable[[bytes], bytes]) -> None:
        """Write the real transcript with one line changed."""
        lines = list(self.lines)
        lines[LINE - 1] = change(lines[LINE - 1])
        self.write(*lines)


_known: dict[Path, set[str]] = {}
_wholes: dict[Path, dict[str, tuple[int, int]]] = {}


def healthy_ids(scene: Scene) -> set[str]:
    """The turns of the healthy transcripts alone."""
    if scene.shared not in _known:
        claude = copy_some(scene.shared, scene.root / "alone", (HEALTHY,))
        _known[scene.shared] = ids(night(scene.root / "alone-home", claude))
    assert _known[scene.shared]
    return _known[scene.shared]


def whole_turns(scene: Scene) -> dict[str, tuple[int, int]]:
    """The turns of the other transcript undamaged: id -> its first and last line."""
    if scene.shared not in _wholes:
        folder = scene.root / "undamaged" / "projects" / OTHER
        folder.mkdir(parents=True)
        (folder / OTHER_FILE).write_bytes(b"".join(scene.lines))
        ws = night(scene.root / "undamaged-home", scene.root / "undamaged")
        _wholes[scene.shared] = {
            row.turn_id: (row.line_from, row.line_to) for _, _, row in ws.lake.read("transcripts")
        }
    return _wholes[scene.shared]


def ids(ws: Workspace) -> set[str]:
    return {row.turn_id for _, _, row in ws.lake.read("transcripts")}


def quarantined(ws: Workspace, path: Path) -> list[QuarantineRow]:
    return [row for row in ws.lake.read_table("quarantine") if row.source_path == str(path)]


def file_row(ws: Workspace, path: Path) -> FileRow:
    return next(row for row in ws.lake.read_table("files") if row.path == str(path))


@pytest.fixture
def scene(shared: Path, tmp_path: Path) -> Scene:
    return Scene(shared, tmp_path)


def _cut(line: bytes) -> bytes:
    return line[: len(line) // 2]


HARMLESS: dict[str, Callable[[bytes], bytes]] = {
    "glued to itself": lambda line: line.rstrip(b"\n") + line,
    "NULs before it": lambda line: b"\0" * 5000 + line,
    "NULs within it": lambda line: line[:1] + b"\0\0\0" + line[1:],
    "CRLF": lambda line: line.rstrip(b"\n") + b"\r\n",
    "empty lines before it": lambda line: b"\n\n  \n" + line,
    "a line of NULs before it": lambda line: b"\0" * 100 + b"\n" + line,
    "a byte that is no UTF-8": lambda line: line.replace(b'"type":', b'"x":"\xff\xfe","type":', 1),
    "a lone surrogate": lambda line: line.replace(b'"type":', b'"x":"\\ud83d","type":', 1),
}


@pytest.mark.parametrize("damage", HARMLESS)
def test_damage_that_can_be_mended_costs_nothing(scene: Scene, damage: str) -> None:
    scene.damage(HARMLESS[damage])
    ws = scene.night()
    assert whole_turns(scene).keys() <= ids(ws)
    assert not quarantined(ws, scene.bad)
    assert not scene.failures


def test_bytes_and_surrogates_in_the_words_become_the_sign_for_them(scene: Scene) -> None:
    words = b"what was said \\ud83d here and \xff there \\u0000 too"
    scene.write(*scene.lines, _prompt(words))
    ws = scene.night()
    said = [row.text for _, _, row in ws.lake.read("transcripts") if "what was said" in row.text]
    assert len(said) == 1
    assert said[0].startswith("what was said \ufffd here and \ufffd there")
    assert whole_turns(scene).keys() <= ids(ws)


LOST: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "torn": (lambda line: _cut(line) + b"\n", ""),
    "no JSON": (lambda line: b"Segmentation fault (core dumped)\n", ""),
    "JSON that is no record": (lambda line: b'["an", "array", 7]\n', "not_a_record"),
    "a binary line": (lambda line: bytes(set(range(256)) - {10}) + b"\n", ""),
}


@pytest.mark.parametrize("damage", LOST)
def test_a_line_that_is_lost_is_named_and_costs_only_itself(scene: Scene, damage: str) -> None:
    change, reason = LOST[damage]
    scene.damage(change)
    ws = scene.night()
    (row,) = quarantined(ws, scene.bad)
    assert row.line == LINE
    assert row.byte_offset == sum(len(line) for line in scene.lines[: LINE - 1])
    assert row.reason == reason or (row.reason and not reason)
    assert row.content
    _assert_only_the_line_is_lost(scene, ws)
    assert status(ws).quarantined == {row.reason: 1}


def test_of_a_cut_record_with_a_whole_one_behind_it_the_whole_one_is_read(scene: Scene) -> None:
    scene.damage(lambda line: _cut(line) + scene.lines[LINE])
    ws = scene.night()
    (row,) = quarantined(ws, scene.bad)
    assert (row.line, row.byte_offset) == (LINE, sum(map(len, scene.lines[: LINE - 1])))
    _assert_only_the_line_is_lost(scene, ws)


def _assert_only_the_line_is_lost(scene: Scene, ws: Workspace) -> None:
    touched = {
        turn_id for turn_id, (first, last) in whole_turns(scene).items() if first <= LINE <= last
    }
    assert whole_turns(scene).keys() - ids(ws) <= touched
    assert not scene.failures


def test_a_torn_end_is_no_fault_and_is_read_when_it_is_whole(scene: Scene) -> None:
    whole_turns(scene)
    scene.write(*scene.lines[:LINE], _cut(scene.lines[LINE]))
    ws = scene.night()
    assert not quarantined(ws, scene.bad)
    assert not status(ws).left_behind
    before = ids(ws)
    scene.write(*scene.lines)
    ws = scene.night()
    assert before < ids(ws)
    assert whole_turns(scene).keys() <= ids(ws)
    assert not quarantined(ws, scene.bad)


def test_a_line_above_the_cap_is_named_and_the_next_is_read(scene: Scene) -> None:
    lines = list(scene.lines)
    huge = b'{"type":"user","x":"' + b"y" * (LINE_CAP + (6 << 20)) + b'"}\n'
    lines.insert(LINE - 1, huge)
    scene.write(*lines)
    ws = scene.night()
    (row,) = quarantined(ws, scene.bad)
    assert (row.line, row.reason, row.size) == (LINE, "too_long", len(huge) - 1)
    assert len(unpack(row.content)) <= walk.KEPT_OF_A_BAD_LINE
    assert whole_turns(scene).keys() <= ids(ws)


def test_a_file_full_of_bad_lines_costs_no_more_than_it_may(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BAD_LINES", 100)
    monkeypatch.setattr(reading, "BAD_BYTES", 1000)
    junk = [b"junk %04d of forty bytes, more or less\n" % number for number in range(500)]
    scene.write(*scene.lines, *junk)
    ws = scene.night()
    rows = quarantined(ws, scene.bad)
    assert [row.line for row in rows] == [len(scene.lines) + 1 + n for n in range(100)]
    assert sum(len(unpack(row.content)) for row in rows) == 1000
    assert file_row(ws, scene.bad).bad_lines == 500
    assert whole_turns(scene).keys() <= ids(ws)


@pytest.mark.parametrize("first", ["a huge line", "NULs", "a core dump"])
def test_a_file_that_begins_badly_is_read_all_the_same(scene: Scene, first: str) -> None:
    beginning = {
        "a huge line": b'{"type":"user","x":"' + b"y" * (2 << 20) + b'"}\n',
        "NULs": b"\0" * (2 << 20),
        "a core dump": b"core\n" * 20,
    }[first]
    scene.write(beginning, *scene.lines)
    ws = scene.night()
    assert whole_turns(scene).keys() <= ids(ws)
    assert not scene.failures


@pytest.mark.parametrize("content", [b"", b"\n", b"\0" * 4096, b"\n \r\n\n"])
def test_a_file_with_nothing_in_it_costs_nothing(scene: Scene, content: bytes) -> None:
    scene.write(content)
    ws = scene.night()
    assert not quarantined(ws, scene.bad)
    assert not scene.failures
    assert file_row(ws, scene.bad).turns == 0
    assert not look.look(ws).pending


def test_a_file_that_is_no_transcript_is_named(scene: Scene) -> None:
    scene.write(b"dear diary\n" * 100)
    ws = scene.night()
    assert [failure.where for failure in scene.failures] == [str(scene.bad)]
    assert file_row(ws, scene.bad).error
    assert status(ws).left_behind
    scene.bad.unlink()
    assert not status(scene.night()).left_behind, "what is gone needs nobody"


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = Path.cwd()
        os.chdir(path.parent)  # the names of sockets are short
        try:
            made.bind(path.name)
        finally:
            os.chdir(here)


def _link_to_nothing(path: Path) -> None:
    path.symlink_to(path.parent / "nowhere.jsonl")


def _link_to_itself(path: Path) -> None:
    path.symlink_to(path)


def _forbidden(path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("nothing is forbidden to root")
    path.write_bytes(b"{}\n")
    path.chmod(0)


@pytest.mark.parametrize("make", [_pipe, _socket, _link_to_nothing, _link_to_itself, _forbidden])
def test_what_cannot_be_opened_is_named(scene: Scene, make: Callable[[Path], None]) -> None:
    make(scene.bad)
    ws = scene.night()
    assert [failure.where for failure in scene.failures] == [str(scene.bad)]
    assert status(ws).left_behind


def test_a_watched_folder_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for place in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / ("x" * 300)):
        (told,) = look.look(workspace(tmp_path / "home", place)).unreadable
        assert told.where.startswith(str(place))
    assert not look.look(workspace(tmp_path / "home", tmp_path / "none")).unreadable


def test_a_cell_that_went_from_the_lake_is_named(scene: Scene) -> None:
    ws = scene.night()
    assert not status(ws).left_behind
    cell = ws.lake.cells("transcripts")[0]
    ws.lake.path("transcripts", cell.day, cell.project).unlink()
    told = status(workspace(scene.home, scene.claude))
    assert told.left_behind
    assert told.stages[0].stale == [cell.day]


def test_a_folder_named_like_a_transcript_is_looked_into(scene: Scene) -> None:
    scene.bad.mkdir()
    (scene.bad / OTHER_FILE).write_bytes(b"".join(scene.lines))
    (scene.bad / "up").symlink_to(scene.folder)
    ws = scene.night()
    assert whole_turns(scene).keys() <= ids(ws)
    assert not scene.failures
    paths = [row.path for row in ws.lake.read_table("files")]
    assert len(paths) == len(set(paths)) == 5
    assert not [path for path in paths if "/up/" in path]


def test_a_name_that_is_no_utf8_is_named(scene: Scene) -> None:
    name = os.fsencode(scene.folder) + b"/\xff\xfe.jsonl"
    Path(os.fsdecode(name)).write_bytes(b"".join(scene.lines))
    ws = scene.night()
    assert len(scene.failures) == 1
    assert scene.failures[0].where.startswith(str(scene.folder))
    assert status(ws).left_behind


def test_a_file_that_goes_between_the_look_and_the_reading(scene: Scene) -> None:
    scene.write(*scene.lines)
    ws = workspace(scene.home, scene.claude)
    looked = look.look(ws)
    scene.bad.unlink()
    result = ingest.ingest(ws, looked)
    assert [failure.where for failure in result.failures] == [str(scene.bad)]
    assert healthy_ids(scene) <= ids(ws)
    ws = scene.night()
    assert not scene.failures
    assert not status(ws).left_behind


def test_a_source_that_goes_deletes_nothing(scene: Scene) -> None:
    scene.write(*scene.lines)
    before = ids(scene.night())
    for path in scene.folder.glob("*.jsonl"):
        path.unlink()
    assert ids(scene.night()) == before


def test_a_file_rewritten_to_the_same_size_is_read_again(scene: Scene) -> None:
    old, new = _prompt(b"the old words", "a"), _prompt(b"the new words", "b")
    assert len(old) == len(new)
    scene.write(old, *scene.lines)
    scene.night()
    scene.write(new, *scene.lines)
    ws = scene.night()
    said = {row.text for _, _, row in ws.lake.read("transcripts")}
    assert {"the old words", "the new words"} <= said, "what a rewritten file lacks stays"
    assert whole_turns(scene).keys() <= ids(ws)


def test_a_rewritten_file_still_reaches_the_days_of_what_it_lacks(scene: Scene) -> None:
    scene.write(*scene.lines)
    before = file_row(scene.night(), scene.bad).cells
    scene.write(_prompt(b"all that is left"))
    after = file_row(scene.night(), scene.bad).cells
    assert before
    assert set(before) < set(after)


def test_an_unknown_type_is_counted_kept_and_read_from_the_lake_by_a_mended_reader(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = _prompt(b"words in a record of tomorrow").replace(b'"type":"user"', b'"type":"user_9"')
    scene.write(*scene.lines, later)
    ws = scene.night()
    (row,) = quarantined(ws, scene.bad)
    assert (row.line, row.reason) == (len(scene.lines) + 1, "unknown_type:user_9")
    assert file_row(ws, scene.bad).unknown == (("user_9", 1),)
    assert status(ws).unknown_types == {"user_9": 1}
    assert not _says(ws, "words in a record of tomorrow")

    for path in scene.folder.glob("*.jsonl"):
        path.unlink()
    _mend(monkeypatch)
    before = ids(ws)
    ws = scene.night()
    assert _says(ws, "words in a record of tomorrow")
    assert before < ids(ws)
    assert not quarantined(ws, scene.bad)
    assert file_row(ws, scene.bad).unknown == ()
    assert not status(ws).left_behind
    assert not look.look(ws).pending, "it is read once"


def test_what_grew_behind_a_dropped_image_is_kept_in_the_lake(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = {"type": "base64", "media_type": "image/png", "data": "A" * 300_000}
    image = _prompt(b"look at this").replace(
        b'"look at this"', json.dumps([{"type": "image", "source": block}]).encode()
    )
    later = _prompt(b"words in a record of tomorrow", "b").replace(b'"user",', b'"user_9",', 1)
    scene.write(image)
    scene.night()
    scene.write(image, later)
    scene.night()
    scene.bad.unlink()
    _mend(monkeypatch)
    assert _says(scene.night(), "words in a record of tomorrow")


@pytest.mark.parametrize("cut", [0, 20], ids=["lines", "list"])
def test_a_damaged_copy_in_the_lake_is_named_and_stops_no_night(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    scene.write(*scene.lines)
    ws = scene.night()
    before = ids(ws)
    (segment,) = raw.segments(ws.home, str(scene.bad))
    damaged = ws.home.raw / segment.bundle
    content = bytearray(damaged.read_bytes())
    content[segment.offset + segment.size // 2] ^= 255
    damaged.write_bytes(content[: len(content) - cut])
    scene.bad.unlink()
    _mend(monkeypatch)
    ws = scene.night()
    assert [failure.where for failure in scene.failures] == [str(scene.bad)]
    assert ids(ws) == before


STRANGE: tuple[dict[str, object], ...] = (
    {"timestamp": "99999-01-01T00:00:00Z"},
    {"timestamp": "2026-02-30T25:61:61Z"},
    {"timestamp": -1},
    {"timestamp": 1e300},
    {"timestamp": 10**40},
    {"timestamp": None},
    {"cwd": "/a|b\x00c\nd/../e"},
    {"cwd": "/" + "x" * 5000},
    {"cwd": "C:\\Users\\me\\r\u00e9po"},
    {"cwd": ""},
    {"cwd": 7},
    {"sessionId": "../../etc/passwd"},
    {"sessionId": "", "uuid": ""},
    {"uuid": "same", "parentUuid": "same"},
    {"message": 7},
    {"message": {"role": "user", "content": 7}},
    {"message": {"role": "user", "content": [[["deep"]]]}},
    {"message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "none"}]}},
    {"message": {"role": "user", "content": "\ud800\udfff\U0010ffff\u202e\x1b[31m"}},
    {
        "type": "assistant",
        "message": {"id": "", "content": [{"type": "tool_use", "input": 10**40}]},
    },
    {"type": "", "gitBranch": ["main"]},
    {"isSidechain": "yes", "version": 2.1, "agentId": {"a": 1}},
)


def test_values_that_nobody_writes_cost_only_themselves(scene: Scene) -> None:
    records = [
        json.dumps(json.loads(_prompt(b"said")) | {"uuid": f"u-{number}"} | strange).encode()
        for number, strange in enumerate(STRANGE)
    ]
    deep = b'{"type":"user","message":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    scene.write(*scene.lines[:LINE], b"\n".join([*records, deep]), b"\n", *scene.lines[LINE:])
    ws = scene.night()
    assert whole_turns(scene).keys() <= ids(ws)
    assert not scene.failures
    assert not status(ws).left_behind


@pytest.mark.parametrize("seed", range(3))
def test_bytes_that_were_changed_at_random_stop_no_night(scene: Scene, seed: int) -> None:
    chance = random.Random(seed)
    content = bytearray(b"".join(scene.lines))
    for _ in range(400):
        place = chance.randrange(len(content))
        kind = chance.randrange(4)
        if kind == 0:
            content[place] = chance.randrange(256)
        elif kind == 1:
            del content[place : place + chance.randrange(200)]
        elif kind == 2:
            content[place:place] = content[:: chance.randrange(500, 5000)]
        else:
            content[place:place] = bytes(chance.randrange(40))
    scene.write(bytes(content))
    ws = scene.night()
    assert not scene.failures
    assert not status(ws).left_behind
    assert whole_turns(scene).keys() & ids(ws), "the control: some of it was read"


def _mend(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new version of the reader, that knows the type ``user_9``."""
    monkeypatch.setattr(look, "READER_VERSION", look.READER_VERSION + 1)
    monkeypatch.setattr(ingest, "READER_VERSION", look.READER_VERSION)
    known = reader.decode

    def decode(line: bytes) -> Any:
        record = known(line)
        return replace(record, type="user") if record.type == "user_9" else record

    monkeypatch.setattr(reader, "decode", decode)


def _says(ws: Workspace, words: str) -> bool:
    return any(row.text == words for _, _, row in ws.lake.read("transcripts"))


def _prompt(words: bytes, mark: str = "a") -> bytes:
    record = {
        "parentUuid": None,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/experiments/worktrees",
        "sessionId": OTHER_FILE.removesuffix(".jsonl"),
        "version": "2.1.29",
        "type": "user",
        "message": {"role": "user", "content": "WORDS"},
        "uuid": f"00000000-0000-4000-8000-00000000000{mark}",
        "timestamp": "2026-02-03T00:25:14.150Z",
    }
    return json.dumps(record, separators=(",", ":")).encode().replace(b"WORDS", words) + b"\n"
