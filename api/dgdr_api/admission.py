"""What CEL cannot see: a chain of small policies over one request. What they say becomes ``Accepted=False``.

Each policy looks at one thing and yields rejections, or nothing. The first policy that speaks decides the reason; a
policy may rely on all before it having been silent.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from dgdr_api import reasons
from dgdr_api.base import wire
from dgdr_api.canonical import canonical_json
from dgdr_api.defaults import run_spec
from dgdr_api.errors import NameTooLong, Problem, UnknownSku, VersionChainBroken
from dgdr_api.free_form import dgd_problems, job_problems, size_problem
from dgdr_api.identity import safe_dgd_name
from dgdr_api.images import IMAGE_NAMES, can_swap, component_of, image_for, parse_tag, tag_of
from dgdr_api.reasons import Reason
from dgdr_api.request import DynamoGraphDeploymentRequest, SearchSpec
from dgdr_api.run import RunSpec
from dgdr_api.skus import resolve_sku
from dgdr_api.versions import Chain, resolve_chains

_COMMIT = re.compile("[0-9a-f]{40}")
MAX_RUN_SPEC_BYTES = 200 * 1024
"""The run's spec reaches the search Job as an annotation; all annotations of an object share 256 KiB."""


@dataclass(frozen=True)
class Rejection:
    """One reason why a request is not accepted."""

    reason: Reason
    field: str
    """Path in camelCase from spec on."""
    message: str

    def __str__(self) -> str:
        return f"{self.reason.name}: {self.field}: {self.message}"


@dataclass(frozen=True)
class Accepted:
    """The request may run."""

    spec: RunSpec
    """Its spec with every default explicit."""
    chains: tuple[Chain, ...]
    """The version chain of each backend on each GPU type that has its data."""


@dataclass(frozen=True)
class Rejected:
    """The request may not run."""

    rejections: tuple[Rejection, ...]
    """At least one, all of the same policy."""

    @property
    def reason(self) -> Reason:
        """Reason of the condition."""
        return self.rejections[0].reason

    @property
    def message(self) -> str:
        """Message of the condition: every field with what is wrong."""
        return "; ".join(f"{rejection.field}: {rejection.message}" for rejection in self.rejections)


def admit(
    request: DynamoGraphDeploymentRequest, *, sweeper_image: str | None = None, policies: "Policies | None" = None
) -> Accepted | Rejected:
    """Decide whether a valid request may run, and return its run's spec or what is in the way.

    Args:
        request: what the schema and its rules accept.
        sweeper_image: see `dgdr_api.defaults.run_spec`.
        policies: which ones are asked; all by default.
    """
    try:
        safe_dgd_name(request.metadata.name, "0" * 16, request.metadata.namespace)
    except NameTooLong as error:
        return Rejected((Rejection(reasons.INVALID_SPEC, "metadata.namespace", str(error)),))
    for policy in POLICIES if policies is None else policies:
        found = tuple(policy(request.spec))
        if found:
            return Rejected(found)
    spec = run_spec(request.spec, sweeper_image=sweeper_image)
    size = len(canonical_json(wire(spec)).encode())
    if size > MAX_RUN_SPEC_BYTES:
        too_large = f"has {size:,} bytes with its defaults; at most {MAX_RUN_SPEC_BYTES:,} reach the search Job"
        return Rejected((Rejection(reasons.INVALID_SPEC, "spec", too_large),))
    return Accepted(spec, tuple(_chains(spec)) if policies is not DATA_ALONE_POLICIES else ())


def _known_hardware(spec: SearchSpec) -> Iterator[Rejection]:
    gpu = spec.hardware.gpu
    named = {
        "sku": gpu.sku,
        "prefillSku": gpu.prefill_sku,
        "decodeSku": gpu.decode_sku,
        "encoderSku": gpu.encoder_sku,
    }
    asked = [(f"spec.hardware.gpu.{field}", name) for field, name in named.items() if name is not None]
    asked += [("spec.hardware.gpu.budgetBySku", name) for name in gpu.budget_by_sku]
    asked += [("spec.hardware.gpu.nodeSelector", name) for name in gpu.node_selector]
    asked += [("spec.objective.gpuHourCost", name) for name in spec.objective.gpu_hour_cost or ()]
    asked += [
        (f"spec.search.router[{index}].prefillLoadModel.sku", router.prefill_load_model.sku)
        for index, router in enumerate(spec.search.router)
        if router.prefill_load_model.sku is not None
    ]
    for field, name in asked:
        try:
            resolve_sku(name)
        except UnknownSku as error:
            yield Rejection(reasons.UNKNOWN_HARDWARE, field, str(error))


def _one_name_per_sku(spec: SearchSpec) -> Iterator[Rejection]:
    maps: Mapping[str, Mapping[str, object]] = {
        "spec.hardware.gpu.budgetBySku": spec.hardware.gpu.budget_by_sku,
        "spec.hardware.gpu.nodeSelector": spec.hardware.gpu.node_selector,
        "spec.objective.gpuHourCost": spec.objective.gpu_hour_cost or {},
    }
    for field, by_sku in maps.items():
        seen: dict[str, str] = {}
        for name in by_sku:
            sku = resolve_sku(name).name
            if sku in seen:
                yield Rejection(reasons.INVALID_SPEC, field, f"{seen[sku]} and {name} are both {sku}; give one")
            seen[sku] = name


def _nodes_are_found(spec: SearchSpec) -> Iterator[Rejection]:
    given = {resolve_sku(name).name for name, labels in spec.hardware.gpu.node_selector.items() if labels}
    for sku in _skus(spec):
        if resolve_sku(sku).node_labels is None and sku not in given:
            yield Rejection(
                reasons.INVALID_SPEC,
                "spec.hardware.gpu.nodeSelector",
                f"the node label of {sku} is not known; give one, e.g. "
                f"{{{sku}: {{nvidia.com/gpu.product: <what kubectl get nodes --show-labels says>}}}}",
            )


def _trusted_code_is_pinned(spec: SearchSpec) -> Iterator[Rejection]:
    """A Hugging Face cache names the snapshot folder, the one thing that pins code, by the commit."""
    ref = spec.model_ref
    if ref.remote_code != "TrustCacheAndRevision" or ref.cache is None or ref.cache.pvc.model_path:
        return
    if _COMMIT.fullmatch(ref.revision or "") is None:
        yield Rejection(
            reasons.INVALID_SPEC,
            "spec.modelRef.revision",
            f"is {ref.revision}, but remoteCode TrustCacheAndRevision trusts one snapshot of the cache: give its "
            "commit of 40 hex digits, or the folder in modelRef.cache.pvc.modelPath",
        )


def _priced(spec: SearchSpec) -> Iterator[Rejection]:
    if "throughputPerCost" not in spec.objective.named_metrics:
        return
    priced = {resolve_sku(name).name for name in spec.objective.gpu_hour_cost or ()}
    missing = [sku for sku in _skus(spec) if sku not in priced]
    if missing:
        message = f"throughputPerCost needs the price of every GPU type; {', '.join(missing)} has none"
        yield Rejection(reasons.INVALID_SPEC, "spec.objective.gpuHourCost", message)


def _runtime_is_known(spec: SearchSpec) -> Iterator[Rejection]:
    image = spec.runtime.image
    tag = tag_of(image)
    if spec.runtime.version_override is None and (tag is None or parse_tag(tag) is None):
        found = "no tag" if tag is None else f"tag {tag}, which is no MAJOR.MINOR.PATCH"
        yield Rejection(
            reasons.INVALID_SPEC,
            "spec.runtime.versionOverride",
            f"is required: image {image} has {found}; give the Dynamo version that it carries, e.g. 1.4.2",
        )
    wanted = {IMAGE_NAMES[backend] for backend in spec.backends}
    component = component_of(image)
    own_name = component not in IMAGE_NAMES.values()
    if not can_swap(image) and wanted != {component} and not (own_name and len(spec.backends) == 1):
        yield Rejection(
            reasons.INVALID_SPEC,
            "spec.runtime.image",
            f"{image} does not tell the image of {' and '.join(spec.backends)}: give the image of one of them by its "
            f"tag, ending in {', '.join(sorted(wanted))}, and the last component is swapped",
        )


def _sequences_fit(spec: SearchSpec) -> Iterator[Rejection]:
    load, bound = spec.workload.static, spec.workload.max_sequence_length
    if load is not None and bound is not None and load.isl + load.osl > bound:
        yield Rejection(
            reasons.INVALID_SPEC,
            "spec.workload.maxSequenceLength",
            f"is {bound}, but isl {load.isl} + osl {load.osl} = {load.isl + load.osl}; give at least that",
        )


def _caps_are_used(spec: SearchSpec) -> Iterator[Rejection]:
    used = _skus(spec)
    for name in spec.hardware.gpu.budget_by_sku:
        if resolve_sku(name).name not in used:
            yield Rejection(
                reasons.INVALID_SPEC,
                "spec.hardware.gpu.budgetBySku",
                f"caps {name}, which no role of this search uses: it has {', '.join(used)}",
            )


def _budgets_fit(spec: SearchSpec) -> Iterator[Rejection]:
    gpu = spec.hardware.gpu
    if gpu.min_budget is None or not gpu.budget_by_sku:
        return
    caps = {resolve_sku(name).name: cap for name, cap in gpu.budget_by_sku.items()}
    reach = sum(caps.get(sku, gpu.budget) for sku in _skus(spec))
    if reach < gpu.min_budget:
        message = f"is {gpu.min_budget}, but budgetBySku allows {reach} GPUs in all"
        yield Rejection(reasons.INVALID_SPEC, "spec.hardware.gpu.minBudget", message)


def _parameters_fit(spec: SearchSpec) -> Iterator[Rejection]:
    problem = size_problem("search.parameters", spec.search.parameters)
    if problem is not None:
        yield Rejection(reasons.INVALID_SPEC, f"spec.{problem.field}", problem.message)


def _overrides_are_allowed(spec: SearchSpec) -> Iterator[Rejection]:
    found: list[Problem] = []
    if spec.overrides.profiling_job is not None:
        found += job_problems(spec.overrides.profiling_job)
    if spec.overrides.dgd is not None:
        found += dgd_problems(spec.overrides.dgd, spec)
    for problem in found:
        yield Rejection(reasons.INVALID_OVERRIDE, f"spec.{problem.field}", problem.message)


def _versions_are_bound(spec: SearchSpec) -> Iterator[Rejection]:
    unused = sorted(set(spec.runtime.performance_data_version or ()) - set(spec.backends))
    if unused:
        message = f"pins {', '.join(unused)}, which is not among the backends"
        yield Rejection(reasons.INVALID_SPEC, "spec.runtime.performanceDataVersion", message)
        return
    try:
        tuple(_chains(spec))
    except VersionChainBroken as error:
        yield Rejection(reasons.VERSION_CHAIN_BROKEN, f"spec.{error.field}", str(error))


def _chains(spec: SearchSpec) -> Iterator[Chain]:
    runtime = spec.runtime
    for backend in spec.backends:
        image = image_for(runtime.image, backend)
        chains = resolve_chains(image, runtime.version_override, runtime.performance_data_version, backend, _skus(spec))
        yield from chains.by_sku.values()


def _skus(spec: SearchSpec) -> list[str]:
    """Canonical names of the GPU types in use, each once."""
    return list(dict.fromkeys(resolve_sku(spec.hardware.gpu.sku_of(kind)).name for kind in spec.role_kinds))


Policies = tuple[Callable[[SearchSpec], Iterator[Rejection]], ...]
POLICIES: Policies = (
    _known_hardware,
    _one_name_per_sku,
    _nodes_are_found,
    _trusted_code_is_pinned,
    _priced,
    _runtime_is_known,
    _sequences_fit,
    _caps_are_used,
    _budgets_fit,
    _parameters_fit,
    _overrides_are_allowed,
    _versions_are_bound,
)
"""In the order in which they are asked."""
NATIVE_POLICIES: Policies = tuple(policy for policy in POLICIES if policy is not _nodes_are_found)
"""Those of a native configuration, which says nothing of nodes: a GPU type without a known label is not rendered."""
DATA_ALONE_POLICIES: Policies = tuple(
    policy for policy in NATIVE_POLICIES if policy not in {_runtime_is_known, _versions_are_bound}
)
"""Those of a native configuration without a runtime image: its data binds it, and nothing is rendered."""
