"""Coverage of one tuple apart from any request: what `dgdr coverage` shows."""

from dataclasses import dataclass

from dgdr_api.events import TupleCoverage
from dgdr_api.not_modelled import NotModelled
from dgdr_api.replay_spec import ROLES_OF_TOPOLOGY
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
    prefill_sku: str | None = None
    """GPU type of prefill workers; None is ``sku``. Only with topology disagg, as is the next."""
    decode_sku: str | None = None
    not_modelled: tuple[NotModelled, ...] = ()
    """Features that would run beside, which no estimate knows."""


def tuple_coverage(catalog: Catalog, asked: Tuple) -> TupleCoverage:
    """Judge one tuple by the performance data alone, whether or not a template renders it.

    Raises:
        UnknownSku: a GPU type is not in the catalog.
    """
    sku = resolve_sku(asked.sku)
    prefill, decode = (None if own is None else resolve_sku(own).name for own in (asked.prefill_sku, asked.decode_sku))
    own = {"prefill": prefill, "decode": decode, "agg": None}
    skus = dict.fromkeys(own[kind] or sku.name for kind in ROLES_OF_TOPOLOGY[asked.topology])
    known = {name: data_versions(asked.backend, name) for name in skus}
    common = [version for version in next(iter(known.values())) if all(version in each for each in known.values())]
    version = asked.data_version or (common[0] if common else "none")
    config = SmartSearchConfig(
        search_space=SearchSpace(
            model_name=asked.model,
            hardware_sku=sku.name,
            deployment_mode=(asked.topology,),
            backend=(asked.backend,),
            backend_version={asked.backend: version},
            gpu_budget=asked.budget,
            prefill_hardware_sku=prefill if asked.topology == "disagg" else None,
            decode_hardware_sku=decode if asked.topology == "disagg" else None,
        ),
        workload=Workload(isl=asked.isl, osl=asked.osl, saturated=True),
        goal=Goal(metrics=("throughputPerGpu",)),
    )
    lacking = [name for name, versions in known.items() if version not in versions]
    if lacking:
        having = "; ".join(f"{name} has {' and '.join(versions) or 'none'}" for name, versions in known.items())
        wanted = f"no performance data {version}" if version != "none" else "no performance data"
        if version == "none" and all(known.values()):
            wanted = "no one version of performance data"
        message = f"{wanted} for {asked.backend} on {' and '.join(lacking)}: {having}"
        return refused(config, asked.backend, asked.topology, "NoData", message)
    chains = BackendChains(by_sku={name: _chain(asked.backend, name, version) for name in skus}, missing={})
    found = preflight(catalog, config, asked.backend, asked.topology, chains).coverage
    if not found.supported:
        return found
    return found.model_copy(update={"not_modelled": tuple(dict.fromkeys((*found.not_modelled, *asked.not_modelled)))})


def _chain(backend: Backend, sku: str, version: str) -> Chain:
    return Chain(backend=backend, sku=sku, runtime="", engine=version, performance_data=version, pinned=False)
