"""The tag of an embedding space: two embedders of one tag give the same vectors."""

from __future__ import annotations

import re

from everest_pipelines.text.ids import digest

VERSION = 1  # raise it when what is sent to a model, or done with its answer, changes


def space_tag(kind: str, model: str, *, content: str, dimension: int, prefix: str = "") -> str:
    """kind, model, 8 hex of the content's digest, dimension, prefix and version, in one word.

    ``content``: what tells two builds of a model apart (the server's digest, a file's hash).
    ``prefix``: words put before every text; their digest is part of the tag. The tag is a file
    name: letters, digits, dot, dash and underscore only.
    """
    name = re.sub(r"[^a-z0-9._]+", "-", model.lower()).strip("-.") or "model"
    said = f"p{digest(prefix)[:4]}" if prefix else "p0"
    return f"{kind}-{name}-{digest(content)[:8]}-{dimension}-{said}-v{VERSION}"
