"""Whether a tuple of model, SKUs, backend, version and topology can be evaluated, found by estimating each role once.

Source: engine.md section 2. A shape whose own data is missing is passed over; only a tuple without any evaluable
shape is unsupported, with the reason of its smallest shape.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from dgdr_api.candidate import Shares
from dgdr_api.events import TupleCoverage
from dgdr_api.replay_spec import role_kinds
from dgdr_api.shape import Shape
from dgdr_api.terms import Backend, EncoderPlacement, Topology
from dgdr_api.versions import BackendChains

from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.errors import Unsupported
from dgdr_job.catalog.provenance import SourceShares
from dgdr_job.search.branches import Branch, RolePlan, plan_branch
from dgdr_job.search.config import SmartSearchConfig, Workload
from dgdr_job.search.features import backend_not_built
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
    rendered: bool = True,
) -> Preflight:
    """Judge one tuple; nothing is raised for what is merely unsupported.

    Args:
        catalog: source of facts and estimates.
        config: the search.
        backend: engine of the tuple.
        topology: topology of the tuple.
        chains: version chain of the backend on each GPU type.
        encoder: where images are encoded.
        rendered: whether a deployment must come of it: refuses backends without templates.
    """
    unbuilt = backend_not_built(backend, topology) if rendered else None
    if unbuilt:
        why = refused(config, backend, topology, "UnsupportedFeature", unbuilt.message, encoder=encoder)
        return Preflight(why, None)
    try:
        branch = plan_branch(catalog, config, backend, topology, chains, encoder=encoder)
        probes = [
            probe_encode(catalog, role) if role.kind == "encode" else probe_role(catalog, role, config.workload)
            for role in branch.roles
        ]
    except Unsupported as error:
        why = refused(config, backend, topology, error.reason.value, error.message, encoder=encoder)
        return Preflight(why, None)
    notes = [note for role, probe in zip(branch.roles, probes, strict=True) for note in _implausible(role, probe)]
    coverage = TupleCoverage(
        backend=backend,
        topology=topology,
        encoder=encoder,
        skus={role.kind: role.identity.sku for role in branch.roles},
        supported=True,
        reason="Supported",
        message="; ".join(notes),
        data_version=chains.performance_data,
        shares=mean_shares([share for probe in probes for share in probe.shares]),
    )
    return Preflight(coverage, branch)


def _implausible(role: RolePlan, probe: Probe) -> Iterator[str]:
    step, encoder = probe.plausibility, probe.encoder
    if step is not None and step.is_implausible:
        times = f"{step.decode_step_ms:.1f} ms, roofline {step.roofline_ms:.1f} ms"
        yield f"implausible data: {role.kind} decode step {times}"
    if encoder is not None and encoder.is_implausible:
        times = f"{encoder.pass_ms:.1f} ms, roofline {encoder.roofline_ms:.1f} ms"
        yield f"implausible data: {role.kind} encoder pass {times}"


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


def probe_role(catalog: Catalog, role: RolePlan, workload: Workload) -> Probe:
    """Estimate the first shape of a role that has data.

    Raises:
        Unsupported: no shape has; the reason is that of the smallest.
    """
    first: Unsupported | None = None
    for shape in role.gated.kept:
        try:
            prefill = prefill_rows(catalog, role.identity, shape, isl=workload.prompt_tokens, batches=(1,))
            decode = decode_rows(
                catalog, role.identity, shape, isl=workload.prompt_tokens, osl=max(workload.osl, 2), batches=(1,)
            )
            encoder = InlineEncoder(catalog, role.identity, shape, role.images, (1,))
        except Unsupported as error:
            first = first or error
        else:
            return Probe(shape, (prefill.shares, decode.shares), decode.plausibility, encoder.plausibility)
    if first is None:
        raise ValueError(f"{role.kind} has no shape to probe")
    raise first


def probe_encode(catalog: Catalog, role: RolePlan) -> Probe:
    """Estimate the images of one request on the first shape of an encode worker that has data.

    Raises:
        Unsupported: no shape has; the reason is that of the smallest.
    """
    first: Unsupported | None = None
    for shape in role.gated.kept:
        if role.images is None:
            break
        try:
            found = encode_worker_rows(catalog, role.identity, shape.tp, images=role.images, batches=(1,)).passes
        except Unsupported as error:
            first = first or error
        else:
            return Probe(shape, (found.shares,), encoder=found.plausibility)
    if first is None:
        raise ValueError("encode workers have no shape to probe")
    raise first


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
