"""The gates as checks: what publishing itself found, on exactly what it would publish."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import dagster as dg

from everest_pipelines.defs.checks import named, verdict
from everest_pipelines.defs.resources import NightRun

if TYPE_CHECKING:
    from everest_pipelines.night.gates import GateResult
    from everest_pipelines.night.render import RenderReport

_GATES = {
    "leak": "Red when a secret or a forgotten text would be published: nothing is, until it goes.",
    "scope": "Red when a project would be shown lessons that rest on another project's episodes.",
    "forbidden": "Red when something rejected, replaced or unproven would be shown.",
    "counts": "Red when days that should be there are missing, open or stale.",
    "removal": "Red when one night would take more than a fifth and at least ten lessons.",
    "opposites": "Red when one lesson holds a rule and its opposite.",
}
GATE_SPECS = [
    dg.AssetCheckSpec(f"gate_{gate}", asset="published", description=words)
    for gate, words in _GATES.items()
]

STANDING_SPEC = dg.AssetCheckSpec(
    "standing_invariant",
    asset="published",
    description=(
        "Red when something published was not let through by the gate, rests on no source that can"
        " be found, or was rejected, hidden or raised by anybody but the person. It only looks, at"
        " the lake as it is; parts with nothing to look at are told as not applicable."
    ),
)


def standing_result(night: NightRun) -> dg.AssetCheckResult:
    """What `night.invariant` finds, as counts and short ids."""
    from everest_pipelines.night.invariant import standing

    parts = standing(night.ws)
    wrong = [f"{one.part}: {named(list(one.wrong))}" for one in parts if one.wrong]
    idle = [one.part for one in parts if not one.looked]
    looked = ", ".join(f"{one.part} {one.looked}" for one in parts if one.looked)
    sentence = f"Holds ({looked or 'nothing to look at'})."
    if wrong:
        sentence = f"Broken: {'; '.join(wrong)}. Next: everest doctor"
    if idle:
        sentence += f" Not applicable: {', '.join(idle)}."
    return verdict(
        not wrong,
        sentence,
        check="standing_invariant",
        asset="published",
        looked=sum(one.looked for one in parts),
        wrong=sum(len(one.wrong) for one in parts),
    )


def gate_results(results: "Sequence[GateResult]") -> Iterator[dg.AssetCheckResult]:
    """One result for each gate, whatever number of projects it spoke of."""
    for gate in _GATES:
        own = [one for one in results if one.gate == gate]
        red = [one for one in own if not one.passed]
        accepted = [one for one in own if one.accepted]
        if red:
            where = named([f"{one.project or 'everything'} ({one.sentence})" for one in red])
            sentence = f"Held back: {where}. Next: {red[0].next_command}"
        elif accepted:
            sentence = f"Accepted by the owner for {named([one.project for one in accepted])}."
        else:
            sentence = "The gate is open."
        yield verdict(
            not red,
            sentence,
            check=f"gate_{gate}",
            asset="published",
            red=len(red),
            accepted=len(accepted),
        )


def rendered_result(done: "RenderReport") -> dg.AssetCheckResult:
    """Whether every folder of an agent could be brought up to date."""
    wrong = [f"{one.where} ({one.what})" for one in done.failures]
    wrong += [f"{folder} (several projects share it)" for folder in done.shared_folders]
    if wrong:
        sentence = f"{len(wrong)} folders were left alone: {named(wrong)}. Next: everest doctor"
    elif done.enabled:
        sentence = f"{len(done.folders)} folders say what the generation says."
    else:
        sentence = "Rendering into agents' folders is off; switch it on with: everest setup"
    return verdict(not wrong, sentence, check="rendered", asset="memory_md", left_alone=len(wrong))
