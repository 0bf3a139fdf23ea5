"""A branch: one backend and one topology, with the performance identity, engine limits and shapes of each role."""

from dataclasses import dataclass

from dgdr_api.expressible import unrendered_shape
from dgdr_api.replay_spec import ROLES_OF_TOPOLOGY
from dgdr_api.shape import Shape
from dgdr_api.skus import resolve_sku
from dgdr_api.terms import Backend, RoleKind, Topology
from dgdr_api.versions import BackendChains, Chain

from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.errors import Reason, Unsupported
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.catalog.model import ModelFacts
from dgdr_job.search.config import SearchSpace, SmartSearchConfig
from dgdr_job.space.counts import agg_pairs, disagg_pairs
from dgdr_job.space.gate import Gated, kv_gate
from dgdr_job.space.knobs import RoleKnobs
from dgdr_job.space.limits import Limits
from dgdr_job.space.shapes import RoleShapes, role_shapes

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

    def unrendered(self, shape: Shape) -> str | None:
        """Why no template renders a worker of this role in this shape yet, or None."""
        per_node = self.gpus_per_node or resolve_sku(self.identity.sku).gpus_per_node
        return unrendered_shape(shape, sku=self.identity.sku, gpus_per_node=per_node)


@dataclass(frozen=True)
class Branch:
    """What may be deployed on one backend in one topology."""

    backend: Backend
    topology: Topology
    model: ModelFacts
    roles: tuple[RolePlan, ...]
    limits: Limits
    max_sequence_tokens: int

    @property
    def name(self) -> str:
        """``<backend>/<topology>``."""
        return branch_name(self.backend, self.topology)

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
        if self.topology == "agg":
            return agg_pairs(shapes[0], self.limits)
        return disagg_pairs(shapes[0], shapes[1], self.limits)


def branch_name(backend: Backend, topology: Topology) -> str:
    """``<backend>/<topology>``."""
    return f"{backend}/{topology}"


def limits_of(space: SearchSpace, topology: Topology) -> Limits:
    """The hard limits on worker counts.

    The cap of a GPU type binds the whole deployment where all roles share the type, and each role where they do not.
    """
    caps = space.gpu_budget_by_sku
    skus = [space.sku_of(kind) for kind in ROLES_OF_TOPOLOGY[topology]]
    shared = len(set(skus)) == 1
    cap = caps.get(skus[0], space.gpu_budget) if shared else space.gpu_budget
    return Limits(
        gpu_budget=min(space.gpu_budget, cap),
        budget_name=f"budgetBySku of {skus[0]}" if cap < space.gpu_budget else "the budget",
        min_gpu_budget=space.min_gpu_budget,
        max_prefill_gpus=_least(space.max_prefill_gpus, None if shared else caps.get(skus[0])),
        max_decode_gpus=_least(space.max_decode_gpus, None if shared else caps.get(skus[-1])),
        max_prefill_workers=space.max_prefill_workers,
        max_decode_workers=space.max_decode_workers,
    )


def _least(*caps: int | None) -> int | None:
    return min((cap for cap in caps if cap is not None), default=None)


def max_sequence_tokens(config: SmartSearchConfig) -> int:
    """Bound of the KV gate, which is rendered as the engine's maximum length: by default what the workload needs."""
    return config.search_space.context_length or config.workload.isl + config.workload.osl


def knobs_of(config: SmartSearchConfig, kind: RoleKind, backend: Backend) -> RoleKnobs:
    """The listed engine limits of a role."""
    space = config.search_space
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
    kv_gated: bool = True,
) -> Branch:
    """Enumerate and gate the shapes of every role, each on its own GPU type.

    Raises:
        Unsupported: unknown model, a request longer than the model's context, no data, no legal shape, no shape
            within the budget, or none with KV room.
    """
    space = config.search_space
    model = catalog.model(space.model_name)
    bound = max_sequence_tokens(config)
    _check_context(config, model, bound)
    roles = tuple(
        _plan_role(catalog, config, kind, _chain(chains, space, kind), model=model, bound=bound if kv_gated else None)
        for kind in ROLES_OF_TOPOLOGY[topology]
    )
    branch = Branch(backend, topology, model, roles, limits_of(space, topology), bound)
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
    gated = Gated(shapes.legal, ()) if bound is None else kv_gate(catalog, identity, shapes.legal, knobs, bound)
    if not gated.kept:
        largest = max(gated.removed, key=lambda out: (out.kv_tokens, out.shape.gpus))
        raise Unsupported(Reason.NO_KV_FEASIBLE_SHAPE, f"{kind} of {space.model_name} on {chain.sku}: {largest.detail}")
    return RolePlan(kind, identity, chain, knobs, shapes, gated, space.gpus_per_node_of(kind))


def _check_context(config: SmartSearchConfig, model: ModelFacts, bound: int) -> None:
    """Refuse sequences that the model was not made for: an engine does not start with such a maximum length."""
    if not model.context_length or bound <= model.context_length:
        return
    given = config.search_space.context_length
    workload = config.workload
    asked = f"isl {workload.isl:,} + osl {workload.osl:,}" if given is None else "workload.maxSequenceLength"
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
