"""Whether a tuple of model, SKUs, backend, version and topology can be evaluated, found by estimating each role once.

Source: engine.md section 2. A shape whose own data is missing is passed over; only a tuple without any evaluable
shape is unsupported, with the reason of its smallest shape.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from dgdr_api.candidate import Shares
from dgdr_api.events import TupleCoverage
from dgdr_api.expressible import model_revision_problem
from dgdr_api.model_ref import ModelRef
from dgdr_api.replay_spec import role_kinds
from dgdr_api.shape import Shape
from dgdr_api.terms import Backend, EncoderPlacement, Topology
from dgdr_api.versions import BackendChains

from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.errors import Reason, Unsupported
from dgdr_job.catalog.provenance import SourceShares
from dgdr_job.catalog.quantization import Quantization
from dgdr_job.search.branches import Branch, RolePlan, plan_branch
from dgdr_job.search.config import SmartSearchConfig, Workload
from dgdr_job.search.inline_encoder import InlineEncoder
from dgdr_job.timing.encoder import encode_worker_rows
from dgdr_job.timing.plausibility import EncoderPlausibility, Plausibility
from dgdr_job.timing.rows import decode_rows, prefill_rows


@dataclass(frozen=True)
class Preflight:
    """The verdict on one tuple, and its branch where it is supported."""

    coverage: TupleCoverage
    branch: Branch | None


@dataclass(frozen=True)
class Probe:
    """One real estimate of a role on one shape: a prefill pass and a decode step, and a pass of its encoder."""

    shape: Shape
    shares: tuple[SourceShares, ...]
    plausibility: Plausibility | None = None
    """Judgement of a decode step."""
    encoder: EncoderPlausibility | None = None
    """Judgement of a pass of the vision encoder, where the role has one."""


def preflight(
    catalog: Catalog,
    config: SmartSearchConfig,
    backend: Backend,
    topology: Topology,
    chains: BackendChains,
    *,
    encoder: EncoderPlacement = "Inline",
    model_ref: ModelRef | None = None,
) -> Preflight:
    """Judge one tuple; nothing is raised for what is merely unsupported.

    Args:
        catalog: source of facts and estimates.
        config: the search.
        backend: engine of the tuple.
        topology: topology of the tuple.
        chains: version chain of the backend on each GPU type.
        encoder: where images are encoded.
        model_ref: the model as a request names it; None: the model alone is judged.
    """
    try:
        _check_revision(backend, model_ref)
        branch = plan_branch(catalog, config, backend, topology, chains, encoder=encoder)
        _check_code(branch, config.search_space.model_name, model_ref)
        probes = [probe_role(catalog, role, config.workload, _room(branch, role)) for role in branch.roles]
    except Unsupported as error:
        # A time that is no number is no data: the conditions of a run know no more.
        reason = Reason.MISSING_OPERATOR_DATA if error.reason is Reason.INVALID_DATA else error.reason
        return Preflight(refused(config, backend, topology, reason.value, error.message, encoder=encoder), None)
    flags = [flag for role, found in zip(branch.roles, probes, strict=True) for flag in _implausible(role, found)]
    if branch.model.needs_remote_code:
        flags.append("remote code: config.json names code of its own (auto_map), which a request must trust")
    for identity in dict.fromkeys(role.identity for role in branch.roles if role.kind != "encode"):
        formats = catalog.quantization(identity)
        flags += [quantization_note(formats, field, declared) for field, declared in formats.inferred]
    spans = any(
        found.shape.gpus > config.search_space.gpus_per_node_of(role.kind)
        for role, found in zip(branch.roles, probes, strict=True)
    )
    coverage = TupleCoverage(
        backend=backend,
        topology=topology,
        encoder=encoder,
        skus={role.kind: role.identity.sku for role in branch.roles},
        supported=True,
        reason="Supported",
        message="; ".join(dict.fromkeys(flags)),
        data_version=chains.performance_data,
        shares=mean_shares([share for found in probes for share in found.shares]),
        not_modelled=("multinode_interconnect",) if spans else (),
        flags=tuple(dict.fromkeys(flags)),
    )
    return Preflight(coverage, branch)


def _implausible(role: RolePlan, found: Probe) -> Iterator[str]:
    step, encoder = found.plausibility, found.encoder
    if step is not None and step.is_implausible:
        times = f"{step.decode_step_ms:.1f} ms, roofline {step.roofline_ms:.1f} ms"
        yield f"implausible data: {role.kind} decode step {times}"
    if encoder is not None and encoder.is_implausible:
        times = f"{encoder.pass_ms:.1f} ms, roofline {encoder.roofline_ms:.1f} ms"
        yield f"implausible data: {role.kind} encoder pass {times}"


def _check_revision(backend: Backend, model_ref: ModelRef | None) -> None:
    """Refuse a revision that the backend cannot be given.

    Raises:
        Unsupported: UnsupportedFeature.
    """
    if model_ref is None:
        return
    problem = model_revision_problem(backend, revision=model_ref.revision, local_snapshot=model_ref.is_local_snapshot)
    if problem is not None:
        raise Unsupported(Reason.UNSUPPORTED_FEATURE, f"modelRef.revision: {problem}")


def refused(
    config: SmartSearchConfig,
    backend: Backend,
    topology: Topology,
    reason: str,
    message: str,
    *,
    encoder: EncoderPlacement = "Inline",
) -> TupleCoverage:
    """The coverage of a tuple that is not supported."""
    return TupleCoverage(
        backend=backend,
        topology=topology,
        encoder=encoder,
        skus={kind: config.search_space.sku_of(kind) for kind in role_kinds(topology, encoder)},
        supported=False,
        reason=reason,
        message=message[:1024],
        data_version=config.search_space.backend_version.get(backend),
    )


def _check_code(branch: Branch, model_name: str, model_ref: ModelRef | None) -> None:
    """Refuse a configuration that names code of its own unless the request trusts it; alone it is only noted."""
    if branch.model.needs_remote_code and model_ref is not None and model_ref.remote_code == "Never":
        raise Unsupported(
            Reason.UNSUPPORTED_FEATURE,
            f"modelRef.remoteCode: Never, but the config.json of {model_name} names code of its own (auto_map); "
            "trust it with TrustCacheAndRevision or AlwaysTrust",
        )


def _room(branch: Branch, role: RolePlan) -> int:
    """GPUs that one worker of a role may take: the budget without the least worker of each other role."""
    others = sum(min(shape.gpus for shape in other.gated.kept) for other in branch.roles if other is not role)
    return branch.limits.gpu_budget - others


def probe_role(catalog: Catalog, role: RolePlan, workload: Workload, most_gpus: int) -> Probe:
    """Estimate the first shape of a role that has data and takes at most so many GPUs.

    Raises:
        Unsupported: no shape has; the reason is that of the smallest.
    """
    of_shape = _probe_encode if role.kind == "encode" else _probe_language
    first: Unsupported | None = None
    for shape in role.gated.kept:
        if shape.gpus > most_gpus:
            continue
        try:
            return of_shape(catalog, role, shape, workload)
        except Unsupported as error:
            first = first or error
    if first is None:
        raise ValueError(f"{role.kind} has no shape to probe")
    raise first


def _probe_language(catalog: Catalog, role: RolePlan, shape: Shape, workload: Workload) -> Probe:
    """A prefill pass, a decode step, and a pass of the encoder inside the worker."""
    prefill = prefill_rows(catalog, role.identity, shape, isl=workload.prompt_tokens, batches=(1,))
    decode = decode_rows(
        catalog, role.identity, shape, isl=workload.prompt_tokens, osl=max(workload.osl, 2), batches=(1,)
    )
    encoder = InlineEncoder(catalog, role.identity, shape, role.images, (1,))
    return Probe(shape, (prefill.shares, decode.shares), decode.plausibility, encoder.plausibility)


def _probe_encode(catalog: Catalog, role: RolePlan, shape: Shape, workload: Workload) -> Probe:
    """A pass of an encode worker over the images of one request."""
    del workload
    if role.images is None:
        raise ValueError("an encode worker needs images")
    found = encode_worker_rows(catalog, role.identity, shape.tp, images=role.images, batches=(1,)).passes
    return Probe(shape, (found.shares,), encoder=found.plausibility)


def quantization_note(formats: Quantization, field: str, declared: str) -> str:
    """What a person reads where the data layer resolves a number format to another than the checkpoint's."""
    return f"quantization: {field} is {getattr(formats, field)}, the checkpoint declares {declared}"


def mean_shares(shares: list[SourceShares], weights: list[float] | None = None) -> Shares:
    """Weighted mean of shares; they sum to 1 again."""
    weights = weights or [1.0] * len(shares)
    total = sum(weights)
    names = ("silicon", "empirical", "estimated", "borrowed")
    means = {
        name: sum(getattr(share, name) * weight for share, weight in zip(shares, weights, strict=True)) / total
        for name in names
    }
    return Shares(**{name: min(max(round(value, 6), 0.0), 1.0) for name, value in means.items()})
