"""From a run's spec to the engine's configuration, with `search.parameters` merged in key by key."""

import difflib
import json
from collections.abc import Mapping
from typing import Any

from dgdr_api.bounds import INT32_MAX
from dgdr_api.duration import seconds
from dgdr_api.errors import InvalidRequest, Problem
from dgdr_api.run import RunSpec
from dgdr_api.terms import Backend
from dgdr_api.workload import StaticWorkload
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from dgdr_job.search.config import SearchSpace, SmartSearchConfig

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
    "workload": "workload",
    "goal": "objective",
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
SHOWN_CHARACTERS = 80
"""A wrong value is shown up to here."""


def search_config(spec: RunSpec, data_versions: Mapping[Backend, str]) -> SmartSearchConfig:
    """Map a run.

    Args:
        spec: a run's spec: every default explicit, SKU names canonical.
        data_versions: performance-data version of each backend, as the version chain resolved it.

    Raises:
        InvalidRequest: search.parameters has an unknown key, one that a typed field owns, or a value out of bounds.
    """
    _check_keys(SmartSearchConfig, spec.search.parameters, "")
    _check_length(spec)
    merged = _merge(_mapped(spec, data_versions), spec.search.parameters)
    try:
        return SmartSearchConfig.model_validate(merged)
    except ValidationError as error:
        raise InvalidRequest(_problems(error.errors(include_url=False))) from error


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


def _mapped(spec: RunSpec, data_versions: Mapping[Backend, str]) -> dict[str, Any]:
    gpu, load, objective = spec.hardware.gpu, generated_load(spec), spec.objective
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
        **_wide_budgets(load.isl),
    }
    sla = objective.sla
    own_budgets = "agg_max_num_batched_tokens" in spec.search.parameters.get("search_space", {})
    return {
        "rate_matching": {
            "agg_ctx_tokens": () if own_budgets else _fine_budgets(load.isl),
        },
        "search_space": space,
        "workload": {
            "isl": load.isl,
            "osl": load.osl,
            "concurrency": load.concurrency,
            "request_rate": load.request_rate,
            "saturated": bool(load.saturated),
            "kv_load_ratios": load_ratios(load),
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
            "max_seconds": None
            if spec.search.budget.max_duration is None
            else seconds(spec.search.budget.max_duration),
        },
    }


def _wide_budgets(isl: int) -> dict[str, tuple[int, ...]]:
    """Token budgets of prefill and aggregated workers for a prompt beyond the default lists: one more covers it."""
    defaults = SearchSpace.model_fields
    lists = {name: defaults[name].default for name in ("prefill_max_num_batched_tokens", "agg_max_num_batched_tokens")}
    covering = min(1 << (isl - 1).bit_length(), INT32_MAX)
    return {name: (*listed, covering) for name, listed in lists.items() if isl > listed[-1]}


def _fine_budgets(isl: int) -> list[int]:
    return sorted({*FINE_CTX_TOKENS, isl, min(2 * isl, INT32_MAX)})


def _check_length(spec: RunSpec) -> None:
    load, bound = spec.workload.static, spec.workload.max_sequence_length
    if load is not None and bound is not None and load.isl + load.osl > bound:
        needed = f"isl {load.isl:,} + osl {load.osl:,} = {load.isl + load.osl:,}"
        message = f"is {bound:,}, but {needed}; give at least that"
        raise InvalidRequest([Problem("workload.maxSequenceLength", message, bound)])


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
                [
                    Problem(
                        f"search.parameters.{name}",
                        f"is no key of the engine; {'near' if near else 'known'}: {known}",
                        value,
                    )
                ]
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


BOUND_TEXTS: dict[str, str] = {
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
    "too_short": "has {actual_length} values, at least {min_length} are needed",
    "too_long": "has {actual_length} values, at most {max_length} are allowed",
    "finite_number": "must be a finite number",
}
"""Our words for a bound that a value breaks, by pydantic's name of the fault; the braces are the bound itself."""
TYPE_TEXTS: tuple[tuple[str, str], ...] = (
    ("int", "must be a whole number"),
    ("float", "must be a number"),
    ("bool", "must be true or false"),
    ("tuple", "must be a list"),
    ("string", "must be a text"),
)
"""Our words for a value of another type, by the start of pydantic's name of the fault."""


def _problems(details: list[ErrorDetails]) -> list[Problem]:
    """What is wrong; a fault of a list that follows from a fault of one of its values is left out."""
    places = [detail["loc"] for detail in details]
    return [
        _problem(detail)
        for detail in details
        if not any(place != detail["loc"] and place[: len(detail["loc"])] == detail["loc"] for place in places)
    ]


def _problem(detail: ErrorDetails) -> Problem:
    """One fault of search.parameters in our own words: where, which bound, what was found."""
    kind, bounds = detail["type"], detail.get("ctx", {})
    if kind in BOUND_TEXTS:
        text = BOUND_TEXTS[kind].format(
            **{name: f"{bound:g}" if isinstance(bound, float) else bound for name, bound in bounds.items()}
        )
    else:
        text = next((words for start, words in TYPE_TEXTS if kind.startswith(start)), f"is not allowed ({kind})")
    field = ".".join(str(part) for part in detail["loc"])
    found = json.dumps(detail["input"], default=str)
    shown = found if len(found) <= SHOWN_CHARACTERS else f"{found[:SHOWN_CHARACTERS]}..."
    return Problem(f"search.parameters.{field}", f"{text}, found {shown}", detail["input"])
