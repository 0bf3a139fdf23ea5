"""A configuration of its own (`dgdr search --config`): read, checked, and written as the request that asks the same.

There is one way to search. A native configuration is another notation of a request: what a typed field owns goes there,
every other key that was given goes to ``search.parameters``, and what is absent means the same in both. So the run,
its hash and its results are those of the request.
"""

from collections.abc import Mapping
from typing import Any

from dgdr_api.base import wire
from dgdr_api.errors import InvalidRequest, Problem
from dgdr_api.images import IMAGE_NAMES
from dgdr_api.parse import request_of
from dgdr_api.replay_spec import role_kinds
from dgdr_api.request import DynamoGraphDeploymentRequest
from dgdr_api.terms import Backend
from dgdr_api.versions import data_versions, engine_version, table, template_engines
from pydantic import ValidationError

from dgdr_job.search.budgets import contradiction
from dgdr_job.search.config import SmartSearchConfig
from dgdr_job.search.mapper import OWNER, RESERVE_FACTOR
from dgdr_job.search.problems import check_keys, problems

NAME = "native"
"""Name of the request of a configuration, which has none of its own."""
REGISTRY = "nvcr.io/nvidia/ai-dynamo"
LOADS = ("concurrency", "request_rate", "saturated", "kv_load_ratios")
RATIO_STEPS = 4
"""A range of KV load ratios has five, in equal factors."""
TIE = 1e-9
PARTS_OF_PARAMETERS = ("search_space", "sweep", "rate_matching")
NANOSECONDS = 10**9
KEY_OF_FIELD: dict[str, str] = {
    "spec.workload.maxSequenceLength": "search_space.context_length",
    "spec.workload.static.isl": "workload.isl",
    "spec.workload.static.osl": "workload.osl",
    "spec.workload.static.concurrency": "workload.concurrency",
    "spec.workload.static.requestRate": "workload.request_rate",
    "spec.workload.static.saturated": "workload.saturated",
    "spec.workload.static.kvLoadRatio": "workload.kv_load_ratios",
    "spec.workload.static.images": "workload.images",
    "spec.workload.static": "workload",
    "spec.objective.metrics": "goal.metrics",
    "spec.objective.metric": "goal.metrics",
    "spec.objective.gpuHourCost": "goal.gpu_cost_per_hour",
    "spec.objective.sla": "goal.sla",
    "spec.objective": "goal",
    "spec.runtime.image": "runtime.image",
    "spec.runtime.versionOverride": "runtime.version_override",
    "spec.search.router": "adapters.router",
    "spec.search.planner": "adapters.planner",
    "spec.recommendation.maxCandidates": "sweep.reserve",
    **{
        f"spec.{field}": key
        for key, field in OWNER.items()
        if " " not in field and field not in {"workload", "objective", "runtime.image", "recommendation.maxCandidates"}
    },
}
"""The key of the configuration that becomes a field of the request."""


def read_config(document: Mapping[str, Any]) -> SmartSearchConfig:
    """Read a configuration from plain values.

    Raises:
        InvalidRequest: everything that is wrong, by the configuration's own keys.
    """
    check_keys(SmartSearchConfig, document)
    try:
        config = SmartSearchConfig.model_validate(document)
    except ValidationError as error:
        raise InvalidRequest(problems(error.errors(include_url=False))) from error
    contradicting = contradiction(config.search_space)
    found = [
        *([] if contradicting is None else [contradicting]),
        *_load_problems(config),
        *_data_problems(config),
        *_goal_problems(config),
    ]
    if found:
        raise InvalidRequest(found)
    return config


def request_of_config(config: SmartSearchConfig, *, local_digest: str | None = None) -> DynamoGraphDeploymentRequest:
    """The request that asks the same.

    Args:
        config: what `read_config` accepts.
        local_digest: hash of the model's files where ``model_config_path`` names them.

    Raises:
        InvalidRequest: a rule of requests is broken; fields are named by the configuration's keys.
    """
    spec = {
        "modelRef": {"name": config.search_space.model_name, **_model_config(local_digest)},
        "backends": list(config.search_space.backend),
        "runtime": _runtime(config),
        "hardware": {"gpu": _gpu(config)},
        "workload": {"static": _load(config), "maxSequenceLength": config.search_space.context_length},
        "objective": _objective(config),
        "search": {
            "fidelity": config.sweep.fidelity,
            "topologies": list(config.search_space.deployment_mode),
            "encoder": config.search_space.encoder.capitalize(),
            "router": [wire(router) for router in config.adapters.router],
            "planner": None if config.adapters.planner is None else wire(config.adapters.planner),
            "budget": _budget(config),
            "parameters": _parameters(config),
        },
        "recommendation": {"maxCandidates": config.sweep.reserve // RESERVE_FACTOR},
    }
    document = {
        "apiVersion": "sweeper.dgdr.dev/v1beta2",
        "kind": "DynamoGraphDeploymentRequest",
        "metadata": {"name": NAME},
        "spec": _without_nulls(spec),
    }
    try:
        return request_of(document)
    except InvalidRequest as error:
        raise InvalidRequest([in_keys(problem) for problem in error.problems]) from error


def in_keys(problem: Problem) -> Problem:
    """A problem of the request, by the key of the configuration that makes the field."""
    return Problem(key_of(problem.field), problem.message, problem.value)


def key_of(field: str) -> str:
    """The key of the configuration that makes a field of the request; the field itself where none does."""
    for start in sorted(KEY_OF_FIELD, key=len, reverse=True):
        if field == start or field.startswith((f"{start}.", f"{start}[")):
            return KEY_OF_FIELD[start] + field[len(start) :]
    return field.removeprefix("spec.search.parameters.")


def bound_by_data_alone(config: SmartSearchConfig) -> bool:
    """Whether no Dynamo runtime is named or known for these engines, so that nothing can be rendered."""
    return config.runtime is None and _carrying_runtime(config) is None


def _load_problems(config: SmartSearchConfig) -> list[Problem]:
    load = config.workload
    if load.visual_tokens:
        message = "follows from workload.images and the model; leave it out"
        return [Problem("workload.visual_tokens", message, load.visual_tokens)]
    given = [name for name in LOADS if getattr(load, name) not in (None, False, ())]
    if len(given) != 1:
        found = " and ".join(given) or "none"
        return [Problem("workload", f"give exactly one of {', '.join(LOADS)}; found {found}")]
    ratios = load.kv_load_ratios
    if len(ratios) > 1 and not _is_range(ratios):
        message = "takes one ratio, or a range of five in equal factors, e.g. [0.25, 0.354, 0.5, 0.707, 1.0]"
        return [Problem("workload.kv_load_ratios", message, list(ratios))]
    return []


def _is_range(ratios: tuple[float, ...]) -> bool:
    if len(ratios) != RATIO_STEPS + 1 or ratios[0] >= ratios[-1]:
        return False
    wanted = [ratios[0] * (ratios[-1] / ratios[0]) ** (step / RATIO_STEPS) for step in range(RATIO_STEPS + 1)]
    return all(abs(ratio - want) <= TIE * want for ratio, want in zip(ratios, wanted, strict=True))


def _data_problems(config: SmartSearchConfig) -> list[Problem]:
    """Data versions that a GPU type does not have, and versions of backends that are not searched."""
    space = config.search_space
    skus = dict.fromkeys(
        space.sku_of(kind)
        for mode in space.deployment_mode
        for encoder in space.encoders
        for kind in role_kinds(mode, encoder)
    )
    found = [
        Problem(
            f"search_space.backend_version.{backend}",
            f"is {version}, which {sku} has no performance data of; it has {_listed(backend, sku)}",
            version,
        )
        for backend, version in space.backend_version.items()
        if backend in space.backend
        for sku in skus
        if version not in data_versions(backend, sku)
    ]
    unused = [backend for backend in space.backend_version if backend not in space.backend]
    if unused:
        message = f"names {', '.join(unused)}, which is not among backend"
        found.append(Problem("search_space.backend_version", message, unused))
    return found


def _listed(backend: Backend, sku: str) -> str:
    return " and ".join(data_versions(backend, sku)) or f"none for {backend}"


def _goal_problems(config: SmartSearchConfig) -> list[Problem]:
    goal, reserve = config.goal, config.sweep.reserve
    found = []
    if goal.pareto != (len(goal.metrics) > 1):
        wanted = "pareto: true takes two to four metrics, pareto: false one"
        found.append(Problem("goal.metrics", f"has {len(goal.metrics)}; {wanted}", list(goal.metrics)))
    if reserve % RESERVE_FACTOR:
        message = f"must be {RESERVE_FACTOR} times the candidates that are published, found {reserve}"
        found.append(Problem("sweep.reserve", message, reserve))
    return found


def _model_config(local_digest: str | None) -> dict[str, Any]:
    return {} if local_digest is None else {"config": {"configMap": {"name": config_map_name(local_digest)}}}


def config_map_name(local_digest: str) -> str:
    """How the run of a native search names the files of its model."""
    return f"model-{local_digest[:16]}"


def _runtime(config: SmartSearchConfig) -> dict[str, Any]:
    space = config.search_space
    pins = {"performanceDataVersion": {backend: space.backend_version[backend] for backend in space.backend}}
    if config.runtime is not None:
        return {"image": config.runtime.image, "versionOverride": config.runtime.version_override} | pins
    image = f"{REGISTRY}/{IMAGE_NAMES[space.backend[0]]}"
    runtime = _carrying_runtime(config)
    return {"image": image if runtime is None else f"{image}:{runtime}"} | pins


def _carrying_runtime(config: SmartSearchConfig) -> str | None:
    """The newest Dynamo runtime that carries exactly the engines that were measured, all with a template."""
    space = config.search_space
    wanted = {backend: space.backend_version[backend] for backend in space.backend}
    if any(version not in template_engines(backend) for backend, version in wanted.items()):
        return None
    return next(
        (
            runtime
            for runtime in table().runtimes
            if all(engine_version(runtime, backend) == version for backend, version in wanted.items())
        ),
        None,
    )


def _gpu(config: SmartSearchConfig) -> dict[str, Any]:
    space = config.search_space
    return {
        "sku": space.hardware_sku,
        "prefillSku": space.prefill_hardware_sku,
        "decodeSku": space.decode_hardware_sku,
        "encoderSku": space.encode.hardware_sku,
        "budget": space.gpu_budget,
        "minBudget": None if space.min_gpu_budget == 1 else space.min_gpu_budget,
        "budgetBySku": dict(space.gpu_budget_by_sku) or None,
        "perNode": space.gpus_per_node,
    }


def _load(config: SmartSearchConfig) -> dict[str, Any]:
    load = config.workload
    ratios = load.kv_load_ratios
    return {
        "isl": load.isl,
        "osl": load.osl,
        "concurrency": load.concurrency,
        "requestRate": load.request_rate,
        "saturated": load.saturated or None,
        "kvLoadRatio": ratios[0] if len(ratios) == 1 else None,
        "kvLoadRatioRange": {"min": ratios[0], "max": ratios[-1]} if len(ratios) > 1 else None,
        "images": None if load.images is None else load.images.model_dump(),
    }


def _objective(config: SmartSearchConfig) -> dict[str, Any]:
    goal = config.goal
    bounds = {"ttftMs": goal.sla.ttft_ms, "itlMs": goal.sla.itl_ms, "e2eMs": goal.sla.e2e_ms}
    has_sla = any(bound is not None for bound in bounds.values())
    metrics = {"metrics": list(goal.metrics)} if goal.pareto else {"metric": goal.metrics[0]}
    return {
        "mode": "pareto" if goal.pareto else "optimize",
        **metrics,
        "gpuHourCost": dict(goal.gpu_cost_per_hour) or None,
        "sla": {**bounds, "strict": goal.sla.strict} if has_sla else None,
    }


def _budget(config: SmartSearchConfig) -> dict[str, Any]:
    sweep = config.sweep
    return {
        "maxRounds": sweep.max_rounds,
        "candidatesPerRound": sweep.candidates_per_round,
        "parallelEvaluations": sweep.parallel_evals,
        "maxEvaluationDuration": _duration(sweep.max_eval_seconds),
        "maxDuration": None if sweep.max_seconds is None else _duration(sweep.max_seconds),
    }


def _duration(seconds: float) -> str:
    """Seconds as the contract writes them, to the nanosecond."""
    whole, part = divmod(round(seconds * NANOSECONDS), NANOSECONDS)
    return f"{whole}s" if part == 0 else f"{whole}.{part:09d}".rstrip("0") + "s"


def _parameters(config: SmartSearchConfig) -> dict[str, Any]:
    """Every key that was given and that no field owns."""
    given = config.model_dump(mode="json", exclude_unset=True)
    encode = given.get("search_space", {}).pop("encode", {})
    encode.pop("hardware_sku", None)
    if encode and config.search_space.encoder != "inline":
        given["search_space"]["encode"] = encode
    kept = {
        part: {
            key: value
            for key, value in given.get(part, {}).items()
            if f"{part}.{key}" not in OWNER and value is not None
        }
        for part in PARTS_OF_PARAMETERS
    }
    return {part: keys for part, keys in kept.items() if keys}


def _without_nulls(value: dict[str, Any]) -> dict[str, Any]:
    return {
        key: _without_nulls(each) if isinstance(each, dict) else each for key, each in value.items() if each is not None
    }
