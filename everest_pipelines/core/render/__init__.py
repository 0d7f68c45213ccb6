"""What the memory looks like outside the lake: pure functions from rows to text and bytes."""

from everest_pipelines.core.render.lesson_files import Evidence, lesson_file
from everest_pipelines.core.render.lessons_jsonl import lessons_jsonl, wire, wire_hash
from everest_pipelines.core.render.memory_md import (
    BrokenMarkersError,
    memory_section,
    splice,
    unsplice,
)
from everest_pipelines.core.render.plain import file_name, short_id

__all__ = [
    "BrokenMarkersError",
    "Evidence",
    "file_name",
    "lesson_file",
    "lessons_jsonl",
    "memory_section",
    "short_id",
    "splice",
    "unsplice",
    "wire",
    "wire_hash",
]
