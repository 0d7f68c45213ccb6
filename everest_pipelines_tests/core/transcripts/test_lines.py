from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everest_pipelines.core.transcripts import lines as module
from everest_pipelines.core.transcripts.lines import drop_payloads, lines
from everest_pipelines.text.redact import may_hold_secret, redact_bytes


def contents(data: bytes, size: int = 7) -> list[bytes]:
    return [line.content for line in lines(data[n : n + size] for n in range(0, len(data), size))]


def test_only_a_newline_ends_a_line() -> None:
    data = "a\u2028b\u0085c\x0bd\r\ne\n".encode()
    assert contents(data) == ["a\u2028b\u0085c\x0bd".encode(), b"e"]


def test_numbers_and_offsets_count_the_bytes_of_the_file() -> None:
    data = b"\xef\xbb\xbfone\r\n\n\0\0two\0\nthree"
    found = [(one.number, one.offset, one.size, one.whole) for one in lines([data])]
    assert found == [(1, 0, 7, True), (2, 8, 0, True), (3, 9, 6, True), (4, 16, 5, False)]
    assert contents(data) == [b"one", b"", b"two", b"three"]


@given(st.binary(max_size=200), st.integers(1, 9))
def test_where_the_blocks_are_cut_does_not_matter(data: bytes, size: int) -> None:
    cut = list(lines([data[n : n + size] for n in range(0, len(data), size)]))
    assert cut == list(lines([data]))
    assert sum(one.size + one.whole for one in cut) == len(data)


def test_a_line_above_the_cap_is_named_and_costs_only_itself(monkeypatch) -> None:
    monkeypatch.setattr(module, "LINE_CAP", 100)
    monkeypatch.setattr(module, "KEPT_OF_A_CAPPED_LINE", 10)
    data = b"before\n" + b"x" * 1000 + b"\nafter\n"
    for size in (13, 5000):
        found = list(lines(data[n : n + size] for n in range(0, len(data), size)))
        assert [(one.content, one.size, one.capped) for one in found] == [
            (b"before", 6, False),
            (b"x" * 10, 1000, True),
            (b"after", 5, False),
        ]


def test_an_image_is_replaced_by_its_size_and_hash_in_both_places() -> None:
    image = "iVBORw0KGgo" * 2000 + "=="
    source = {"type": "base64", "media_type": "image/png", "data": image}
    line = json.dumps({"message": source, "toolUseResult": {"base64": image}, "kept": "A" * 2000})
    small = drop_payloads(line.encode())
    mark = f"[base64 {len(image)} bytes sha256:{hashlib.sha256(image.encode()).hexdigest()[:16]}]"
    value = json.loads(small)
    assert value["message"]["data"] == value["toolUseResult"]["base64"] == mark
    assert value["kept"] == "A" * 2000  # a long word that is no payload


@pytest.mark.parametrize("form", ['{"type":"base64","data":"%s"}', '"data:image/png;base64,%s"'])
def test_an_image_is_replaced_before_anything_is_kept(form: str) -> None:
    kept: list[bytes] = []
    line = (form % ("iVBORw0KGgo" * 2000)).encode()
    (found,) = lines([line + b"\n"], sink=lambda _, block: kept.append(block))
    assert b"sha256:" in found.content
    assert len(found.content) < 200
    assert kept == [found.content + b"\n"]


def test_a_line_below_the_cap_is_whole_however_it_is_cut() -> None:
    data = b"x" * 200_000 + b"\nend\n"
    assert contents(data, 30_000) == [b"x" * 200_000, b"end"]


def test_the_sink_gets_the_redacted_whole_lines_and_not_the_torn_one() -> None:
    kept: list[tuple[int, bytes]] = []
    data = b"a secret\nb\n\nc secret"
    found = list(
        lines(
            [data],
            redact=lambda line: line.replace(b"secret", b"[X]"),
            sink=lambda offset, block: kept.append((offset, block)),
        )
    )
    assert [one.content for one in found] == [b"a [X]", b"b", b"", b"c [X]"]
    assert kept == [(0, b"a [X]\nb\n\n")]


def test_the_sink_gets_blocks_with_their_offsets() -> None:
    kept: list[tuple[int, bytes]] = []
    blocks = [b"one\n", b"two\nth", b"r", b"ee\r\n\nfour\nfi", b"ve"]
    list(lines(blocks, sink=lambda *block: kept.append(block)))
    assert kept == [(0, b"one\n"), (4, b"two\n"), (8, b"three\n\nfour\n")]


def test_the_sink_gets_the_beginning_of_a_line_above_the_cap(monkeypatch) -> None:
    monkeypatch.setattr(module, "LINE_CAP", 100)
    monkeypatch.setattr(module, "KEPT_OF_A_CAPPED_LINE", 10)
    data = b"before\n" + b"x" * 1000 + b"\nafter\n" + b"y" * 200
    for size in (13, 5000):
        kept: list[tuple[int, bytes]] = []
        blocks = (data[n : n + size] for n in range(0, len(data), size))
        found = list(lines(blocks, sink=lambda *block, kept=kept: kept.append(block)))
        assert b"".join(block for _, block in kept) == b"before\n" + b"x" * 10 + b"\nafter\n"
        assert (found[-1].content, found[-1].size, found[-1].whole) == (b"y" * 10, 200, False)


SECRET = "ghp_" + "aZ3kQ9xT7mB2vL5nW8rY4pD6sF1hJ0cG" + "aZ3k"
LINES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                SECRET,
                "password=xK9#mP2$vL5nQ8",
                "-----BEGIN PRIVATE KEY-----",
                "AAAA",
                "",
                "_",
                "\r",
            ]
        ),
        st.text(max_size=9),
    ),
    max_size=12,
)


@settings(deadline=None)
@given(LINES, st.integers(1, 80), st.booleans())
def test_redacting_block_by_block_is_redacting_line_by_line(
    texts: list[str], block: int, whole: bool
) -> None:
    data = "\n".join(texts).encode() + b"\n" * whole

    def read(suspects: module.Suspects | None) -> tuple[list[module.Line], bytes]:
        kept: list[bytes] = []
        seen = list(
            lines(
                (data[n : n + block] for n in range(0, len(data), block)),
                redact=redact_bytes,
                suspects=suspects,
                sink=lambda _, content: kept.append(content),
            )
        )
        return seen, b"".join(kept)

    found = [read(None), read(may_hold_secret)]
    assert found[0] == found[1]
    assert SECRET.encode() not in found[1][1]
    assert found[1][1] == b"".join(one.content + b"\n" for one in found[1][0] if one.whole)


def test_a_block_without_suspicion_is_not_redacted_line_by_line() -> None:
    asked: list[bytes] = []

    def redact(line: bytes) -> bytes:
        asked.append(line)
        return line

    list(lines([b"one\ntwo\n"], redact=redact, suspects=lambda block: b"three" in block))
    assert asked == []
    list(lines([b"one\nthree\n"], redact=redact, suspects=lambda block: b"three" in block))
    assert asked == [b"one", b"three"]
