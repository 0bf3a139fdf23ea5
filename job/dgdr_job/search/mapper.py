"""From a run's spec to the engine's configuration, with `search.parameters` merged in key by key."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dgdr_api.bounds import INT32_MAX
from dgdr_api.duration import seconds
from dgdr_api.errors import InvalidRequest, Problem
from dgdr_api.request import SearchSpec
from dgdr_api.run import RunSpec
from dgdr_api.terms import Backend
from dgdr_api.workload import StaticWorkload
from pydantic import ValidationError

from dgdr_job.search.budgets import contradiction
from dgdr_job.search.config import Encoder, SearchSpace, SmartSearchConfig
from dgdr_job.search.problems import check_keys, problems

OWNER: dict[str, str] = {
    "search_space.model_name": "modelRef.name",
    "search_space.model_config_path": "modelRef.config",
    "search_space.hardware_sku": "hardware.gpu.sku",
    "search_space.prefill_hardware_sku": "hardware.gpu.prefillSku",
    "search_space.decode_hardware_sku": "hardware.gpu.decodeSku",
    "search_space.deployment_mode": "search.topologies",
    "search_space.backend": "backends",
    "search_space.backend_version": "runtime.performanceDataVersion",
    "search_space.gpu_budget": "hardware.gpu.budget",
    "search_space.gpu_budget_by_sku": "hardware.gpu.budgetBySku",
    "search_space.min_gpu_budget": "hardware.gpu.minBudget",
    "search_space.gpus_per_node": "hardware.gpu.perNode",
    "search_space.context_length": "workload.maxSequenceLength",
    "search_space.encoder": "search.encoder",
    "search_space.encode.hardware_sku": "hardware.gpu.encoderSku",
    "workload": "workload",
    "goal": "objective",
    "runtime": "runtime.image",
    "adapters": "search.router and search.planner",
    "sweep.fidelity": "search.fidelity",
    "sweep.max_seconds": "search.budget.maxDuration",
    "sweep.max_rounds": "search.budget.maxRounds",
    "sweep.candidates_per_round": "search.budget.candidatesPerRound",
    "sweep.parallel_evals": "search.budget.parallelEvaluations",
    "sweep.max_eval_seconds": "search.budget.maxEvaluationDuration",
    "sweep.reserve": "recommendation.maxCandidates",
}
"""Engine keys that a typed field of the request owns."""

FINE_CTX_TOKENS = (512, 1024, 2048, 4096)
"""Small passes keep the time between tokens short: chunked prefill's whole point, so the static estimate tries them."""
RESERVE_FACTOR = 4
"""Candidates sent for each that is published at most: what cannot be rendered leaves no gap (api.md section 5)."""

RANGE_RATIOS = 5
"""Ratios of kvLoadRatioRange."""
PREFIX = "search.parameters."
"""Where the engine's keys stand in a request."""


def search_config(spec: RunSpec, data_versions: Mapping[Backend, str], visual_tokens: int = 0) -> SmartSearchConfig:
    """Map a run.

    Args:
        spec: a run's spec: every default explicit, SKU names canonical.
        data_versions: performance-data version of each backend, as the version chain resolved it.
        visual_tokens: tokens that the images of a request add to its prompt.

    Raises:
        InvalidRequest: search.parameters has an unknown key, one that a typed field owns, or a value out of bounds.
    """
    check_keys(SmartSearchConfig, spec.search.parameters, prefix=PREFIX, owner=OWNER)
    _check_encode_keys(spec)
    _check_length(spec, visual_tokens)
    merged = _merge(_mapped(spec, data_versions, visual_tokens), spec.search.parameters)
    try:
        config = SmartSearchConfig.model_validate(merged)
    except ValidationError as error:
        raise InvalidRequest(problems(error.errors(include_url=False), prefix=PREFIX)) from error
    contradicting = contradiction(config.search_space)
    if contradicting is not None:
        raise InvalidRequest([replace(contradicting, field=f"{PREFIX}{contradicting.field}")])
    return config


def encoder_of(spec: SearchSpec) -> Encoder:
    """Where images are encoded, in the engine's words."""
    names: dict[str, Encoder] = {"Inline": "inline", "Disaggregated": "disaggregated", "Both": "both"}
    return names[spec.search.encoder]


def generated_load(spec: RunSpec) -> StaticWorkload:
    """The generated workload of a run.

    Raises:
        InvalidRequest: the run has a trace; `features` refuses that before with the reason.
    """
    if spec.workload.static is None:
        raise InvalidRequest([Problem("workload.static", "is needed: a trace has no static estimate")])
    return spec.workload.static


def load_ratios(load: StaticWorkload) -> tuple[float, ...]:
    """The KV load ratios that are searched: one, or five from a range, geometric with both ends; else none."""
    if load.kv_load_ratio is not None:
        return (load.kv_load_ratio,)
    if load.kv_load_ratio_range is None:
        return ()
    least, most = load.kv_load_ratio_range.min, load.kv_load_ratio_range.max
    shares = [step / (RANGE_RATIOS - 1) for step in range(1, RANGE_RATIOS - 1)]
    # a product of powers, since the quotient of the ends may exceed all numbers
    between = (least ** (1 - share) * most**share for share in shares)
    return (least, *between, most)


def _mapped(spec: RunSpec, data_versions: Mapping[Backend, str], visual_tokens: int) -> dict[str, Any]:
    gpu, load, objective = spec.hardware.gpu, generated_load(spec), spec.objective
    prompt = load.isl + visual_tokens
    space: dict[str, Any] = {
        "model_name": spec.model_ref.name,
        "hardware_sku": gpu.sku,
        "deployment_mode": spec.search.topologies,
        "backend": spec.backends,
        "backend_version": dict(data_versions),
        "prefill_hardware_sku": gpu.prefill_sku,
        "decode_hardware_sku": gpu.decode_sku,
        "gpu_budget": gpu.budget,
        "gpu_budget_by_sku": gpu.budget_by_sku,
        "min_gpu_budget": gpu.min_budget or 1,
        "gpus_per_node": gpu.per_node,
        "context_length": spec.workload.max_sequence_length,
        "encoder": encoder_of(spec),
        **({"encode": {"hardware_sku": gpu.encoder_sku}} if gpu.encoder_sku is not None else {}),
        **_wide_budgets(prompt),
    }
    sla, budget = objective.sla, spec.search.budget
    own_budgets = "agg_max_num_batched_tokens" in spec.search.parameters.get("search_space", {})
    return {
        "rate_matching": {
            "agg_ctx_tokens": () if own_budgets else _fine_budgets(prompt),
        },
        "search_space": space,
        "workload": {
            "isl": load.isl,
            "osl": load.osl,
            "concurrency": load.concurrency,
            "request_rate": load.request_rate,
            "saturated": bool(load.saturated),
            "kv_load_ratios": load_ratios(load),
            "images": None if load.images is None else load.images.model_dump(by_alias=False),
            "visual_tokens": visual_tokens,
        },
        "goal": {
            "metrics": objective.all_metrics,
            "pareto": objective.mode == "pareto",
            "sla": {} if sla is None else sla.model_dump(by_alias=False),
            "gpu_cost_per_hour": objective.gpu_hour_cost or {},
        },
        "sweep": {
            "fidelity": spec.search.fidelity,
            "reserve": RESERVE_FACTOR * spec.recommendation.max_candidates,
            "max_seconds": None if budget.max_duration is None else seconds(budget.max_duration),
            "max_rounds": budget.max_rounds,
            "candidates_per_round": budget.candidates_per_round,
            "parallel_evals": budget.parallel_evaluations,
            "max_eval_seconds": seconds(budget.max_evaluation_duration),
        },
        "adapters": {"router": spec.search.router, "planner": spec.search.planner},
        "runtime": {"image": spec.runtime.image, "version_override": spec.runtime.version_override},
    }


def _wide_budgets(isl: int) -> dict[str, tuple[int, ...]]:
    """Token budgets of prefill and aggregated workers for a prompt beyond the default lists: one more covers it."""
    defaults = SearchSpace.model_fields
    lists = {name: defaults[name].default for name in ("prefill_max_num_batched_tokens", "agg_max_num_batched_tokens")}
    covering = min(1 << (isl - 1).bit_length(), INT32_MAX)
    return {name: (*listed, covering) for name, listed in lists.items() if isl > listed[-1]}


def _fine_budgets(isl: int) -> list[int]:
    return sorted({*FINE_CTX_TOKENS, isl, min(2 * isl, INT32_MAX)})


def _check_encode_keys(spec: RunSpec) -> None:
    """Keys of encode workers mean nothing where there are none."""
    given = spec.search.parameters.get("search_space", {})
    if spec.search.encoder == "Inline" and isinstance(given, Mapping) and "encode" in given:
        message = "needs search.encoder Disaggregated or Both"
        raise InvalidRequest([Problem("search.parameters.search_space.encode", message, given["encode"])])


def _check_length(spec: RunSpec, visual_tokens: int) -> None:
    load, bound = spec.workload.static, spec.workload.max_sequence_length
    if load is None or bound is None:
        return
    total = load.isl + visual_tokens + load.osl
    if total > bound:
        visual = f" + {visual_tokens:,} visual tokens" if visual_tokens else ""
        needed = f"isl {load.isl:,}{visual} + osl {load.osl:,} = {total:,}"
        message = f"is {bound:,}, but {needed}; give at least that"
        raise InvalidRequest([Problem("workload.maxSequenceLength", message, bound)])


def _merge(base: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in more.items():
        below = merged.get(key)
        merged[key] = _merge(below, value) if isinstance(below, dict) and isinstance(value, Mapping) else value
    return merged
