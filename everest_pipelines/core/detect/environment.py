"""Facts about the machine and its tools, from what the tools print.

Only exact sentences count: a program that is not there, a version that a program prints. They
never make a lesson by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from everest_pipelines.core.detect.commands import request_of
from everest_pipelines.core.detect.error_classes import clean
from everest_pipelines.core.detect.finding import episode
from everest_pipelines.core.detect.scene import Scene
from everest_pipelines.core.records import Episode, EpisodeKind, Origin

NAME, VERSION = "environment", 1

_MISSING = re.compile(
    r"^(?:/\S*/)?(?:ba|z|da)?sh: (?:line \d+: |\d+: )?([\w.+-]{2,30}): (?:command )?not found$|"
    r"^(?:zsh|bash): command not found: ([\w.+-]{2,30})$",
    re.MULTILINE,
)
_VERSION_COMMAND = re.compile(r"^\s*([\w.+-]{2,30}) (?:--version|-V|-v|version)\s*(?:2>&1)?\s*$")
_ASKS_VERSION = re.compile(r"version| -[vV]\b")
_VERSION_TEXT = re.compile(r"^\D{0,40}?\bv?(\d+\.\d+(?:\.\d+)?\S{0,20})")


def detect(scene: Scene) -> Iterator[Episode]:
    """One episode for each program that is missing, or whose version was asked."""
    for calls, index in scene.calls():
        turn, call = calls[index]
        if call.output is None or call.refused or len(call.output) > 4_000:
            continue
        fact = sub = ""
        if call.is_error and "not found" in call.output:
            missing = _MISSING.search(clean(call.output))
            if missing:
                program = missing.group(1) or missing.group(2)
                fact, sub = f"`{program}` is not installed here", "missing_program"
        elif (
            not call.is_error
            and ("version" in call.input or " -v" in call.input or " -V" in call.input)
            and _ASKS_VERSION.search(call.input)
        ):
            asked = _VERSION_COMMAND.match(request_of(call).command)
            told = _VERSION_TEXT.match(clean(call.output).split("\n", 1)[0]) if asked else None
            if asked and told:
                fact, sub = f"`{asked.group(1)}` is version {told.group(1)} here", "version"
        if fact:
            yield episode(
                turn,
                EpisodeKind.ENVIRONMENT,
                span=call.id,
                detector=NAME,
                version=VERSION,
                origin=Origin.TOOL,
                sub=sub,
                title=fact,
                gist=fact,
                sure=True,
                score=1.0,
                reason=f"printed:{sub}",
            )
