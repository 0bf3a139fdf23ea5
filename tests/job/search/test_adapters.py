"""The guards of router and planner: an adapter with a performance model of its own names the GPU types that it asks."""

import pytest
from dgdr_api.replay_spec import Router
from dgdr_api.terms import RoleKind
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.search.adapters import planner_problem, router_problem
from dgdr_job.search.branches import Branch, plan_branch
from dgdr_job.search.mapper import search_config
from dgdr_job.search.resolved import version_chains

from tests.job.search.runs import run

DEFAULT, OWN = "h200_sxm", "h100_sxm"


def branch(catalog: Catalog, topology: str = "disagg", **own: str) -> Branch:
    spec = run(hardware={"gpu": own}, search={"topologies": ["agg", "disagg"]})
    chains = version_chains(spec)
    config = search_config(spec, {"vllm": chains["vllm"].performance_data})
    return plan_branch(catalog, config, "vllm", "agg" if topology == "agg" else "disagg", chains["vllm"])


def router(sku: str | None, kind: str = "performanceData") -> Router:
    return Router.model_validate({"prefillLoadModel": {"type": kind} | ({} if sku is None else {"sku": sku})})


@pytest.mark.parametrize(
    ("own", "sku", "problem"),
    [
        ({"prefillSku": OWN}, OWN, None),
        ({"prefillSku": OWN}, None, "names no GPU type, but prefill runs on h100_sxm"),
        ({"prefillSku": OWN}, DEFAULT, "names h200_sxm, but prefill runs on h100_sxm"),
        ({"decodeSku": OWN}, None, None),
        ({"decodeSku": OWN}, DEFAULT, None),
        ({}, None, None),
        ({}, OWN, "names h100_sxm, but prefill runs on h200_sxm"),
    ],
)
def test_a_router_names_where_prefill_runs(
    catalog: Catalog, own: dict[str, str], sku: str | None, problem: str | None
) -> None:
    found = router_problem(router(sku), branch(catalog, **own), DEFAULT)
    assert (found is None) == (problem is None)
    assert problem is None or problem in (found or "")


Named = dict[RoleKind, str | None]


@pytest.mark.parametrize(
    ("own", "named", "problem"),
    [
        ({"prefillSku": OWN}, {"prefill": OWN}, None),
        ({"prefillSku": OWN}, {"prefill": "H100", "decode": DEFAULT}, None),
        ({"prefillSku": OWN}, {"decode": DEFAULT}, "names no GPU type, but prefill runs on h100_sxm"),
        ({"decodeSku": OWN}, {"prefill": DEFAULT}, "names no GPU type, but decode runs on h100_sxm"),
        ({"decodeSku": OWN}, {"decode": OWN}, None),
        ({"decodeSku": OWN}, {"prefill": OWN, "decode": OWN}, "names h100_sxm, but prefill runs on h200_sxm"),
        ({"prefillSku": OWN, "decodeSku": OWN}, {"prefill": OWN}, "but decode runs on h100_sxm"),
        ({}, {}, None),
        ({"prefillSku": OWN}, None, None),
    ],
)
def test_a_planner_names_where_each_role_runs(
    catalog: Catalog, own: dict[str, str], named: Named | None, problem: str | None
) -> None:
    found = planner_problem(named, branch(catalog, **own), DEFAULT)
    assert (found is None) == (problem is None)
    assert problem is None or problem in (found or "")


def test_aggregated_workers_run_on_the_default_type(catalog: Catalog) -> None:
    alone = branch(catalog, "agg", prefillSku=OWN)
    assert planner_problem({"prefill": DEFAULT}, alone, DEFAULT) is None
    assert router_problem(router(DEFAULT), alone, DEFAULT) is None
    assert router_problem(router(None, "none"), branch(catalog, prefillSku=OWN), DEFAULT) is None
