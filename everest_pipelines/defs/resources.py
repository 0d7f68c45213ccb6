"""What a run works with: the memory, under the lake's lock from first need to the run's end."""

import logging
import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg

from everest_pipelines.defs.partitions import days_of
from everest_pipelines.defs.processes import PROCESS, fail_dead_runs, this_process
from everest_pipelines.text.errors import EverestError
from everest_pipelines.text.home import Home
from everest_pipelines.text.settings import Settings, load

if TYPE_CHECKING:
    from everest_pipelines.core.records import Day, Micros, ProjectKey
    from everest_pipelines.night.publish import Publication
    from everest_pipelines.night.render import RenderReport
    from everest_pipelines.night.workspace import Failure, Progress, Span, StageResult, Workspace

STALE_ONLY = "everest/stale_only"  # the days of the range that are good stay as they are
THROUGH = "everest/through"  # fold up to this day, rather than to yesterday
OUTCOME = "everest/outcome"  # done, blocked (a gate is red), left (something was left behind)
ASKED = "everest/asked"  # the digest of what a sensor asked for
PARENT = "dagster/parent_run_id"


def in_force() -> tuple[Home, Settings]:
    """The home and settings of this process's environment. Raises SettingsError."""
    home = Home.resolve(os.environ)
    return home, load(os.environ, home.config)


@contextmanager
def wordless(what: str) -> Iterator[None]:
    """Let an error out by its kind and place alone: its words may quote a transcript.

    Dagster stores an error with its message, and its pages have no login. Our own errors are
    sentences made for the owner (paths, names, commands) and pass.
    """
    try:
        yield
    except (EverestError, dg.Failure, dg.DagsterError):
        raise
    except Exception as error:  # whatever it is, it must not be stored as it is
        trace = traceback.extract_tb(error.__traceback__)[-1]
        raise dg.Failure(
            f"{what} failed with {type(error).__name__} in {Path(trace.filename).name}:"
            f"{trace.lineno} {trace.name}. Nothing else is lost. Next: everest doctor",
            allow_retries=False,
        ) from None


class NightRun:
    """One run's hold on the memory, and what its stages did."""

    def __init__(
        self,
        home: Home,
        settings: Settings,
        *,
        instance: dg.DagsterInstance,
        run: dg.DagsterRun,
        log: logging.Logger | Any,
        progress: "Progress | None" = None,
        now: "Callable[[], Micros] | None" = None,
        on_wait: Callable[[object], None] | None = None,
        accept: Sequence[str] = (),
    ) -> None:
        self.home = home
        self.settings = settings
        self.instance = instance
        self.run = run
        self.accept = accept
        self.results: list[StageResult] = []
        self.publication: Publication | None = None
        self.rendered: RenderReport | None = None
        self._log = log
        self._progress = progress
        self._now = now
        self._on_wait = on_wait
        self._stack = ExitStack()
        self._ws: Workspace | None = None

    @property
    def ws(self) -> "Workspace":
        """The open memory. Takes the lake's lock when first asked; others are waited for."""
        if self._ws is None:
            from everest_pipelines.lake.lock import held
            from everest_pipelines.night.workspace import open_workspace

            self.home.ensure()
            who = f"the run {self.run.job_name} {self.run.run_id[:8]}"
            self._stack.enter_context(held(self.home, who, on_wait=self._waiting()))
            dead = fail_dead_runs(self.instance, but=self.run.run_id)
            if dead:
                self._log.warning(f"{len(dead)} runs of dead processes were marked failed")
            self._ws = open_workspace(
                self.home, self.settings, progress=self._progress, now=self._now
            )
        return self._ws

    @property
    def horizon(self) -> "Day":
        """The day that this run folds up to."""
        from everest_pipelines.night.workspace import horizon_of

        return self.run.tags.get(THROUGH) or horizon_of(self.ws)

    @property
    def asked(self) -> "Span | None":
        """The days to do again whatever their state: None for a sensor's run and a night."""
        from everest_pipelines.night.workspace import Span

        tags = self.run.tags
        if STALE_ONLY in tags and PARENT not in tags:
            return None
        days = days_of(dict(tags))
        return Span(*days) if days else None

    def keep(self, result: "StageResult") -> "StageResult":
        """Remember what a stage did, for the run's end and for the caller of a night."""
        self.results.append(result)
        return result

    @property
    def failures(self) -> "list[Failure]":
        """Everything that this run's stages left behind."""
        rendering = self.rendered.failures if self.rendered else []
        return [failure for one in self.results for failure in one.failures] + list(rendering)

    @property
    def outcome(self) -> str:
        """The run's ending in one word; see OUTCOME."""
        if self.failures:
            return "left"
        return "blocked" if self.publication and self.publication.blocked else "done"

    def projects(self) -> "list[ProjectKey]":
        """Project keys in the order of their minting."""
        from everest_pipelines.night.projects import ProjectBook

        return ProjectBook(self.ws.lake, self.home).keys()

    def close(self) -> None:
        """Let the lake go."""
        if self._ws is not None:
            self.instance.add_run_tags(self.run.run_id, {OUTCOME: self.outcome})
            if self.run.job_name == "night":
                from everest_pipelines.night.growth import note_size

                note_size(self.home, self._ws.now())
            self._ws = None
        self._stack.close()

    def _waiting(self) -> Callable[[object], None]:
        told: list[str] = []

        def on_wait(holder: object) -> None:
            name = str(holder or "another run")
            if name not in told:
                told.append(name)
                self._log.warning(f"waiting for {name}, which works on the lake")
                if self._on_wait is not None:
                    self._on_wait(name)

        return on_wait


def night_resource(
    home: Home | None = None,
    settings: Settings | None = None,
    *,
    kept: list[NightRun] | None = None,
    progress: "Progress | None" = None,
    now: "Callable[[], Micros] | None" = None,
    on_wait: Callable[[object], None] | None = None,
    accept: Sequence[str] = (),
) -> dg.ResourceDefinition:
    """The resource `night`. Without a home, that of the environment; `kept` receives the run."""

    @dg.resource(description="The memory, held under the lake's lock for the length of the run.")
    def night(context: dg.InitResourceContext) -> Iterator[NightRun]:
        place, chosen = (home, settings) if home and settings else in_force()
        if context.run is None or context.instance is None:
            raise dg.DagsterInvariantViolationError("the memory is opened by runs alone")
        if PROCESS not in context.run.tags:
            context.instance.add_run_tags(context.run.run_id, {PROCESS: this_process()})
        opened = NightRun(
            place,
            chosen,
            instance=context.instance,
            run=context.run,
            log=context.log or logging.getLogger("everest"),
            progress=progress,
            now=now,
            on_wait=on_wait,
            accept=accept,
        )
        if kept is not None:
            kept.append(opened)
        try:
            yield opened
        finally:
            opened.close()

    return night
