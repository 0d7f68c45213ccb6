"""Raw lines are kept once, whole, for a while."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator

import pytest

from everest_pipelines.lake import raw
from everest_pipelines.text.errors import DamagedError
from everest_pipelines.text.home import Home
from everest_pipelines_tests.lake.rows import NOON

PATH = "/projects/a/one.jsonl"
LINES = b'{"type":"user"}\n' * 1000


def read(home: Home, path: str = PATH) -> list[bytes]:
    return [b"".join(raw.read_segment(home, one)) for one in raw.segments(home, path)]


def without(word: bytes) -> raw.Marked:
    def marked(lines: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
        return ((line, word in line) for line in lines)

    return marked


def test_what_was_written_is_read_back_in_order(home: Home) -> None:
    with raw.bundle(home) as bundle:
        bundle.add(PATH, 0, 16_000, LINES, last_at=NOON)
        bundle.add("/other.jsonl", 0, 4, b"old\n", last_at=NOON)
    assert raw.write_segment(home, PATH, 16_000, 16_004, [b"ab", b"c\n"], last_at=NOON)
    assert read(home) == [LINES, b"abc\n"]
    assert [(one.start, one.end) for one in raw.segments(home, PATH)] == [
        (0, 16_000),
        (16_000, 16_004),
    ]
    assert read(home, "/other.jsonl") == [b"old\n"]
    assert raw.sources(home) == ["/other.jsonl", PATH]
    assert list(raw.lines(home, PATH))[-1] == b"abc\n"
    assert len(list(home.raw.iterdir())) == 2


def test_a_batch_that_failed_or_is_empty_leaves_nothing(home: Home) -> None:
    with raw.bundle(home):
        pass
    with pytest.raises(KeyError), raw.bundle(home) as bundle:
        bundle.add(PATH, 0, 16_000, LINES, last_at=NOON)
        raise KeyError
    assert raw.sources(home) == []
    assert not list(home.raw.iterdir())


def test_a_source_that_cannot_be_read_to_its_end_leaves_no_bytes_in_the_bundle(home: Home) -> None:
    def broken() -> Iterator[bytes]:
        yield os.urandom(5 << 20)
        raise OSError("gone")

    with raw.bundle(home) as bundle:
        bundle.add(PATH, 0, 4, b"one\n", last_at=NOON)
        with pytest.raises(OSError, match="gone"):
            bundle.add("/b", 0, 16_000, broken(), last_at=NOON)
        bundle.add("/c", 0, 4, b"two\n", last_at=NOON)
    assert raw.sources(home) == ["/c", PATH]
    assert read(home, "/c") == [b"two\n"]
    assert sum(path.stat().st_size for path in home.raw.iterdir()) < 10_000


def test_the_same_bytes_are_kept_once_and_rewritten_ones_beside_them(home: Home) -> None:
    assert raw.write_segment(home, PATH, 0, 16_000, LINES, last_at=NOON)
    pieces = (LINES[i : i + 999] for i in range(0, len(LINES), 999))
    assert not raw.write_segment(home, PATH, 0, 16_000, pieces, last_at=NOON)
    assert raw.write_segment(home, PATH, 0, 16_000, LINES.upper(), last_at=NOON)
    assert read(home) == [LINES, LINES.upper()]
    assert len(list(home.raw.iterdir())) == 2  # no leftovers


def test_old_bundles_go_by_the_time_at_which_they_were_read(home: Home) -> None:
    for place, read_at in ((0, NOON - 1), (4, NOON), (8, NOON - 1)):
        raw.write_segment(home, PATH, place, place + 4, b"line", last_at=NOON)
        path = home.raw / raw.segments(home, PATH)[-1].bundle
        os.utime(path, ns=(read_at * 1000, read_at * 1000))
    assert raw.prune(home, NOON) == 2
    assert [one.start for one in raw.segments(home, PATH)] == [4]
    assert len(list(home.raw.iterdir())) == 1
    assert raw.prune(home, NOON) == 0


def test_a_source_can_be_forgotten_and_the_others_stay_as_they_were(home: Home) -> None:
    with raw.bundle(home) as bundle:
        bundle.add("/a", 0, 4, b"aaa\n", last_at=NOON)
        bundle.add(PATH, 0, 16_000, LINES, last_at=NOON)
        bundle.add("/b", 0, 4, b"bbb\n", last_at=NOON)
    raw.write_segment(home, PATH, 16_000, 16_004, b"abc\n", last_at=NOON)
    (path,) = home.raw.glob("00000001-*")
    os.utime(path, ns=(NOON * 1000, NOON * 1000))
    assert raw.forget(home, PATH) == 2
    assert raw.forget(home, "/never/seen") == 0
    assert raw.sources(home) == ["/a", "/b"]
    assert (read(home, "/a"), read(home, "/b")) == ([b"aaa\n"], [b"bbb\n"])
    (left,) = home.raw.iterdir()
    assert left.stat().st_mtime_ns == NOON * 1000, "no younger than it was"


def test_lines_can_be_taken_out_of_a_source(home: Home) -> None:
    with raw.bundle(home) as bundle:
        bundle.add("/a", 0, 12, b"keep\nsecret\n", last_at=NOON)
        bundle.add(PATH, 0, 17, b"keep\nsecret\nkeep\n", last_at=NOON)
        bundle.add(PATH, 17, 24, b"secret\n", last_at=NOON)
    (path,) = home.raw.iterdir()
    os.utime(path, ns=(NOON * 1000, NOON * 1000))
    before = path.name
    assert raw.rewrite(home, PATH, without(b"nowhere")) == 0
    assert [one.name for one in home.raw.iterdir()] == [before], "nothing to do, nothing written"
    assert raw.rewrite(home, PATH, without(b"secret")) == 2
    assert read(home) == [b"keep\n\nkeep\n"], "the line keeps its place; an empty segment goes"
    assert read(home, "/a") == [b"keep\nsecret\n"], "the control: another source"
    (left,) = home.raw.iterdir()
    assert left.stat().st_mtime_ns == NOON * 1000
    assert raw.rewrite(home, PATH, without(b"secret")) == 0
    assert b"".join(raw.without([b"se", b"cret\nx"], without(b"secret"))) == b"\nx"


def test_what_a_killed_rewriting_left_is_rewritten_by_the_next(home: Home) -> None:
    raw.write_segment(home, PATH, 0, 17, b"keep\nsecret\nkeep\n", last_at=NOON)
    (old,) = home.raw.iterdir()
    content = old.read_bytes()
    raw.rewrite(home, PATH, without(b"secret"))
    (new,) = home.raw.iterdir()
    old.write_bytes(content)  # killed before the old one went
    assert len(raw.segments(home, PATH)) == 2
    assert raw.rewrite(home, PATH, without(b"secret")) == 1
    assert list(home.raw.iterdir()) == [new]
    assert read(home) == [b"keep\n\nkeep\n"]


def test_a_damaged_segment_is_not_passed_on_as_whole(home: Home) -> None:
    raw.write_segment(home, PATH, 0, 16_000, LINES, last_at=NOON)
    (segment,) = raw.segments(home, PATH)
    path = home.raw / segment.bundle
    content = path.read_bytes()
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    with pytest.raises(DamagedError, match="not what was written"):
        list(raw.read_segment(home, segment))
    path.unlink()
    with pytest.raises(DamagedError, match="cannot be read"):
        list(raw.read_segment(home, segment))


@pytest.mark.parametrize("cut", [1, 9, 100, 10_000], ids=str)
def test_a_bundle_without_its_end_is_told_and_hides_no_other(home: Home, cut: int) -> None:
    raw.write_segment(home, PATH, 0, 5 << 20, os.urandom(5 << 20), last_at=NOON)
    (path,) = home.raw.iterdir()
    path.write_bytes(path.read_bytes()[:-cut])
    raw.write_segment(home, "/b", 0, 4, b"abc\n", last_at=NOON)
    assert raw.damaged(home) == [path]
    assert raw.sources(home) == ["/b"]
    raw.forget(home, "/c")  # it might hold what is to be forgotten
    assert raw.damaged(home) == []
    assert read(home, "/b") == [b"abc\n"]


def test_bundles_are_the_owners_alone(home: Home) -> None:
    raw.write_segment(home, PATH, 0, 16_000, LINES, last_at=NOON)
    for path in home.raw.rglob("*"):
        assert path.stat().st_mode & 0o777 == 0o600
    assert home.raw.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(shutil.which("zstd") is None, reason="no zstd here")
def test_the_zstd_program_reads_a_bundle(home: Home) -> None:
    content = bytes(range(256)) * 40_000  # several frames
    with raw.bundle(home) as bundle:
        bundle.add(PATH, 0, len(content), content, last_at=NOON)
        bundle.add("/b", 0, 4, b"end\n", last_at=NOON)
    (path,) = home.raw.iterdir()
    done = subprocess.run(["zstd", "-dc", str(path)], check=True, capture_output=True)
    assert done.stdout == content + b"end\n"
