"""Coverage of one tuple apart from any request: what `dgdr coverage` shows."""

from dataclasses import dataclass

from dgdr_api.events import TupleCoverage
from dgdr_api.skus import resolve_sku
from dgdr_api.terms import Backend, Topology
from dgdr_api.versions import BackendChains, Chain, data_versions

from dgdr_job.catalog.catalog import Catalog
from dgdr_job.search.config import Goal, SearchSpace, SmartSearchConfig, Workload
from dgdr_job.search.preflight import preflight, refused


@dataclass(frozen=True)
class Tuple:
    """What is asked: model, GPU type, backend, topology, and the lengths and budget that its shapes must serve."""

    model: str
    sku: str
    """Name or alias."""
    backend: Backend
    topology: Topology
    isl: int = 3000
    osl: int = 300
    budget: int = 64
    data_version: str | None = None
    """Version of the performance data; None is the default one of backend and SKU."""


def tuple_coverage(catalog: Catalog, asked: Tuple) -> TupleCoverage:
    """Judge one tuple by the performance data alone, whether or not a template renders it.

    Raises:
        UnknownSku: the GPU type is not in the catalog.
    """
    sku = resolve_sku(asked.sku)
    known = data_versions(asked.backend, sku.name)
    version = asked.data_version or (known[0] if known else "none")
    config = SmartSearchConfig(
        search_space=SearchSpace(
            model_name=asked.model,
            hardware_sku=sku.name,
            deployment_mode=(asked.topology,),
            backend=(asked.backend,),
            backend_version={asked.backend: version},
            gpu_budget=asked.budget,
            gpus_per_node=sku.gpus_per_node,
        ),
        workload=Workload(isl=asked.isl, osl=asked.osl, saturated=True),
        goal=Goal(metrics=("throughputPerGpu",)),
    )
    if version not in known:
        having = f"it has {' and '.join(known)}" if known else "it has none"
        message = f"no performance data {version} for {asked.backend} on {sku.name}: {having}"
        return refused(config, asked.backend, asked.topology, "NoData", message)
    chain = Chain(
        backend=asked.backend, sku=sku.name, runtime="", engine=version, performance_data=version, pinned=False
    )
    chains = BackendChains(by_sku={sku.name: chain}, missing={})
    return preflight(catalog, config, asked.backend, asked.topology, chains).coverage
