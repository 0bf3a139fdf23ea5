"""Defaulting: from what a user wrote to a run's spec in which every default stands explicitly.

What has a fixed default has it in the model already; here come those that follow from other fields or from the
catalog. Three stay absent, because only the engine can know them: ``workload.maxSequenceLength``, ``requests`` (and
the warm-up that follows from it) under kvLoadRatio and kvLoadRatioRange, and ``search.budget.parallelEvaluations``.
``hardware.gpu.perNode`` also stays absent when the roles' GPU types have nodes of different sizes: no number is true.
Names of GPU types become canonical and sets take the order of their vocabulary, so that equal requests have one hash.
"""

import math
from collections.abc import Mapping
from typing import Any, TypeVar

from dgdr_api.base import wire
from dgdr_api.bounds import INT32_MAX
from dgdr_api.hardware import Gpu
from dgdr_api.objective import DEFAULT_PARETO_METRICS, Objective
from dgdr_api.request import Runtime, SearchSpec
from dgdr_api.run import RunSpec
from dgdr_api.skus import catalog, resolve_sku
from dgdr_api.terms import BACKENDS, METRICS, TOPOLOGIES, Backend
from dgdr_api.versions import engine_version, runtime_version
from dgdr_api.workload import StaticWorkload

LEAST_REQUESTS = 100
REQUESTS_PER_CONCURRENCY = 10
RATE_SECONDS = 600
"""A rate is held for ten minutes."""

T = TypeVar("T")


def run_spec(spec: SearchSpec, *, sweeper_image: str | None = None) -> RunSpec:
    """Return the spec of a run: ``spec`` with every default explicit. Pure, and idempotent.

    Args:
        spec: an accepted request's spec (see `dgdr_api.admission`), or a run's.
        sweeper_image: the operator's own image; without one (on a laptop) an absent ``image`` stays absent.

    Raises:
        UnknownSku: a GPU type is not in the catalog; an admitted request has none.
    """
    value = wire(spec)
    value.pop("rerun", None)
    value.pop("suspend", None)
    value["backends"] = _ordered(spec.backends, BACKENDS)
    if spec.image is None and sweeper_image is not None:
        value["image"] = sweeper_image
    value["runtime"] |= _runtime(spec.runtime, spec.backends)
    value["hardware"]["gpu"] |= _gpu(spec)
    if spec.workload.static is not None:
        value["workload"]["static"] |= _requests(spec.workload.static)
    value["objective"] |= _objective(spec.objective)
    value["search"]["topologies"] = _ordered(spec.search.topologies, TOPOLOGIES)
    return RunSpec.model_validate(value)


def default_requests(load: StaticWorkload) -> int | None:
    """Requests of a generated workload that names none; None when only the engine can know.

    10 times the concurrency, or 10 minutes at a rate, at least 100. ``saturated`` has neither and takes the least
    number: a static estimate counts no requests.
    """
    if load.concurrency is not None:
        wanted = REQUESTS_PER_CONCURRENCY * load.concurrency
    elif load.request_rate is not None:
        wanted = math.ceil(RATE_SECONDS * load.request_rate)
    elif load.saturated is not None:
        wanted = LEAST_REQUESTS
    else:
        return None
    return min(max(wanted, LEAST_REQUESTS), INT32_MAX)


def default_warmup(load: StaticWorkload, requests: int) -> int | None:
    """Warm-up requests of a workload that names none; None when only the engine can know.

    The lesser of concurrency and a tenth of the requests; 0 for an open loop and for ``saturated``.
    """
    if load.concurrency is not None:
        return min(load.concurrency, requests // 10)
    return 0 if load.request_rate is not None or load.saturated is not None else None


def _requests(load: StaticWorkload) -> dict[str, Any]:
    requests = load.requests or default_requests(load)
    found: dict[str, Any] = {}
    if requests is not None:
        warmup = default_warmup(load, requests) if load.warmup_requests is None else load.warmup_requests
        found = {"requests": requests} | ({} if warmup is None else {"warmupRequests": min(warmup, requests - 1)})
    return found


def _runtime(runtime: Runtime, backends: tuple[Backend, ...]) -> dict[str, Any]:
    version = runtime_version(runtime.image, runtime.version_override)
    if version is None:
        return {}
    pins = runtime.performance_data_version or {}
    data = {
        backend: pins.get(backend) or engine_version(version, backend) for backend in BACKENDS if backend in backends
    }
    bound = {backend: found for backend, found in data.items() if found is not None}
    return {"versionOverride": runtime.version_override or version.partition("-")[0]} | (
        {"performanceDataVersion": bound} if bound else {}
    )


def _gpu(spec: SearchSpec) -> dict[str, Any]:
    gpu, kinds = spec.hardware.gpu, spec.role_kinds
    skus = {kind: resolve_sku(gpu.sku_of(kind)) for kind in kinds}
    value: dict[str, Any] = {"sku": resolve_sku(gpu.sku).name}
    fields = {"prefill": "prefillSku", "decode": "decodeSku", "encode": "encoderSku"}
    value |= {fields[kind]: sku.name for kind, sku in skus.items() if kind in fields}
    value["budgetBySku"] = _canonical_keys(gpu.budget_by_sku)
    sizes = {sku.gpus_per_node for sku in skus.values()}
    if gpu.per_node is None and len(sizes) == 1:
        value["perNode"] = sizes.pop()
    value["nodeSelector"] = node_selectors(gpu, [sku.name for sku in skus.values()])
    return value


def node_selectors(gpu: Gpu, skus: list[str]) -> dict[str, dict[str, str]]:
    """Node labels of the GPU types in use: those of the request, else those of the catalog, else none."""
    given = _canonical_keys(gpu.node_selector)
    known = {name: dict(catalog()[name].node_labels or {}) for name in skus}
    return {name: labels for name, labels in (known | given).items() if labels}


def _objective(objective: Objective) -> dict[str, Any]:
    value: dict[str, Any] = {}
    if objective.mode == "pareto":
        value["metrics"] = _ordered(objective.metrics or DEFAULT_PARETO_METRICS, METRICS)
    if objective.gpu_hour_cost is not None:
        value["gpuHourCost"] = _canonical_keys(objective.gpu_hour_cost)
    return value


def _canonical_keys(by_sku: Mapping[str, T]) -> dict[str, T]:
    return {resolve_sku(name).name: value for name, value in by_sku.items()}


def _ordered(values: tuple[T, ...], vocabulary: tuple[T, ...]) -> list[T]:
    return [value for value in vocabulary if value in values]
