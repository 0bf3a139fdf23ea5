"""Branches: pools before and after the gate, the bound, and refusals with their numbers."""

from typing import Any

import pytest
from dgdr_api.events import branch_name
from dgdr_api.terms import Topology
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.errors import Reason, Unsupported
from dgdr_job.catalog.model import ModelFacts
from dgdr_job.search.branches import Branch, knobs_of, max_sequence_tokens, plan_branch
from dgdr_job.search.mapper import search_config
from dgdr_job.search.resolved import version_chains

from tests.job.search.runs import run


def plan(
    catalog: Catalog,
    topology: Topology = "disagg",
    *,
    kv_gated: bool = True,
    backend: str = "vllm",
    **changes: Any,
) -> Branch:
    spec = run(backend, **changes)
    chains = version_chains(spec)
    config = search_config(spec, {name: chain.performance_data for name, chain in chains.items()})
    (name,) = spec.backends
    return plan_branch(catalog, config, name, topology, chains[name], kv_gated=kv_gated)


@pytest.mark.parametrize(
    ("topology", "pairs", "pool"),
    [("agg", 31, 31 * 9), ("disagg", 367, 367 * 81)],
)
def test_pools_of_the_specification(topology: Topology, pairs: int, pool: int, catalog: Catalog) -> None:
    """Qwen3-32B on 16 GPUs: 29,727 + 279 deployments with every combination of the listed limits."""
    branch = plan(catalog, topology)
    assert (branch.pairs, branch.pool, branch.ungated_pairs) == (pairs, pool, pairs)


def test_the_gate_takes_pairs_away(catalog: Catalog) -> None:
    branch = plan(catalog, modelRef={"name": "Qwen/Qwen3-235B-A22B-FP8"})
    assert (
        branch.pairs
        < branch.ungated_pairs
        == plan(catalog, modelRef={"name": "Qwen/Qwen3-235B-A22B-FP8"}, kv_gated=False).pairs
    )
    for role in branch.roles:
        assert {out.shape.label for out in role.gated.removed} == {"tp1"}
        assert {out.shape.moe_tp for out in role.shapes.refused} == {8, 16}


def test_without_the_gate_every_legal_shape_is_kept(catalog: Catalog) -> None:
    free = plan(catalog, modelRef={"name": "Qwen/Qwen3-235B-A22B-FP8"}, kv_gated=False)
    assert all(role.gated.kept == role.shapes.legal for role in free.roles)


def test_the_longest_sequence_is_what_the_workload_needs_or_what_is_given() -> None:
    def bound(**changes: Any) -> int:
        return max_sequence_tokens(search_config(run(**changes), {"vllm": "0.24.0"}))

    assert bound() == 3300
    assert bound(workload={"maxSequenceLength": 9000}) == 9000


def test_default_blocks_and_own_values() -> None:
    own = {"search_space": {"decode_block_size": [16, 32], "agg_gpu_memory_utilization": 0.8}}
    config = search_config(run(search={"parameters": own}), {"vllm": "0.24.0"})
    assert knobs_of(config, "prefill", "vllm").block_size == (64,)
    assert knobs_of(config, "prefill", "sglang").block_size == (1,)
    assert knobs_of(config, "prefill", "trtllm").block_size == (32,)
    assert knobs_of(config, "decode", "vllm").block_size == (16, 32)
    assert knobs_of(config, "agg", "vllm").memory_fraction == (0.8,)
    agg, prefill = knobs_of(config, "agg", "vllm"), knobs_of(config, "prefill", "vllm")
    assert (agg.max_num_batched_tokens, agg.least_token_budget) == ((8192, 16384, 32768), 512)
    assert agg.ctx_tokens == (512, 1024, 2048, 3000, 4096, 6000)
    assert (prefill.max_num_batched_tokens, prefill.ctx_tokens) == ((8192, 16384, 32768), ())


def test_a_name_is_backend_and_topology() -> None:
    assert branch_name("sglang", "disagg") == "sglang/disagg"


def refusal(catalog: Catalog, topology: Topology = "disagg", **changes: Any) -> Unsupported:
    with pytest.raises(Unsupported) as refused:
        plan(catalog, topology, **changes)
    return refused.value


def test_no_shape_has_room(catalog: Catalog) -> None:
    error = refusal(
        catalog,
        modelRef={"name": "deepseek-ai/DeepSeek-R1"},
        hardware={"gpu": {"sku": "h100_sxm"}},
        search={"parameters": {"search_space": {"gpus_per_worker": [1, 2, 4]}}},
    )
    assert error.reason is Reason.NO_KV_FEASIBLE_SHAPE
    assert "0 KV tokens per rank, more than 3,300 are needed for the longest request" in error.message
    assert "prefill of deepseek-ai/DeepSeek-R1 on h100_sxm" in error.message


def test_no_shape_is_legal(catalog: Catalog) -> None:
    error = refusal(catalog, search={"parameters": {"search_space": {"gpus_per_worker": [3, 5]}}})
    assert error.reason is Reason.NO_LEGAL_SHAPE
    assert "64 attention heads do not split over tp 3" in error.message
    assert "64 attention heads do not split over tp 5" in error.message


def test_a_budget_below_the_smallest_deployment(catalog: Catalog) -> None:
    error = refusal(catalog, hardware={"gpu": {"budget": 1}})
    assert error.reason is Reason.BUDGET_TOO_SMALL
    assert error.message == "the smallest disagg deployment takes 2 GPUs, hardware.gpu.budget is 1"
    assert plan(catalog, "agg", hardware={"gpu": {"budget": 1}}).pairs == 1


def test_the_context_length_of_the_model_is_inclusive(catalog: Catalog) -> None:
    assert plan(catalog, "agg", workload={"maxSequenceLength": 40_960}).max_sequence_tokens == 40_960
    error = refusal(catalog, "agg", workload={"maxSequenceLength": 40_961})
    assert error.reason is Reason.UNSUPPORTED_FEATURE


class Silent(Catalog):
    """A configuration that says nothing of the context length."""

    def model(self, name: str) -> ModelFacts:
        facts = super().model(name)
        return type(facts)(**{**vars(facts), "context_length": 0})


def test_an_unknown_context_length_refuses_nothing(catalog: Catalog) -> None:
    assert plan(Silent(catalog.cache), "agg", workload={"maxSequenceLength": 50_000}).max_sequence_tokens == 50_000
