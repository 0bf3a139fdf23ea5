"""What a search announces first: branches, coverage of each tuple, the version chain, and the resolved limits."""

from collections.abc import Mapping, Sequence

from dgdr_api.events import BranchPlan, Resolved, TupleCoverage, VersionLink
from dgdr_api.replay_spec import role_kinds
from dgdr_api.run import RunSpec
from dgdr_api.terms import Backend
from dgdr_api.versions import BackendChains, Chain, data_versions, resolve_chains, runtime_version

from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.errors import Reason
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.search.branches import Branch, max_sequence_tokens
from dgdr_job.search.config import PLACEMENTS, SmartSearchConfig
from dgdr_job.search.evaluations import MESSAGE_CHARACTERS
from dgdr_job.search.mapper import encoder_of

NO_RUNTIME = "none"
"""Runtime of a chain that no image begins."""


def version_chains(run: RunSpec) -> dict[Backend, BackendChains]:
    """The version chains of each backend of a run, on every GPU type that a role has.

    A run whose image names no version at all is bound by its performance data alone. Admission refuses such a request;
    only a native search has such a run, and nothing of it is rendered.

    Raises:
        VersionChainBroken: the image binds no performance data; admission refuses this before.
    """
    runtime = run.runtime
    skus = [run.hardware.gpu.sku_of(kind) for kind in run.role_kinds]
    if runtime_version(runtime.image, runtime.version_override) is None:
        pins = runtime.performance_data_version or {}
        return {backend: _by_data_alone(backend, pins[backend], skus) for backend in run.backends if backend in pins}
    return {
        backend: resolve_chains(
            runtime.image,
            runtime.version_override,
            runtime.performance_data_version,
            backend,
            skus,
        )
        for backend in run.backends
    }


def _by_data_alone(backend: Backend, version: str, skus: Sequence[str]) -> BackendChains:
    """Chains without an image: the engine is the one that was measured."""
    return BackendChains(
        by_sku={
            sku: Chain(
                backend=backend,
                sku=sku,
                runtime=NO_RUNTIME,
                engine=version,
                performance_data=version,
                pinned=True,
            )
            for sku in dict.fromkeys(skus)
            if version in data_versions(backend, sku)
        },
        missing={
            sku: f"no performance data {version} for {backend} on {sku}"
            for sku in dict.fromkeys(skus)
            if version not in data_versions(backend, sku)
        },
    )


def rounds_of(config: SmartSearchConfig) -> int:
    """Rounds of each branch: one for each KV load ratio, a dimension of the pool, or one."""
    return max(len(config.workload.kv_load_ratios), 1)


def resolved(
    catalog: Catalog,
    config: SmartSearchConfig,
    chains: Mapping[Backend, BackendChains],
    branches: Sequence[Branch],
    coverage: Sequence[TupleCoverage],
) -> Resolved:
    """Data of ``search.resolved`` once every tuple has its verdict."""
    space = config.search_space
    used = {(branch.backend, role.identity.sku) for branch in branches for role in branch.roles}
    return Resolved(
        branches=tuple(
            BranchPlan(
                name=branch.name,
                backend=branch.backend,
                topology=branch.topology,
                encoder=branch.encoder,
                pool=branch.pairs * rounds_of(config),
            )
            for branch in branches
        ),
        coverage=tuple(coverage),
        versions=tuple(
            _link(chain, _borrowed(catalog, space.model_name, chain) if (backend, chain.sku) in used else ())
            for backend, of_backend in chains.items()
            for chain in of_backend.by_sku.values()
        ),
        limits={
            "gpuBudget": space.gpu_budget,
            "minGpuBudget": space.min_gpu_budget,
            **{f"gpuBudget.{sku}": cap for sku, cap in sorted(space.gpu_budget_by_sku.items())},
            "maxSequenceLength": max_sequence_tokens(config),
            "reserve": config.sweep.reserve,
            "seed": config.sweep.seed,
        },
    )


def refused_whole(
    run: RunSpec,
    chains: Mapping[Backend, BackendChains],
    message: str,
    reason: Reason = Reason.UNSUPPORTED_FEATURE,
) -> Resolved:
    """Data of ``search.resolved`` where the run asks for something that no branch can search."""
    return Resolved(
        branches=(),
        coverage=tuple(
            TupleCoverage(
                backend=backend,
                topology=topology,
                encoder=encoder,
                skus={kind: run.hardware.gpu.sku_of(kind) for kind in role_kinds(topology, encoder)},
                supported=False,
                reason=reason.value,
                message=message[:MESSAGE_CHARACTERS],
                data_version=of_backend.performance_data,
            )
            for backend, of_backend in chains.items()
            for topology in run.search.topologies
            for encoder in PLACEMENTS[encoder_of(run)]
        ),
        versions=tuple(_link(chain, ()) for each in chains.values() for chain in each.by_sku.values()),
        limits={"gpuBudget": run.hardware.gpu.budget, "minGpuBudget": run.hardware.gpu.min_budget or 1},
    )


def _link(chain: Chain, borrowed_tables: tuple[str, ...]) -> VersionLink:
    return VersionLink(
        backend=chain.backend,
        sku=chain.sku,
        runtime=chain.runtime,
        engine=chain.engine,
        performance_data=chain.performance_data,
        pinned=chain.pinned,
        borrowed_tables=borrowed_tables,
    )


def _borrowed(catalog: Catalog, model: str, chain: Chain) -> tuple[str, ...]:
    identity = PerfIdentity(model, chain.sku, chain.backend, chain.performance_data)
    return catalog.data_provenance(identity).borrowed_tables
