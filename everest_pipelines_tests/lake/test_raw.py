"""Raw lines are kept once, whole, for a while."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from everest_pipelines.lake import raw
from everest_pipelines.text.errors import DamagedError
from everest_pipelines.text.home import Home
from everest_pipelines_tests.lake.rows import NOON

PATH = "/projects/a/one.jsonl"
LINES = b'{"type":"user"}\n' * 1000


def test_what_was_written_is_read_back_in_order(home: Home) -> None:
    first, new = raw.write_segment(home, PATH, 0, 16_000, LINES, last_at=NOON)
    second, _ = raw.write_segment(home, PATH, 16_000, 16_004, [b"ab", b"c\n"], last_at=NOON)
    assert new
    assert raw.segments(home, PATH) == [first, second]
    assert b"".join(raw.read_segment(home, first)) == LINES
    assert b"".join(raw.read_segment(home, second)) == b"abc\n"
    assert raw.sources(home) == [PATH]


def test_the_same_bytes_are_kept_once_and_rewritten_ones_beside_them(home: Home) -> None:
    first, _ = raw.write_segment(home, PATH, 0, 16_000, LINES, last_at=NOON)
    pieces = (LINES[i : i + 999] for i in range(0, len(LINES), 999))
    assert raw.write_segment(home, PATH, 0, 16_000, pieces, last_at=NOON) == (first, False)
    other, new = raw.write_segment(home, PATH, 0, 16_000, LINES.upper(), last_at=NOON)
    assert new
    assert raw.segments(home, PATH) == [first, other]
    folder = next(home.raw.iterdir())
    assert len(list(folder.iterdir())) == 3  # two segments and the index: no leftovers


def test_old_segments_go_by_the_time_of_their_last_record(home: Home) -> None:
    kept, _ = raw.write_segment(home, PATH, 4, 8, b"new\n", last_at=NOON)
    old, _ = raw.write_segment(home, PATH, 0, 4, b"old\n", last_at=NOON)
    other, _ = raw.write_segment(home, "/projects/b.jsonl", 0, 4, b"old\n", last_at=NOON)
    for segment, read_at in ((kept, NOON), (old, NOON - 1), (other, NOON - 1)):
        path = raw._folder(home, segment.source_path) / segment.name
        os.utime(path, ns=(read_at * 1000, read_at * 1000))
    assert raw.prune(home, NOON) == 2
    assert raw.segments(home, PATH) == [kept]
    assert raw.sources(home) == [PATH]
    assert len(list(home.raw.iterdir())) == 1
    assert raw.prune(home, NOON) == 0


def test_a_source_can_be_forgotten(home: Home) -> None:
    raw.write_segment(home, PATH, 0, 4, b"old\n", last_at=NOON)
    raw.write_segment(home, "/b", 0, 4, b"old\n", last_at=NOON)
    assert raw.forget(home, PATH) == 1
    assert raw.forget(home, "/never/seen") == 0
    assert raw.sources(home) == ["/b"]


def test_a_damaged_segment_is_not_passed_on_as_whole(home: Home) -> None:
    segment, _ = raw.write_segment(home, PATH, 0, 16_000, LINES, last_at=NOON)
    path = next(home.raw.iterdir()) / segment.name
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DamagedError, match=r"jsonl\.zst"):
        list(raw.read_segment(home, segment))
    other, _ = raw.write_segment(home, "/b", 0, 4, b"abc\n", last_at=NOON)
    shutil.copy(home.raw / raw._folder(home, "/b").name / other.name, path)
    with pytest.raises(DamagedError, match="not what was written"):
        list(raw.read_segment(home, segment))


def test_segments_are_the_owners_alone(home: Home) -> None:
    raw.write_segment(home, PATH, 0, 16_000, LINES, last_at=NOON)
    for path in home.raw.rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600)


@pytest.mark.skipif(shutil.which("zstd") is None, reason="no zstd here")
def test_the_zstd_program_reads_a_segment(home: Home) -> None:
    content = bytes(range(256)) * 40_000  # several frames
    segment, _ = raw.write_segment(home, PATH, 0, len(content), content, last_at=NOON)
    path = next(home.raw.iterdir()) / segment.name
    done = subprocess.run(["zstd", "-dc", str(path)], check=True, capture_output=True)
    assert done.stdout == content
