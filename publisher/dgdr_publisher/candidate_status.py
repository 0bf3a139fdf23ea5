"""The status of a published candidate: conditions, rounded numbers for a reader, what the search found out."""

from collections.abc import Sequence

from dgdr_api import reasons
from dgdr_api.base import wire
from dgdr_api.candidate import EvaluatedCandidate
from dgdr_api.candidate_resource import CandidateEvaluation, CandidateStatus
from dgdr_api.conditions import Condition, condition
from dgdr_api.events import VersionLink
from dgdr_api.replay_spec import roles_text
from dgdr_api.terms import Metric

from dgdr_publisher.rendering import Rendered

NO_TIME = "1970-01-01T00:00:00Z"
"""Time of a candidate's conditions: a candidate is the same bytes whenever it is computed."""
UNITS: dict[Metric, str] = {
    "throughput": "tok/s",
    "throughputPerGpu": "tok/s/GPU",
    "throughputPerUser": "tok/s/user",
    "throughputPerCost": "tok/cost",
    "ttft": "ms",
    "e2eLatency": "ms",
    "goodput": "req/s",
    "goodputPerGpu": "req/s/GPU",
    "minGpus": "GPUs",
}


def candidate_status(
    evaluated: EvaluatedCandidate, rendered: Rendered, *, rank: int | None, versions: Sequence[VersionLink]
) -> CandidateStatus:
    """The status of a candidate that was rendered and verified.

    Args:
        evaluated: what was scored.
        rendered: what it became.
        rank: 1 is best; absent for a point of a front.
        versions: the version links of the run, for borrowed tables.
    """
    return CandidateStatus(
        rank=rank,
        conditions=(
            _evaluated(evaluated),
            _materialized(rendered),
            _version_bound(evaluated, versions),
        ),
        evaluation=_evaluation(evaluated),
        materialization=rendered.materialization,
        renderer_version=rendered.renderer_version,
    )


def rounded(value: float) -> str:
    """A number for a reader: four significant digits, integers whole."""
    if value == int(value) or abs(value) >= 1000:  # noqa: PLR2004 - four digits before the point
        return f"{value:.0f}"
    return f"{value:.4g}"


def score_text(evaluated: EvaluatedCandidate) -> str:
    """The score as its metric with unit; for several objectives the score itself."""
    objectives = evaluated.evaluation.objectives
    if len(objectives) != 1:
        return rounded(evaluated.evaluation.score)
    (name, value), *_ = objectives.items()
    return f"{rounded(value)} {_unit(name)}".strip()


def summary(evaluated: EvaluatedCandidate) -> str:
    """The deployment in one line, e.g. ``vllm disagg: 2 x prefill tp1, 1 x decode tp4 on h200_sxm``."""
    candidate = evaluated.candidate
    skus = {role.sku for role in candidate.roles}
    where = f" on {skus.pop()}" if len(skus) == 1 else ""
    return f"{candidate.backend} {candidate.topology}: {roles_text(candidate.roles)}{where}"


def _unit(name: str) -> str:
    return next((unit for metric, unit in UNITS.items() if metric == name), "")


def _evaluation(evaluated: EvaluatedCandidate) -> CandidateEvaluation:
    found, candidate = evaluated.evaluation, evaluated.candidate
    return CandidateEvaluation(
        score=found.score,
        used_gpus=found.used_gpus,
        gpus_by_role=", ".join(f"{role.kind} {role.workers}x{role.gpus_per_worker}" for role in candidate.roles),
        objectives=found.objectives,
        metrics=found.metrics,
        display=_display(evaluated),
        memory=found.memory,
        provenance=found.provenance,
        replay_spec=wire(evaluated.replay_spec),
    )


def _display(evaluated: EvaluatedCandidate) -> dict[str, str]:
    metrics = evaluated.evaluation.metrics
    shown = {"mode": evaluated.candidate.topology, "score": score_text(evaluated)}
    for name, metric, unit in (
        ("ttft", "ttftMs", " ms"),
        ("itl", "tpotMs", " ms"),
        ("throughputPerGpu", "outputThroughputTokensPerSPerGpu", ""),
    ):
        value = metrics.get(metric)
        if value is not None:
            shown[name] = rounded(value) + unit
    for objective, value in evaluated.evaluation.objectives.items():
        shown.setdefault(objective, f"{rounded(value)} {_unit(objective)}".strip())
    return shown


def _evaluated(evaluated: EvaluatedCandidate) -> Condition:
    static = evaluated.candidate.parameters.get("fidelity") == "static"
    text = "rated by rate matching, not simulated" if static else "simulated under the workload"
    left_out = evaluated.evaluation.not_modelled
    notes = [f"not modelled: {name} ({what})" for name, what in left_out.items()] + list(evaluated.evaluation.flags)
    reason = reasons.STATIC_ESTIMATE if static else reasons.REPLAYED
    return condition(reasons.PARTIALLY_MODELLED if left_out else reason, "; ".join([text, *notes]), now=NO_TIME)


def _materialized(rendered: Rendered) -> Condition:
    placed = sum(row.destination is not None for row in rendered.materialization)
    rest = len(rendered.materialization) - placed
    text = (
        f"{placed} places of evaluated values in the spec, {rest} values that need none; read back without difference"
    )
    return condition(reasons.RENDERED_AND_VERIFIED, text, now=NO_TIME)


def _version_bound(evaluated: EvaluatedCandidate, versions: Sequence[VersionLink]) -> Condition:
    roles = evaluated.candidate.roles
    pinned = [role for role in roles if role.data_version != role.engine_version]
    if pinned:
        text = "; ".join(
            f"{role.kind}: {role.backend} {role.engine_version} in the image, timed with data of {role.data_version}"
            for role in pinned
        )
        return condition(reasons.PERF_DATA_PINNED, text, now=NO_TIME)
    used = {(role.backend, role.sku) for role in roles}
    borrowed = [table for link in versions if (link.backend, link.sku) in used for table in link.borrowed_tables]
    version = roles[0].engine_version
    text = f"{roles[0].backend} {version} in the image, timed with data of {version}"
    if borrowed:
        tables = ", ".join(dict.fromkeys(borrowed))
        return condition(reasons.BOUND_WITH_BORROWED_DATA, f"{text}; borrowed: {tables}", now=NO_TIME)
    return condition(reasons.BOUND, text, now=NO_TIME)
