from __future__ import annotations

import json
import random
import re
from pathlib import Path

from jsonschema import Draft202012Validator

from everest_pipelines.core.render import lessons_jsonl, wire, wire_hash
from everest_pipelines_tests.core.render.lessons import HOSTILE, NOON, make_lesson

DOCS = Path(__file__).resolve().parents[3] / "docs"
FORMAT = DOCS / "lessons-format.md"
SCHEMA = DOCS / "lessons.schema.json"


def test_the_same_lessons_in_any_order_give_the_same_bytes() -> None:
    lessons = [make_lesson(f"Rule {n}", strength=n % 5) for n in range(40)]
    expected = lessons_jsonl(lessons)
    random.Random(7).shuffle(lessons)
    assert lessons_jsonl(lessons) == expected
    changed = [make_lesson("Another rule"), *lessons[1:]]
    assert lessons_jsonl(changed) != expected


def test_lines_are_ordered_by_scope_then_strength_then_id() -> None:
    lessons = [
        make_lesson("weak", strength=0.5),
        make_lesson("strong", strength=3.0),
        make_lesson("shared", scope="everywhere", strength=0.1),
    ]
    texts = [json.loads(line)["text"] for line in lessons_jsonl(lessons).splitlines()]
    assert texts == ["shared", "strong", "weak"]


def test_every_line_is_one_object_whatever_the_text_holds() -> None:
    lines = lessons_jsonl([make_lesson(text) for text in HOSTILE]).split(b"\n")
    assert lines.pop() == b""
    assert len(lines) == len(HOSTILE)
    read = {json.loads(line)["text"] for line in lines}
    whole = {text for text in HOSTILE if "\ud83d" not in text}
    assert whole <= read
    assert "half a pair ? here" in read


def test_times_are_utc_and_of_one_width() -> None:
    entry = wire(make_lesson(last_seen_at=NOON + 1, first_seen_at=0))
    assert entry["last_seen"] == "2026-03-01T12:00:00.000001Z"
    assert entry["first_seen"] == "1970-01-01T00:00:00.000000Z"
    assert entry["valid_to"] is None


def test_the_hash_follows_the_content_and_the_row_has_the_last_word() -> None:
    plain = make_lesson()
    assert wire(plain)["hash"] == wire_hash(plain)
    assert wire_hash(plain) != wire_hash(make_lesson(seen=2))
    assert wire(make_lesson(hash="given"))["hash"] == "given"


def test_the_documentation_names_exactly_the_fields_that_are_written() -> None:
    page = FORMAT.read_text(encoding="utf-8")
    table = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    documented = {name for cell in table for name in re.findall(r"`(\w+)`", cell)}
    assert documented == set(wire(make_lesson()))
    example = next(line for line in page.splitlines() if line.startswith('{"version"'))
    assert list(json.loads(example)) == list(wire(make_lesson()))


def test_every_line_fits_the_schema_and_the_schema_refuses_what_does_not_fit() -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    made = [make_lesson(text) for text in HOSTILE] + [make_lesson(valid_to=NOON)]
    for line in lessons_jsonl(made).splitlines():
        validator.validate(json.loads(line))
    good = json.loads(lessons_jsonl([make_lesson()]))
    assert set(schema["required"]) == set(schema["properties"]) == set(good)
    misfits = (("version", 2), ("id", "x"), ("seen", 0), ("last_seen", "2026"), ("kind", ""))
    for name, wrong in misfits:
        assert not validator.is_valid({**good, name: wrong})
        assert not validator.is_valid({key: value for key, value in good.items() if key != name})
    assert validator.is_valid({**good, "later": 1}), "fields may be added"

