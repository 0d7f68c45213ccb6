"""What all checks share: the sentence with the command, and the end of a run that left a thing."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import dagster as dg

from everest_pipelines.defs.resources import NightRun, wordless

if TYPE_CHECKING:
    from everest_pipelines.core.records import Day
    from everest_pipelines.night.workspace import Failure

NAMED = 5  # so many paths or days are named, the others counted


Check = Callable[[NightRun], dg.AssetCheckResult]


@dataclass(frozen=True)
class Checks:
    """The checks of one asset. They run in its own step: a step of their own would list the whole
    grid, keys of 30,000 cells, each time."""

    asset: str
    functions: tuple[Check, ...]

    @property
    def specs(self) -> list[dg.AssetCheckSpec]:
        """One for each function: its name, and its docstring as the description."""
        return [
            dg.AssetCheckSpec(one.__name__, asset=self.asset, description=one.__doc__)
            for one in self.functions
        ]

    def run(self, night: NightRun) -> Iterator[dg.AssetCheckResult]:
        """Every check's result, in order."""
        for one in self.functions:
            with wordless(f"the check {one.__name__}"):
                result = one(night)
            yield result._replace(check_name=one.__name__, asset_key=dg.AssetKey(self.asset))


def checks_of(asset: str, *functions: Check) -> Checks:
    """The checks of an asset."""
    return Checks(asset, functions)


def verdict(
    passed: bool,
    sentence: str,
    *,
    warn: bool = False,
    check: str | None = None,
    asset: str | None = None,
    **numbers: int | float | str,
) -> dg.AssetCheckResult:
    """A check's result. The sentence holds counts, ids and paths only."""
    return dg.AssetCheckResult(
        passed=passed,
        check_name=check,
        asset_key=asset,
        description=sentence,
        severity=dg.AssetCheckSeverity.WARN if warn else dg.AssetCheckSeverity.ERROR,
        metadata=numbers,
    )


def named(items: Sequence[str]) -> str:
    """The first few of `items`, and how many more there are."""
    shown = ", ".join(items[:NAMED])
    return shown if len(items) <= NAMED else f"{shown} and {len(items) - NAMED} more"


def days_verdict(stage: str, stale: "Sequence[Day]", expected: int) -> dg.AssetCheckResult:
    """Whether every expected day of a stage is there and made of its present inputs."""
    if not stale:
        return verdict(True, f"All {expected} days of {stage} are there.", expected=expected)
    return verdict(
        False,
        f"{len(stale)} of {expected} days of {stage} are missing, open or stale:"
        f" {named(list(stale))}. They are asked for again by themselves; at once: everest night",
        expected=expected,
        present=expected - len(stale),
    )


def ending(asset: str, night: NightRun, jobs: frozenset[str]) -> Iterator[dg.AssetCheckResult]:
    """Say what the run left behind; as the last step of one of `jobs`, fail the run with it."""
    failures = list(night.failures)
    blocked = night.publication.blocked if night.publication else []
    left = bool(failures or blocked)
    sentence = _left(failures, len(blocked)) if left else "Nothing was left behind."
    yield verdict(
        not left,
        sentence,
        check="nothing_left_behind",
        asset=asset,
        failures=len(failures),
        red_gates=len(blocked),
    )
    if left and night.run.job_name in jobs:
        raise dg.Failure(sentence, allow_retries=False)


def _left(failures: "Sequence[Failure]", blocked: int) -> str:
    parts = []
    if failures:
        parts.append(
            f"{len(failures)} things were left behind, everything else was done:"
            f" {named([failure.where for failure in failures])}. See why: everest status"
        )
    if blocked:
        parts.append(
            f"{blocked} gates are red, the projects concerned keep their last good lessons."
            " The checks of `published` say what to do"
        )
    return "; ".join(parts)
