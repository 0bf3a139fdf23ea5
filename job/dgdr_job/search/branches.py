"""A branch: a backend, a topology and a place of the encoder, with identity, engine limits and shapes of each role."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from dgdr_api.events import branch_name
from dgdr_api.expressible import topology_problem, unrendered_shape
from dgdr_api.replay_spec import role_kinds
from dgdr_api.shape import Shape
from dgdr_api.skus import resolve_sku
from dgdr_api.terms import Backend, EncoderPlacement, RoleKind, Topology
from dgdr_api.versions import BackendChains, Chain

from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.errors import Reason, Unsupported
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.catalog.images import Images
from dgdr_job.catalog.kv import KvEstimate
from dgdr_job.catalog.model import ModelFacts
from dgdr_job.search.config import SearchSpace, SmartSearchConfig
from dgdr_job.search.inline_encoder import InlineEncoder
from dgdr_job.space.counts import agg_pairs, pool_pairs
from dgdr_job.space.encode_shapes import encode_shapes, expressible_batches
from dgdr_job.space.gate import Gated, kv_gate
from dgdr_job.space.knobs import RoleKnobs
from dgdr_job.space.limits import POOL_OF_ROLE, Limits, SharedCap
from dgdr_job.space.shapes import RoleShapes, role_shapes

ENCODING_ROLES: frozenset[RoleKind] = frozenset({"prefill", "agg"})
"""Roles that encode the images where no workers of their own do."""
DEFAULT_BLOCK_SIZE: dict[Backend, int] = {"vllm": 64, "sglang": 1, "trtllm": 32}


@dataclass(frozen=True)
class RolePlan:
    """What may be deployed as one role."""

    kind: RoleKind
    identity: PerfIdentity
    chain: Chain
    knobs: RoleKnobs
    shapes: RoleShapes
    gated: Gated
    gpus_per_node: int | None = None
    """GPUs of one node; None: those of the catalog."""
    images: Images | None = None
    """Images of a request that the role encodes."""

    def unrendered(self, shape: Shape) -> str | None:
        """Why no template renders a worker of this role in this shape yet, or None."""
        per_node = self.gpus_per_node or resolve_sku(self.identity.sku).gpus_per_node
        return unrendered_shape(shape, sku=self.identity.sku, gpus_per_node=per_node)


@dataclass(frozen=True)
class Branch:
    """What may be deployed on one backend in one topology, with the encoder in one place."""

    backend: Backend
    topology: Topology
    model: ModelFacts
    roles: tuple[RolePlan, ...]
    limits: Limits
    max_sequence_tokens: int
    encoder: EncoderPlacement = "Inline"

    @property
    def name(self) -> str:
        """``<backend>/<topology>``, with ``+epd`` for encode workers."""
        return branch_name(self.backend, self.topology, self.encoder)

    @property
    def pairs(self) -> int:
        """Deployments within the budget, knobs aside."""
        return self.pairs_of(*(role.gated.kept for role in self.roles))

    @property
    def ungated_pairs(self) -> int:
        """The same before the KV gate."""
        return self.pairs_of(*(role.shapes.legal for role in self.roles))

    @property
    def pool(self) -> int:
        """Deployments with every combination of the listed engine limits."""
        pool = self.pairs
        for role in self.roles:
            pool *= role.knobs.combinations
        return pool

    def pairs_of(self, *shapes: tuple[Shape, ...]) -> int:
        """Deployments of these shapes of each role within the limits, knobs aside."""
        if len(shapes) == 1:
            return agg_pairs(shapes[0], self.limits)
        names = (POOL_OF_ROLE[role.kind] for role in self.roles)
        return pool_pairs(dict(zip(names, shapes, strict=True)), self.limits)


def limits_of(space: SearchSpace, topology: Topology, encoder: EncoderPlacement = "Inline") -> Limits:
    """The hard limits on worker counts.

    The cap of a GPU type binds all roles of that type together: the whole deployment, some of its roles, or one.
    """
    roles: dict[str, list[RoleKind]] = {}
    for kind in role_kinds(topology, encoder):
        roles.setdefault(space.sku_of(kind), []).append(kind)
    caps = {sku: cap for sku, cap in space.gpu_budget_by_sku.items() if sku in roles}
    whole = next(iter(roles)) if len(roles) == 1 else None
    budget = min(space.gpu_budget, caps.get(whole, space.gpu_budget)) if whole else space.gpu_budget
    alone = {kinds[0]: caps.get(sku) for sku, kinds in roles.items() if len(kinds) == 1 and sku != whole}
    decodes = topology == "disagg"
    return Limits(
        gpu_budget=budget,
        budget_name=f"budgetBySku of {whole}" if budget < space.gpu_budget else "the budget",
        min_gpu_budget=space.min_gpu_budget,
        max_prefill_gpus=_least(space.max_prefill_gpus, alone.get("prefill")),
        max_decode_gpus=_least(space.max_decode_gpus, alone.get("decode")) if decodes else alone.get("agg"),
        max_prefill_workers=space.max_prefill_workers,
        max_decode_workers=space.max_decode_workers if decodes else None,
        max_encode_gpus=alone.get("encode"),
        max_encode_workers=space.encode.max_workers,
        shared=tuple(
            SharedCap(frozenset(POOL_OF_ROLE[kind] for kind in kinds), caps[sku], f"budgetBySku of {sku}")
            for sku, kinds in roles.items()
            if len(kinds) > 1 and sku in caps and sku != whole
        ),
    )


def _least(*caps: int | None) -> int | None:
    return min((cap for cap in caps if cap is not None), default=None)


def max_sequence_tokens(config: SmartSearchConfig) -> int:
    """Bound of the KV gate, which is rendered as the engine's maximum length: by default what the workload needs."""
    return config.search_space.context_length or config.workload.prompt_tokens + config.workload.osl


def tuples_of(space: SearchSpace) -> Iterator[tuple[Backend, Topology, EncoderPlacement]]:
    """Every branch that is asked for: backends, then topologies, then places of the encoder."""
    return itertools.product(space.backend, space.deployment_mode, space.encoders)


def knobs_of(config: SmartSearchConfig, kind: RoleKind, backend: Backend) -> RoleKnobs:
    """The listed engine limits of a role; of an encode worker its batches."""
    space = config.search_space
    if kind == "encode":
        batches = space.encode.batch_size
        if not space.encode.free_batch:
            batches = expressible_batches(backend, batches) or batches
        return RoleKnobs((batches[-1] * max(config.workload.visual_tokens, 1),), batches, (1,), (False,))
    fraction = getattr(space, f"{kind}_gpu_memory_utilization")
    return RoleKnobs(
        max_num_batched_tokens=tuple(sorted(getattr(space, f"{kind}_max_num_batched_tokens"))),
        max_num_seqs=tuple(sorted(getattr(space, f"{kind}_max_num_seqs"))),
        block_size=getattr(space, f"{kind}_block_size") or (DEFAULT_BLOCK_SIZE[backend],),
        enable_prefix_caching=getattr(space, f"{kind}_enable_prefix_caching"),
        memory_fraction=(fraction,),
        ctx_tokens=config.rate_matching.agg_ctx_tokens if kind == "agg" else (),
    )


def plan_branch(
    catalog: Catalog,
    config: SmartSearchConfig,
    backend: Backend,
    topology: Topology,
    chains: BackendChains,
    *,
    encoder: EncoderPlacement = "Inline",
    kv_gated: bool = True,
) -> Branch:
    """Enumerate and gate the shapes of every role, each on its own GPU type.

    Raises:
        Unsupported: unknown model, a request longer than the model's context, a topology that the backend has no form
            of, no data, no legal shape, no shape within the budget, or none with KV room.
    """
    space = config.search_space
    model = catalog.model(space.model_name)
    bound = max_sequence_tokens(config)
    _check_context(config, model, bound)
    kinds = role_kinds(topology, encoder)
    problem = topology_problem(backend, frozenset(kinds))
    if problem:
        raise Unsupported(Reason.UNSUPPORTED_TOPOLOGY, problem)
    images = None if config.workload.images is None else config.workload.images.images
    roles = tuple(
        _plan_encode(config, _chain(chains, space, kind), model, images)
        if kind == "encode"
        else _plan_role(
            catalog,
            config,
            kind,
            _chain(chains, space, kind),
            model=model,
            bound=bound if kv_gated else None,
            images=images if encoder == "Inline" and kind in ENCODING_ROLES else None,
        )
        for kind in kinds
    )
    branch = Branch(backend, topology, model, roles, limits_of(space, topology, encoder), bound, encoder)
    _check_budget(branch, space)
    return branch


def _chain(chains: BackendChains, space: SearchSpace, kind: RoleKind) -> Chain:
    """The version chain of a role's GPU type."""
    sku = space.sku_of(kind)
    if sku not in chains.by_sku:
        raise Unsupported(Reason.NO_DATA, f"{kind} on {sku}: {chains.missing.get(sku, 'no chain leads to its data')}")
    return chains.by_sku[sku]


def _plan_role(
    catalog: Catalog,
    config: SmartSearchConfig,
    kind: RoleKind,
    chain: Chain,
    *,
    model: ModelFacts,
    bound: int | None,
    images: Images | None,
) -> RolePlan:
    space, backend = config.search_space, chain.backend
    identity = PerfIdentity(space.model_name, chain.sku, backend, chain.performance_data)
    knobs = knobs_of(config, kind, backend)
    shapes = role_shapes(
        model,
        backend,
        kind,
        engine_version=chain.engine,
        gpus_per_node=space.gpus_per_node_of(kind),
        ladder=space.gpus_per_worker,
        explicit=space.explicit_shapes,
    )
    if not shapes.legal:
        reasons = "; ".join(sorted({refused.reason for refused in shapes.refused}))
        raise Unsupported(Reason.NO_LEGAL_SHAPE, f"{kind} of {space.model_name} on {backend}: {reasons}")

    def beside(shape: Shape, estimate: KvEstimate) -> KvEstimate:
        return InlineEncoder(catalog, identity, shape, images, (1,)).beside(estimate, 1)

    gated = (
        Gated(shapes.legal, ())
        if bound is None
        else kv_gate(catalog, identity, shapes.legal, knobs, bound, beside=beside)
    )
    if not gated.kept:
        largest = max(gated.removed, key=lambda out: (out.kv_tokens, out.shape.gpus))
        raise Unsupported(Reason.NO_KV_FEASIBLE_SHAPE, f"{kind} of {space.model_name} on {chain.sku}: {largest.detail}")
    return RolePlan(kind, identity, chain, knobs, shapes, gated, space.gpus_per_node_of(kind), images)


def _plan_encode(config: SmartSearchConfig, chain: Chain, model: ModelFacts, images: Images | None) -> RolePlan:
    """Encode workers: the listed splits of the encoder, whatever splits the language model has."""
    space = config.search_space
    if model.vision is None or images is None:
        raise Unsupported(Reason.UNSUPPORTED_FEATURE, f"{space.model_name}: no encoder, or no images to encode")
    shapes = encode_shapes(
        model.vision,
        chain.backend,
        splits=space.encode.tp,
        batches=(1,) if space.encode.free_batch else space.encode.batch_size,
    )
    if not shapes.legal:
        reasons = "; ".join(sorted({refused.reason for refused in shapes.refused}))
        raise Unsupported(Reason.NO_LEGAL_SHAPE, f"encode of {space.model_name} on {chain.backend}: {reasons}")
    return RolePlan(
        kind="encode",
        identity=PerfIdentity(space.model_name, chain.sku, chain.backend, chain.performance_data),
        chain=chain,
        knobs=knobs_of(config, "encode", chain.backend),
        shapes=shapes,
        gated=Gated(shapes.legal, ()),
        gpus_per_node=space.gpus_per_node_of("encode"),
        images=images,
    )


def _check_context(config: SmartSearchConfig, model: ModelFacts, bound: int) -> None:
    """Refuse sequences that the model was not made for: an engine does not start with such a maximum length."""
    if not model.context_length or bound <= model.context_length:
        return
    given = config.search_space.context_length
    workload = config.workload
    visual = f" + {workload.visual_tokens:,} visual tokens" if workload.visual_tokens else ""
    needed = f"isl {workload.isl:,}{visual} + osl {workload.osl:,}"
    asked = needed if given is None else "workload.maxSequenceLength"
    raise Unsupported(
        Reason.UNSUPPORTED_FEATURE,
        f"{asked} = {bound:,} tokens, but {config.search_space.model_name} takes sequences of at most "
        f"{model.context_length:,} tokens (context length of its configuration)",
    )


def _check_budget(branch: Branch, space: SearchSpace) -> None:
    """Refuse a budget, or a cap of a GPU type, that no deployment fits, naming the number that would do."""
    least = {role: min(shape.gpus for shape in role.gated.kept) for role in branch.roles}
    total = sum(least.values())
    if total > space.gpu_budget:
        raise Unsupported(
            Reason.BUDGET_TOO_SMALL,
            f"the smallest {branch.topology} deployment takes {total} GPUs, hardware.gpu.budget is {space.gpu_budget}",
        )
    for sku, cap in space.gpu_budget_by_sku.items():
        mine = sum(gpus for role, gpus in least.items() if role.identity.sku == sku)
        if mine > cap:
            raise Unsupported(
                Reason.BUDGET_TOO_SMALL,
                f"the smallest {branch.topology} deployment takes {mine} GPUs of {sku}, "
                f"hardware.gpu.budgetBySku allows {cap}",
            )
