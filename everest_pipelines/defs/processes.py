"""Runs whose process died: found by a tag that names the process, and marked failed."""

import os
import time
from pathlib import Path

import dagster as dg

PROCESS = "everest/process"
# A run without the tag is in the seconds before its first step, unless it died in them.
UNTAGGED_SECONDS = 300.0

_UNFINISHED = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def this_process() -> str:
    """The tag's value for this process."""
    return f"{os.getpid()}:{_started(os.getpid())}"


def is_alive(tag: str) -> bool:
    """Whether the process that a tag names runs still; a reused number does not count."""
    number, _, started = tag.partition(":")
    if not number.isdigit():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it is there, and somebody else's
    return _started(int(number)) == started


def fail_dead_runs(instance: dg.DagsterInstance, *, but: str = "") -> list[str]:
    """Mark runs that a dead process left unfinished; returns their ids. `but` is left alone."""
    failed: list[str] = []
    for record in instance.get_run_records(dg.RunsFilter(statuses=_UNFINISHED)):
        run = record.dagster_run
        if run.run_id == but or not _is_dead(record):
            continue
        words = "Its process died. What it left undone is asked for again by itself."
        if run.status is dg.DagsterRunStatus.CANCELING:
            instance.report_run_canceled(run, words)
        else:
            instance.report_run_failed(run, words)
        failed.append(run.run_id)
    return failed


def _is_dead(record: dg.RunRecord) -> bool:
    tag = record.dagster_run.tags.get(PROCESS)
    if tag is not None:
        return not is_alive(tag)
    if record.dagster_run.status is dg.DagsterRunStatus.NOT_STARTED:
        return False
    return time.time() - record.update_timestamp.timestamp() > UNTAGGED_SECONDS


def _started(number: int) -> str:
    """When a process began, in ticks since the machine did; "" where the system does not say."""
    try:
        words = Path(f"/proc/{number}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    return words.rpartition(")")[2].split()[19]
