"""Explicit parallel configurations: each must be legal for a role of the request, told before anything is estimated.

A configuration is tried in every role that can have it: context parallelism is for prefill, so beside decode workers it
concerns prefill alone. One that no role of any backend can have is an error that names the rule.
"""

from collections.abc import Iterator, Mapping

from dgdr_api.errors import InvalidRequest, Problem
from dgdr_api.expressible import RoleForm
from dgdr_api.replay_spec import ROLES_OF_TOPOLOGY
from dgdr_api.terms import Backend, RoleKind
from dgdr_api.versions import BackendChains

from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.errors import Unsupported
from dgdr_job.catalog.model import ModelFacts
from dgdr_job.search.config import ParallelConfig, SmartSearchConfig
from dgdr_job.space.shapes import shape_problem

FIELD = "search.parameters.search_space.parallel_configs"
MEASURED_TP = 8
"""Below it the performance model's memory tables know powers of two only (perf-data.md section 4)."""

Role = tuple[Backend, RoleKind]


def check_parallel_configs(
    catalog: Catalog, config: SmartSearchConfig, chains: Mapping[Backend, BackendChains]
) -> None:
    """Refuse explicit shapes that no role can have.

    Args:
        catalog: source of the model's facts.
        config: the search.
        chains: version chains of each backend.

    Raises:
        InvalidRequest: a configuration is illegal in every role; says which rule of which role it breaks.
    """
    listed = config.search_space.parallel_configs
    if listed is None:
        return
    try:
        model = catalog.model(config.search_space.model_name)
    except Unsupported:
        return  # the preflight tells it
    problems = []
    for index, each in enumerate(listed):
        text = _problem(config, model, each, chains)
        if text is not None:
            problems.append(Problem(f"{FIELD}[{index}]", text, each.model_dump()))
    if problems:
        raise InvalidRequest(problems)


def _problem(
    config: SmartSearchConfig, model: ModelFacts, each: ParallelConfig, chains: Mapping[Backend, BackendChains]
) -> str | None:
    """Why no role can have this shape, or None."""
    width, experts = each.tp * each.attention_dp * each.cp, each.moe_tp * each.moe_ep
    if experts not in (1, width):
        return f"moe_tp * moe_ep = {experts}, but tp * attention_dp * cp = {width}: they must be equal"
    if each.tp < MEASURED_TP and each.tp & (each.tp - 1):
        return f"tp {each.tp} is no power of two; the memory of such workers is not known"
    found: dict[Role, str] = {}
    for role, form in _forms(config, model, each, chains):
        problem = shape_problem(model, form)
        if problem is None:
            return None
        found[role] = problem
    if len(set(found.values())) == 1:
        return next(iter(found.values()))
    return (
        "; ".join(
            f"{kind} on {backend}: {text.removeprefix(f'{backend}: ')}" for (backend, kind), text in found.items()
        )
        or None
    )


def _forms(
    config: SmartSearchConfig, model: ModelFacts, each: ParallelConfig, chains: Mapping[Backend, BackendChains]
) -> Iterator[tuple[Role, RoleForm]]:
    """Every role of the request in this shape; roles on GPU types without data are left out."""
    space = config.search_space
    for backend in space.backend:
        for topology in space.deployment_mode:
            for kind in ROLES_OF_TOPOLOGY[topology]:
                chain = chains[backend].by_sku.get(space.sku_of(kind))
                if chain is not None:
                    yield (
                        (backend, kind),
                        RoleForm(
                            backend=backend,
                            engine_version=chain.engine,
                            kind=kind,
                            shape=each.shape,
                            is_moe=model.is_moe,
                            gpus_per_node=space.gpus_per_node_of(kind),
                        ),
                    )
