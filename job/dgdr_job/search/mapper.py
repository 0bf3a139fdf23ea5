"""From a run's spec to the engine's configuration, with `search.parameters` merged in key by key."""

import difflib
from collections.abc import Mapping
from typing import Any

from dgdr_api.duration import seconds
from dgdr_api.errors import InvalidRequest, Problem
from dgdr_api.run import RunSpec
from dgdr_api.terms import Backend
from pydantic import BaseModel, ValidationError

from dgdr_job.search.config import SmartSearchConfig

OWNER: dict[str, str] = {
    "search_space.model_name": "modelRef.name",
    "search_space.hardware_sku": "hardware.gpu.sku",
    "search_space.deployment_mode": "search.topologies",
    "search_space.backend": "backends",
    "search_space.backend_version": "runtime.performanceDataVersion",
    "search_space.gpu_budget": "hardware.gpu.budget",
    "search_space.min_gpu_budget": "hardware.gpu.minBudget",
    "search_space.gpus_per_node": "hardware.gpu.perNode",
    "search_space.context_length": "workload.maxSequenceLength",
    "workload": "workload",
    "goal": "objective",
    "sweep.fidelity": "search.fidelity",
    "sweep.max_seconds": "search.budget.maxDuration",
    "sweep.reserve": "recommendation.maxCandidates",
}
"""Engine keys that a typed field of the request owns."""

FINE_CTX_TOKENS = (512, 1024, 2048, 4096)
"""Small passes keep the time between tokens short: chunked prefill's whole point, so the static estimate tries them."""
RESERVE_FACTOR = 4
"""Candidates sent for each that is published at most: what cannot be rendered leaves no gap (api.md section 5)."""


def search_config(spec: RunSpec, data_versions: Mapping[Backend, str]) -> SmartSearchConfig:
    """Map a run.

    Args:
        spec: a run's spec: every default explicit, SKU names canonical.
        data_versions: performance-data version of each backend, as the version chain resolved it.

    Raises:
        InvalidRequest: search.parameters has an unknown key, one that a typed field owns, or a value out of bounds.
    """
    _check_keys(SmartSearchConfig, spec.search.parameters, "")
    merged = _merge(_mapped(spec, data_versions), spec.search.parameters)
    try:
        return SmartSearchConfig.model_validate(merged)
    except ValidationError as error:
        raise InvalidRequest([_problem(detail) for detail in error.errors()]) from error


def _mapped(spec: RunSpec, data_versions: Mapping[Backend, str]) -> dict[str, Any]:
    gpu, load, objective = spec.hardware.gpu, spec.workload.static, spec.objective
    assert load is not None  # noqa: S101 - a trace is refused before (features.py)
    budget = min(gpu.budget, gpu.budget_by_sku.get(gpu.sku, gpu.budget))
    space: dict[str, Any] = {
        "model_name": spec.model_ref.name,
        "hardware_sku": gpu.sku,
        "deployment_mode": spec.search.topologies,
        "backend": spec.backends,
        "backend_version": dict(data_versions),
        "gpu_budget": budget,
        "min_gpu_budget": gpu.min_budget or 1,
        "gpus_per_node": gpu.per_node,
        "context_length": spec.workload.max_sequence_length,
    }
    for kind in ("prefill", "agg"):
        listed = SmartSearchConfig.model_fields["search_space"].annotation.model_fields[  # type: ignore[union-attr]
            f"{kind}_max_num_batched_tokens"
        ].default
        if load.isl > listed[-1]:
            space[f"{kind}_max_num_batched_tokens"] = (*listed, 1 << (load.isl - 1).bit_length())
    sla = objective.sla
    own_budgets = "agg_max_num_batched_tokens" in spec.search.parameters.get("search_space", {})
    return {
        "rate_matching": {
            "agg_ctx_tokens": () if own_budgets else sorted({*FINE_CTX_TOKENS, load.isl, 2 * load.isl}),
        },
        "search_space": space,
        "workload": {
            "isl": load.isl,
            "osl": load.osl,
            "concurrency": load.concurrency,
            "request_rate": load.request_rate,
            "saturated": bool(load.saturated),
        },
        "goal": {
            "metrics": objective.all_metrics,
            "pareto": objective.mode == "pareto",
            "sla": {} if sla is None else sla.model_dump(by_alias=False),
            "gpu_cost_per_hour": (objective.gpu_hour_cost or {}).get(gpu.sku),
        },
        "sweep": {
            "fidelity": spec.search.fidelity,
            "reserve": RESERVE_FACTOR * spec.recommendation.max_candidates,
            "max_seconds": None if spec.search.budget.max_duration is None else seconds(spec.search.budget.max_duration),
        },
    }


def _check_keys(model: type[BaseModel], given: Mapping[str, Any], path: str) -> None:
    """Refuse keys that do not exist or are owned by a typed field, each with what would do."""
    for key, value in given.items():
        name = f"{path}{key}"
        if name in OWNER:
            raise InvalidRequest(
                [Problem(f"search.parameters.{name}", f"is set by {OWNER[name]}; change that field instead", value)]
            )
        if key not in model.model_fields:
            near = difflib.get_close_matches(key, model.model_fields, n=3)
            known = ", ".join(near or model.model_fields)
            raise InvalidRequest(
                [Problem(f"search.parameters.{name}", f"is no key of the engine; {'near' if near else 'known'}: {known}", value)]
            )
        part = model.model_fields[key].annotation
        if isinstance(part, type) and issubclass(part, BaseModel):
            if not isinstance(value, Mapping):
                raise InvalidRequest([Problem(f"search.parameters.{name}", "must be an object", value)])
            _check_keys(part, value, f"{name}.")


def _merge(base: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in more.items():
        below = merged.get(key)
        merged[key] = _merge(below, value) if isinstance(below, dict) and isinstance(value, Mapping) else value
    return merged


def _problem(detail: Any) -> Problem:  # noqa: ANN401 - pydantic's ErrorDetails
    field = ".".join(str(part) for part in detail["loc"])
    return Problem(f"search.parameters.{field}", detail["msg"][:1].lower() + detail["msg"][1:], detail["input"])
