"""Prefill and decode on GPU types of their own: the laws of engine.md section 3, and the worked directions."""

from typing import Any

import pytest
from dgdr_api.base import wire
from dgdr_api.terms import Backend
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.errors import Reason, Unsupported
from dgdr_job.search.branches import Branch, limits_of, plan_branch
from dgdr_job.search.mapper import search_config
from dgdr_job.search.resolved import version_chains
from dgdr_publisher.rendering import render_candidate

from tests.job.search.runs import Events, run, search, unbound

GPT_OSS = {"name": "openai/gpt-oss-120b"}


def gpus(sku: str = "h200_sxm", **more: Any) -> dict[str, Any]:
    return {"gpu": {"sku": sku, "budget": 16, **more}}


def documents(told: Events) -> list[dict[str, Any]]:
    """What a search told, as documents."""
    return [wire(each) for each in told.data]


def deployments(told: Events) -> list[tuple[list[tuple[int, tuple[int, ...], str]], float]]:
    """(workers, shape, GPU type) of each role and the score, of the whole reserve."""
    return [
        ([(r.workers, r.shape.key, r.sku) for r in each.candidate.roles], each.evaluation.score)
        for each in told.reserve
    ]


def plan(catalog: Catalog, backend: Backend = "vllm", **changes: Any) -> Branch:
    spec = run(backend, **changes)
    chains = version_chains(spec)
    config = search_config(spec, {name: each.performance_data for name, each in chains.items()})
    return plan_branch(catalog, config, backend, "disagg", chains[backend])


def test_overrides_equal_to_the_default_give_the_same_bytes(catalog: Catalog) -> None:
    named = run(hardware=gpus(prefillSku="H200", decodeSku="NVIDIA-H200-SXM"))
    assert named == run()
    assert documents(search(named, catalog)) == documents(search(run(), catalog))


def test_equal_overrides_behave_as_that_type_everywhere(catalog: Catalog) -> None:
    """H100 by override and H100 by default: the same deployments, bytes, versions, node labels."""
    only = {"topologies": ["disagg"]}
    overridden = run(hardware=gpus("h200_sxm", prefillSku="h100_sxm", decodeSku="h100_sxm"), search=only)
    plain = run(hardware=gpus("h100_sxm"), search=only)
    by_override, by_default = search(overridden, catalog), search(plain, catalog)
    assert documents(by_override) == documents(by_default)
    for mine, other in zip(by_override.reserve[:3], by_default.reserve[:3], strict=True):
        made = render_candidate(mine, overridden, "one").dgd
        assert made == render_candidate(other, plain, "one").dgd
        selectors = [part["podTemplate"]["spec"].get("nodeSelector") for part in made["spec"]["components"][1:]]
        assert selectors == [{"nvidia.com/gpu.product": "NVIDIA-H100-SXM5-80GB"}] * 2


def test_aggregated_workers_stay_on_the_default_type(catalog: Catalog) -> None:
    only = {"topologies": ["agg", "disagg"]}
    mixed = search(run(hardware=gpus(prefillSku="h100_sxm", decodeSku="gb200"), search=only), catalog)
    plain = search(run(), catalog)

    def agg(told: Events) -> list[dict[str, Any]]:
        return [row for row in told.rows if row["branch"] == "vllm/agg"]

    assert agg(mixed) == agg(plain)
    skus = {each.topology: each.skus for each in mixed.resolved.coverage}
    assert skus == {"agg": {"agg": "h200_sxm"}, "disagg": {"prefill": "h100_sxm", "decode": "gb200"}}
    assert [(link.backend, link.sku) for link in mixed.resolved.versions] == [
        ("vllm", "h200_sxm"),
        ("vllm", "h100_sxm"),
        ("vllm", "gb200"),
    ]


def test_each_role_is_enumerated_gated_and_timed_on_its_own_type(catalog: Catalog) -> None:
    """gpt-oss-120b: an H200 holds it alone, with more KV than an H100; a GB200 node has four GPUs."""
    mixed = plan(catalog, modelRef=GPT_OSS, hardware=gpus("h100_sxm", decodeSku="gb200"))
    alone = {sku: plan(catalog, modelRef=GPT_OSS, hardware=gpus(sku)) for sku in ("h100_sxm", "gb200")}
    prefill, decode = mixed.roles
    assert (prefill.identity.sku, decode.identity.sku) == ("h100_sxm", "gb200")
    assert prefill == alone["h100_sxm"].roles[0]
    assert decode == alone["gb200"].roles[1]
    spec = run(modelRef=GPT_OSS, hardware=gpus("h100_sxm", decodeSku="gb200"), search={"topologies": ["disagg"]})
    best = search(spec, catalog).reserve[0]
    for role, kind in zip(best.replay_spec.roles, ("prefill", "decode"), strict=True):
        own = {"prefill": "h100_sxm", "decode": "gb200"}[kind]
        assert (role.sku, role.timing.type, getattr(role.timing, "sku", None)) == (own, "performanceData", own)


@pytest.mark.parametrize("backend", ["vllm", "sglang"])
@pytest.mark.parametrize(
    ("prefill", "decode"),
    [("h100_sxm", "h200_sxm"), ("h200_sxm", "h100_sxm"), ("h200_sxm", "gb200"), ("gb200", "h200_sxm")],
)
def test_worked_directions(backend: Backend, prefill: str, decode: str, catalog: Catalog) -> None:
    """Rates of each role are those of its own type; every published deployment sends each role to its own nodes."""
    only = {"topologies": ["disagg"]}
    spec = run(backend, hardware=gpus(prefill, decodeSku=decode), search=only)
    told = search(spec, catalog)
    assert told.completed.outcome == "SearchSucceeded"
    best = told.reserve[0]
    assert [role.sku for role in best.candidate.roles] == [prefill, decode]
    assert best.candidate.used_gpus <= 16
    labels = {"h100_sxm": "NVIDIA-H100-SXM5-80GB", "h200_sxm": "NVIDIA-H200", "gb200": "NVIDIA-GB200"}
    components = render_candidate(best, spec, "one").dgd["spec"]["components"][1:]
    found = [part["podTemplate"]["spec"]["nodeSelector"]["nvidia.com/gpu.product"] for part in components]
    assert found == [labels[prefill], labels[decode]]
    # the TTFT is that of the prefill type alone, the TPOT that of the decode type
    rate = {sku: search(run(backend, hardware=gpus(sku), search=only), catalog) for sku in (prefill, decode)}
    ttft = {sku: {each.evaluation.metrics["ttftMs"] for each in events.reserve} for sku, events in rate.items()}
    assert best.evaluation.metrics["ttftMs"] in ttft[prefill]


def test_data_that_one_type_lacks_is_no_data_naming_it(catalog: Catalog) -> None:
    told = search(run("sglang", hardware=gpus(prefillSku="a100_sxm")), catalog)
    agg, disagg = told.resolved.coverage
    assert (agg.supported, disagg.supported, disagg.reason) == (True, False, "NoData")
    assert disagg.message.startswith("prefill on a100_sxm: ")
    assert "data of 0.5.16 does not exist for sglang on a100_sxm" in disagg.message
    assert [(link.backend, link.sku) for link in told.resolved.versions] == [("sglang", "h200_sxm")]
    assert {each.candidate.topology for each in told.reserve} == {"agg"}


def test_caps_of_each_type_are_hard_each_alone(catalog: Catalog) -> None:
    spec = unbound(
        hardware=gpus("h100_sxm", decodeSku="h200_sxm", budget=24, budgetBySku={"H100": 6, "H200": 4}),
        objective={"metric": "throughput"},
    )
    told = search(spec, catalog)
    for each in told.reserve:
        used: dict[str, int] = {}
        for role in each.candidate.roles:
            used[role.sku] = used.get(role.sku, 0) + role.workers * role.gpus_per_worker
        assert used.get("h100_sxm", 0) <= 6
        assert used.get("h200_sxm", 0) <= 4
    disagg = [each for each in told.reserve if each.candidate.topology == "disagg"]
    assert max(each.evaluation.used_gpus for each in disagg) == 10
    assert told.resolved.limits["gpuBudget.h100_sxm"] == 6


def test_roles_on_one_type_share_its_cap() -> None:
    def limits(topology: str, **gpu: Any) -> tuple[int, int | None, int | None, str]:
        space = search_config(run(hardware={"gpu": gpu}), {"vllm": "0.24.0"}).search_space
        found = limits_of(space, "agg" if topology == "agg" else "disagg")
        return found.gpu_budget, found.max_prefill_gpus, found.max_decode_gpus, found.budget_name

    assert limits("disagg", budgetBySku={"H200": 9}) == (9, None, None, "budgetBySku of h200_sxm")
    assert limits("agg", budgetBySku={"H200": 9}) == (9, None, None, "budgetBySku of h200_sxm")
    assert limits("agg", budgetBySku={"H200": 99}) == (16, None, None, "the budget")
    mixed = {"prefillSku": "h100_sxm", "budgetBySku": {"H200": 9, "H100": 3}}
    assert limits("disagg", **mixed) == (16, 3, 9, "the budget")
    assert limits("agg", **mixed) == (9, None, None, "budgetBySku of h200_sxm")


def test_a_cap_that_no_deployment_fits_is_named(catalog: Catalog) -> None:
    ladder = {"parameters": {"search_space": {"gpus_per_worker": [4, 8]}}}
    with pytest.raises(Unsupported) as refused:
        plan(catalog, hardware=gpus(decodeSku="h100_sxm", budgetBySku={"h100_sxm": 2}), search=ladder)
    assert refused.value.reason is Reason.BUDGET_TOO_SMALL
    assert refused.value.message == (
        "the smallest disagg deployment takes 4 GPUs of h100_sxm, hardware.gpu.budgetBySku allows 2"
    )


def test_prices_change_the_denominator(catalog: Catalog) -> None:
    """Free of the price of its GPUs a role is searched for rate per GPU of the other, and the numbers are exact."""
    prices = {"h100_sxm": 1.0, "h200_sxm": 4.0}
    spec = run(
        hardware=gpus("h200_sxm", prefillSku="h100_sxm"),
        objective={"metric": "throughputPerCost", "gpuHourCost": prices},
    )
    told = search(spec, catalog)
    for each in told.reserve:
        cost = sum(role.workers * role.gpus_per_worker * prices[role.sku] for role in each.candidate.roles)
        tokens = each.evaluation.metrics["outputThroughputTokensPerS"]
        assert each.evaluation.objectives["throughputPerCost"] == pytest.approx(tokens * 3600 / cost)
    per_gpu = search(run(hardware=gpus("h200_sxm", prefillSku="h100_sxm")), catalog)
    assert deployments(told)[0][0] != deployments(per_gpu)[0][0]


def test_a_summary_says_where_each_role_runs(catalog: Catalog) -> None:
    told = search(run(hardware=gpus(prefillSku="h100_sxm"), search={"topologies": ["disagg"]}), catalog)
    summary = next(row["summary"] for row in told.rows if row["status"] == "feasible")
    assert " on h100_sxm, " in summary
    assert summary.endswith(" on h200_sxm")


def router(**model: str) -> dict[str, Any]:
    return {"topologies": ["disagg"], "router": [{"prefillLoadModel": model}]}


@pytest.mark.parametrize("model", [{"type": "performanceData"}, {"type": "performanceData", "sku": "h200_sxm"}])
def test_a_router_that_times_prefill_on_another_type_never_stands_before_it(
    model: dict[str, str], catalog: Catalog
) -> None:
    told = search(run(hardware=gpus(prefillSku="h100_sxm"), search=router(**model)), catalog)
    assert told.completed.outcome == "NoFeasibleCandidate"
    assert {row["reason"] for row in told.rows} == {"adapter_constraint"}
    named = model.get("sku", "no GPU type")
    assert f"prefillLoadModel names {named}, but prefill runs on h100_sxm" in told.completed.message
    counters = told.completed.counters
    assert (counters.infeasible, counters.remaining) == (counters.scheduled, 0)


@pytest.mark.parametrize(
    ("own", "model"),
    [
        ({"prefillSku": "h100_sxm"}, {"type": "performanceData", "sku": "h100_sxm"}),
        ({"prefillSku": "h100_sxm"}, {"type": "performanceData", "sku": "NVIDIA-H100-80GB-HBM3"}),
        ({"prefillSku": "h100_sxm"}, {"type": "none"}),
        ({"decodeSku": "h100_sxm"}, {"type": "performanceData"}),
    ],
)
def test_the_right_name_no_model_and_another_decode_type_pass(
    own: dict[str, str], model: dict[str, str], catalog: Catalog
) -> None:
    told = search(run(hardware=gpus(**own), search=router(**model)), catalog)
    assert told.completed.outcome == "SearchSucceeded"
