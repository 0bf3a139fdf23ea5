"""TensorRT-LLM is searched like the other backends, within its own limits, though no template renders it yet."""

from typing import Any

import pytest
from dgdr_api.run import RunSpec
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.search.space_report import space_report

from tests.job.search.runs import run, search

PINS = {"trtllm": "1.3.0rc20"}


def trtllm(**changes: Any) -> RunSpec:
    return run("trtllm", runtime={"performanceDataVersion": PINS}, **changes)


@pytest.mark.parametrize(
    ("model", "budget", "agg", "disagg"),
    [("Qwen/Qwen3-32B", 4, 7, 11), ("Qwen/Qwen3-32B", 8, 15, 71), ("Qwen/Qwen3-235B-A22B", 8, 36, 332)],
)
def test_counts_of_real_models(catalog: Catalog, model: str, budget: int, agg: int, disagg: int) -> None:
    """Of engine.md section 3: without KV gate, ladder to 16."""
    spec = trtllm(modelRef={"name": model}, hardware={"gpu": {"budget": budget}})
    branches = space_report(catalog, spec, kv_gated=False)["branches"]
    assert {each["name"]: each["pairs"] for each in branches} == {"trtllm/agg": agg, "trtllm/disagg": disagg}
    assert all(each["pool"] >= each["pairs"] for each in branches)


def test_both_topologies_are_searched_within_the_limits_of_the_backend(catalog: Catalog) -> None:
    told = search(trtllm(modelRef={"name": "Qwen/Qwen3-30B-A3B"}), catalog)
    assert told.completed.outcome == "SearchSucceeded"
    assert {plan.name for plan in told.resolved.branches} == {"trtllm/agg", "trtllm/disagg"}
    assert {each.candidate.topology for each in told.candidates.values()} == {"agg", "disagg"}
    for each in told.reserve:
        for role in each.candidate.roles:
            assert role.shape.tp == 1 or role.shape.attention_dp == 1
            assert role.shape.cp == 1
            assert role.engine.block_size == 32
            assert role.engine.max_num_batched_tokens % 32 == 0
            assert (role.engine_version, role.data_version) == ("1.3.0rc22", "1.3.0rc20")


def test_a_mixture_of_experts_on_one_gpu_is_legal(catalog: Catalog) -> None:
    spec = trtllm(
        modelRef={"name": "Qwen/Qwen3-30B-A3B"}, hardware={"gpu": {"budget": 1}}, search={"topologies": ["agg"]}
    )
    best = search(spec, catalog).reserve[0].candidate
    assert [(role.workers, role.shape.gpus) for role in best.roles] == [(1, 1)]


def test_a_revision_needs_a_local_snapshot(catalog: Catalog) -> None:
    named = {"name": "Qwen/Qwen3-32B", "revision": "abc"}
    told = search(trtllm(modelRef=named), catalog)
    assert told.completed.outcome == "Unsupported"
    assert [each.reason for each in told.resolved.coverage] == ["UnsupportedFeature"] * 2
    assert "modelRef.revision: trtllm: revision abc needs a local snapshot" in told.completed.message
    cached = named | {"cache": {"pvc": {"name": "models"}}}
    assert search(trtllm(modelRef=cached), catalog).completed.outcome == "Unsupported"
    for local in (
        {"cache": {"pvc": {"name": "models", "modelPath": "qwen"}}},
        {"cache": {"pvc": {"name": "models"}}, "remoteCode": "TrustCacheAndRevision"},
    ):
        assert search(trtllm(modelRef=named | local), catalog).completed.outcome == "SearchSucceeded"
    assert search(run(modelRef=named), catalog).completed.outcome == "SearchSucceeded"


def test_workers_that_need_an_object_beside_them_take_no_place_of_others(catalog: Catalog) -> None:
    """On GB200 a worker over two nodes is not rendered yet, and two nodes are faster than one."""
    spec = run(
        "sglang",
        modelRef={"name": "Qwen/Qwen3-235B-A22B"},
        hardware={"gpu": {"sku": "gb200", "budget": 16}},
        objective={"metric": "throughputPerUser", "sla": None},
        search={"topologies": ["agg"]},
        recommendation={"maxCandidates": 1},
    )
    told = search(spec, catalog)
    spanning = [any(role.shape.gpus > 4 for role in each.candidate.roles) for each in told.reserve]
    assert spanning[:4] == [True] * 4
    assert spanning.count(False) == 4
