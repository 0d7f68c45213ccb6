"""Transcripts: bytes of an agent's file in, turns out. No file system, no clock."""

from everest_pipelines.core.transcripts.reading import Event, Reading
from everest_pipelines.core.transcripts.registry import (
    FORMATS,
    HEAD_BYTES,
    Format,
    format_of,
    nearest,
)

__all__ = ["FORMATS", "HEAD_BYTES", "Event", "Format", "Reading", "format_of", "nearest"]
