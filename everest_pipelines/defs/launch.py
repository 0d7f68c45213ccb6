"""Starting Dagster on a home: the instance, its environment, and a night in this process."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import resources as packaged
from pathlib import Path
from typing import TYPE_CHECKING

from everest_pipelines.text.atomic import write_atomic
from everest_pipelines.text.errors import EverestError
from everest_pipelines.text.home import HOME_VARIABLE, Home, find_checkout
from everest_pipelines.text.settings import Settings

if TYPE_CHECKING:
    import dagster as dg

    from everest_pipelines.core.records import Day, Micros
    from everest_pipelines.night.publish import Publication
    from everest_pipelines.night.render import RenderReport
    from everest_pipelines.night.workspace import Progress, StageResult

STORAGE_VARIABLE = "DAGSTER_EVEREST_STORAGE"  # what dagster.yaml reads; no setting of the owner
DAGSTER_HOME = "DAGSTER_HOME"
FILES = ("dagster.yaml", "workspace.yaml")
_INTERRUPTED = "DagsterExecutionInterruptedError"
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def environment(home: Home) -> tuple[dict[str, str], Path]:
    """The variables that make any Dagster process use this home, and the workspace file.

    In a checkout its own dagster.yaml rules; from a wheel the packaged one is written into the
    home. Both are the same file. Raises EverestError where Dagster's folder cannot be made.
    """
    home.ensure()
    folder = find_checkout() or home.root
    if folder == home.root:
        for name in FILES:
            content = (packaged.files("everest_pipelines.defs") / "instance" / name).read_bytes()
            if not (folder / name).exists() or (folder / name).read_bytes() != content:
                write_atomic(folder / name, content)
    home.dagster.mkdir(mode=0o700, exist_ok=True)
    variables = {
        DAGSTER_HOME: str(folder),
        HOME_VARIABLE: str(home.root),
        STORAGE_VARIABLE: str(home.dagster),
    }
    return variables, folder / "workspace.yaml"


def env_file(home: Home) -> str:
    """What `make setup` writes to `.env`, so that a plain `dagster dev` is the same instance."""
    variables, _ = environment(home)
    return "".join(f"{name}={value}\n" for name, value in variables.items())


@contextmanager
def instance_of(home: Home) -> "Iterator[dg.DagsterInstance]":
    """The home's one Dagster instance. What it creates is the owner's alone."""
    import dagster as dg

    variables, _ = environment(home)
    with (
        _environ(variables),
        _private(),
        dg.DagsterInstance.from_config(variables[DAGSTER_HOME]) as instance,
    ):
        yield instance


@dataclass
class Night:
    """What a night in this process did. `failed`: the run's status, also for what was left."""

    run_id: str
    failed: bool
    publication: "Publication"
    results: "list[StageResult]" = field(default_factory=list)
    rendered: "RenderReport | None" = None


def run_night(
    home: Home,
    settings: Settings,
    *,
    through: "Day | None" = None,
    progress: "Progress | None" = None,
    on_wait: Callable[[object], None] | None = None,
    now: "Callable[[], Micros] | None" = None,
    accept: Sequence[str] = (),
    job: str = "night",
) -> Night:
    """Run the job `night` here and now, recorded in the home's instance; no daemon is needed.

    Folds up to `through` (else to yesterday). Waits while another run works, calling `on_wait`
    with its name. What is left behind is in the results and fails the run at its end; raises the
    error of a stage that could not go on at all, and KeyboardInterrupt after Ctrl-C.
    """
    from everest_pipelines.defs import resources
    from everest_pipelines.defs.partitions import range_tags, register_projects
    from everest_pipelines.defs.processes import PROCESS, this_process
    from everest_pipelines.lake.calendar import Calendar
    from everest_pipelines.night.workspace import horizon_of, open_workspace

    calendar = Calendar.of(home.ensure(), settings)
    kept: list[resources.NightRun] = []
    with instance_of(home) as instance:
        from everest_pipelines.definitions import build

        horizon = through or horizon_of(open_workspace(home, settings, now=now))
        projects = register_projects(instance, [])
        result = (
            build(calendar, settings.ingest_minutes)
            .resolve_job_def(job)
            .execute_in_process(
                instance=instance,
                raise_on_error=False,
                run_config=QUIET,
                tags={
                    **range_tags(horizon, horizon, projects),
                    "dagster/max_runtime": "0",  # a daemon must not end what it does not run
                    PROCESS: this_process(),
                    resources.STALE_ONLY: "1",
                    **({resources.THROUGH: through} if through else {}),
                },
                resources={
                    "night": resources.night_resource(
                        home,
                        settings,
                        kept=kept,
                        progress=progress,
                        now=now,
                        on_wait=on_wait,
                        accept=accept,
                    )
                },
            )
        )
        failures = _failures(result)
        if any(kind == _INTERRUPTED for _, kind in failures):
            raise KeyboardInterrupt
        if not kept or kept[0].publication is None:
            raise _error_of(result.run_id, failures)
        return Night(
            run_id=result.run_id,
            failed=not result.success,
            publication=kept[0].publication,
            results=kept[0].results,
            rendered=kept[0].rendered,
        )


def _failures(result: "dg.ExecuteInProcessResult") -> list[tuple[str, str]]:
    """(step, kind of its error) of every failed step, in order."""
    found: list[tuple[str, str]] = []
    for event in result.all_events:
        if event.is_step_failure:
            error = event.step_failure_data.error
            cause = error.cause if error and error.cause else error
            found.append((event.step_key or "", (cause and cause.cls_name) or "unknown error"))
    return found


def _error_of(run_id: str, failures: list[tuple[str, str]]) -> EverestError:
    """The failure that stopped everything, by step and kind: its words stay in the run."""
    if not failures:
        return EverestError("The night did not begin.", "everest doctor")
    step, kind = failures[0]
    return EverestError(
        f"The stage {step} failed with {kind}; the run {run_id} in the UI says where.",
        "everest doctor",
    )


@contextmanager
def _environ(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _private() -> Iterator[None]:
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)
