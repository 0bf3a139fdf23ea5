"""Rows of real shapes: what bounds them, and the reason where there is none."""

from dataclasses import replace

import numpy as np
import pytest
from dgdr_api.expressible import knob_problems
from dgdr_api.shape import Shape
from dgdr_api.terms import Backend, RoleKind
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.identity import PerfIdentity
from dgdr_job.search.config import RateMatching, Workload
from dgdr_job.search.role_rows import NoRow, RoleInput, Rows, within_slots
from dgdr_job.search.role_table import ROWS_OF, role_table
from dgdr_job.space.knobs import RoleKnobs
from dgdr_job.timing.batches import BATCH_GRID
from dgdr_job.timing.rows import agg_rows

QWEN = PerfIdentity("Qwen/Qwen3-32B", "h200_sxm", "vllm", "0.24.0")
WORKLOAD = Workload(isl=3000, osl=300, saturated=True)
CONSTANTS = RateMatching()
KNOBS = RoleKnobs((8192, 16384), (512,), (64,), (True,))


def role(kind: RoleKind, knobs: RoleKnobs = KNOBS, longest: int = 3300) -> RoleInput:
    return RoleInput(kind, QWEN, (Shape(),), knobs, longest)


def rows(
    catalog: Catalog, asked: RoleInput, workload: Workload = WORKLOAD, constants: RateMatching = CONSTANTS
) -> Rows:
    return ROWS_OF[asked.kind](catalog, asked, Shape(), workload, constants)[1]


def test_batches_fill_the_kv_cache_and_no_more(catalog: Catalog) -> None:
    found = rows(catalog, role("decode"))
    tokens = found.estimates[0].tokens_per_rank
    assert found.batch.tolist() == [batch for batch in BATCH_GRID if batch * 3300 <= tokens]
    assert found.batch[-1] * 3300 <= tokens < BATCH_GRID[len(found.batch)] * 3300
    assert set(found.batched_tokens.tolist()) == {8192}


def test_a_prefill_batch_takes_the_least_budget_that_covers_it(catalog: Catalog) -> None:
    found = rows(catalog, role("prefill"), constants=RateMatching(prefill_batches=(1, 2, 3, 5, 6)))
    assert list(zip(found.batch.tolist(), found.batched_tokens.tolist(), strict=True)) == [
        (1, 8192),
        (2, 8192),
        (3, 16384),
        (5, 16384),
    ]


def test_a_decode_batch_takes_the_least_budget_that_covers_it(catalog: Catalog) -> None:
    """A token of each sequence; the KV cache is that beside the row's own budget."""
    found = rows(catalog, role("decode", replace(KNOBS, max_num_batched_tokens=(4, 8, 65_536))))
    budgets = dict(zip(found.batch.tolist(), found.batched_tokens.tolist(), strict=True))
    assert [budgets[batch] for batch in (1, 4, 5, 8, 9, 48)] == [4, 4, 8, 8, 65_536, 65_536]
    own = {budget: catalog.kv(QWEN, Shape(), budget).tokens_per_rank for budget in (4, 8, 65_536)}
    assert own[65_536] < own[8]
    assert [each.tokens_per_rank for each in found.estimates] == [own[budget] for budget in budgets.values()]


def test_a_budget_below_a_batch_leaves_it_out(catalog: Catalog) -> None:
    found = rows(catalog, role("decode", replace(KNOBS, max_num_batched_tokens=(3,))))
    assert found.batch.tolist() == [1, 2, 3]


@pytest.mark.parametrize("kind", ["prefill", "decode", "agg"])
def test_the_longest_request_fits_in_whole_blocks(kind: RoleKind, catalog: Catalog) -> None:
    """An engine takes blocks, never a part of one, and does not start without room for its maximum length."""
    tokens = catalog.kv(QWEN, Shape(), 8192).tokens_per_rank
    knobs = replace(KNOBS, max_num_batched_tokens=(8192,))
    assert len(rows(catalog, role(kind, replace(knobs, block_size=(tokens,)))).batch) > 0
    for block, longest in ((tokens + 1, 3300), (tokens * 2 // 3, tokens - 1)):
        with pytest.raises(NoRow) as refused:
            rows(catalog, role(kind, replace(knobs, block_size=(block,)), longest))
        assert refused.value.reason == "kv_capacity"
        assert f"blocks of {block:,}" in refused.value.detail


def test_many_prompts_that_no_budget_covers(catalog: Catalog) -> None:
    for batches, words in (((1000,), "covers 1,000 prompts of 3,000 tokens"), ((600,), "covers 600 prompts")):
        with pytest.raises(NoRow, match=words):
            rows(catalog, role("prefill"), constants=RateMatching(prefill_batches=batches))
    few = replace(KNOBS, max_num_seqs=(1,))
    with pytest.raises(NoRow, match=r"no listed limit of sequences \(1\) allows 2"):
        rows(catalog, role("prefill", few), constants=RateMatching(prefill_batches=(2,)))


@pytest.mark.parametrize("kind", ["prefill", "decode", "agg"])
def test_listed_sequences_bound_the_batch(kind: RoleKind, catalog: Catalog) -> None:
    knobs = replace(KNOBS, max_num_seqs=(2, 4))
    constants = RateMatching(prefill_batches=(1, 4, 5))
    assert int(rows(catalog, role(kind, knobs), constants=constants).batch.max()) == 4


def test_a_budget_holds_the_prompt_tokens_and_a_token_of_each_decoding_sequence(catalog: Catalog) -> None:
    """vLLM's budget is for all tokens of a pass: 512 prompt tokens beside 52 sequences are a budget of 564."""
    own = replace(KNOBS, ctx_tokens=(512,))
    found = rows(catalog, role("agg", own))
    fine = ~np.isin(found.batched_tokens, KNOBS.max_num_batched_tokens)
    assert (found.batched_tokens[fine] == 512 + found.batch[fine]).all()
    at = int(np.flatnonzero(fine & (found.batch == 24))[0])
    direct = agg_rows(catalog, QWEN, Shape(), isl=3000, osl=300, points=[(24, 512)])
    assert found.tpot_ms[at] == direct.tpot_ms[0]
    listed = int(np.flatnonzero((found.batched_tokens == 8192) & (found.batch == 24))[0])
    assert (
        found.tpot_ms[listed]
        == agg_rows(catalog, QWEN, Shape(), isl=3000, osl=300, points=[(24, 8192 - 24)]).tpot_ms[0]
    )


def test_sglang_bounds_the_prompt_tokens_alone(catalog: Catalog) -> None:
    sglang = PerfIdentity("Qwen/Qwen3-32B", "h200_sxm", "sglang", "0.5.16")
    knobs = replace(KNOBS, ctx_tokens=(512,), block_size=(1,))
    found = rows(catalog, replace(role("agg", knobs), identity=sglang))
    assert set(found.batched_tokens.tolist()) == {512, 8192, 16384}


def test_an_aggregated_batch_never_exceeds_its_token_budget(catalog: Catalog) -> None:
    knobs = replace(KNOBS, max_num_batched_tokens=(16, 64))
    found = rows(catalog, role("agg", knobs), Workload(isl=8, osl=300, saturated=True))
    assert {16, 64} == set(found.batched_tokens.tolist())
    assert {budget: int(found.batch[found.batched_tokens == budget].max()) for budget in (16, 64)} == {16: 15, 64: 60}


@pytest.mark.parametrize("kind", ["prefill", "decode", "agg"])
def test_each_row_holds_the_longest_request(kind: RoleKind, catalog: Catalog) -> None:
    """The bound is above the room at the larger budget, and below that at the smaller one."""
    small = catalog.kv(QWEN, Shape(), 512).tokens_per_rank
    large = catalog.kv(QWEN, Shape(), 16384).tokens_per_rank
    assert large < small
    knobs = replace(KNOBS, max_num_batched_tokens=(512, 16384))
    workload = Workload(isl=300, osl=300, saturated=True)
    found = rows(catalog, role(kind, knobs, longest=large), workload)
    assert set(found.batched_tokens.tolist()) == {512}
    with pytest.raises(NoRow) as refused:
        rows(catalog, role(kind, knobs, longest=small), workload)
    assert refused.value.reason == "kv_capacity"
    assert f"{small:,} KV tokens per rank" in refused.value.detail
    assert f"longest request of {small:,} tokens" in refused.value.detail


def test_a_prompt_beyond_every_listed_budget(catalog: Catalog) -> None:
    with pytest.raises(NoRow) as refused:
        rows(catalog, role("prefill"), Workload(isl=16385, osl=1, saturated=True))
    assert refused.value.reason == "resource_limit"
    assert refused.value.detail == "tp1: no listed token budget (8,192, 16,384) covers a prompt of 16,385 tokens"


def test_no_batch_fills_a_large_pass_of_small_prompts(catalog: Catalog) -> None:
    with pytest.raises(NoRow) as refused:
        rows(catalog, role("agg"), Workload(isl=10, osl=10, saturated=True))
    assert refused.value.reason == "resource_limit"
    assert "prompts of 10 tokens for a pass of 8,192, 16,384 tokens" in refused.value.detail


def test_rates_within_little_s_law() -> None:
    rate = within_slots(np.array([5.0, 30.0]), np.array([2, 2]), np.array([100.0, 100.0]))
    assert rate.tolist() == [5.0, 20.0]


def test_one_shape_without_rows_leaves_the_others(catalog: Catalog) -> None:
    asked = RoleInput("decode", QWEN, (Shape(), Shape(tp=2)), KNOBS, catalog.kv(QWEN, Shape(), 8192).tokens_per_rank)
    found = role_table(catalog, asked, WORKLOAD, CONSTANTS)
    assert [known.shape.label for known in found.shapes] == ["tp2"]
    assert [(out.shape.label, out.status, out.reason) for out in found.skipped] == [
        ("tp1", "infeasible", "kv_capacity")
    ]
    assert [shape.label for shape in found.reached] == ["tp2", "tp1"]
    assert set(found.gpus.tolist()) == {2}


def test_a_stop_leaves_the_remaining_shapes(catalog: Catalog) -> None:
    asked = RoleInput("decode", QWEN, (Shape(), Shape(tp=2)), KNOBS, 3300)
    answers = iter((False, True))
    done: list[str] = []
    found = role_table(
        catalog, asked, WORKLOAD, CONSTANTS, progress=lambda shape: done.append(shape.label), stop=lambda: next(answers)
    )
    assert ([shape.label for shape in found.reached], done) == (["tp1"], ["tp1"])


def test_ranks_multiply_slots(catalog: Catalog) -> None:
    moe = PerfIdentity("openai/gpt-oss-120b", "h200_sxm", "vllm", "0.24.0")
    asked = RoleInput("decode", moe, (Shape(attention_dp=4, moe_ep=4),), KNOBS, 3300)
    found = role_table(catalog, asked, WORKLOAD, CONSTANTS)
    assert (found.slots == 4 * found.batch).all()
    assert set(found.gpus.tolist()) == {4}
    assert (found.kv_tokens >= found.batch * 3300).all()


@pytest.mark.parametrize("kind", ["prefill", "decode", "agg"])
@pytest.mark.parametrize(
    ("backend", "version", "block"), [("vllm", "0.24.0", 64), ("sglang", "0.5.16", 1), ("trtllm", "1.3.0rc20", 32)]
)
def test_every_row_is_one_that_the_backend_can_be_given(
    kind: RoleKind, backend: Backend, version: str, block: int, catalog: Catalog
) -> None:
    """TensorRT-LLM takes budgets of whole blocks: small passes are rounded up, and estimated as they are rendered."""
    knobs = replace(KNOBS, block_size=(block,), ctx_tokens=(512, 3000))
    identity = PerfIdentity(QWEN.model, QWEN.sku, backend, version)
    found = rows(catalog, RoleInput(kind, identity, (Shape(),), knobs, 3300))
    assert len(found.batch)
    for batch, budget in zip(found.batch.tolist(), found.batched_tokens.tolist(), strict=True):
        limits = {"max_num_batched_tokens": budget, "block_size": block, "max_num_seqs": batch}
        assert knob_problems(backend, shape=Shape(), **limits) == []


@pytest.mark.parametrize("kind", ["prefill", "decode"])
def test_a_listed_budget_that_no_flag_expresses_makes_no_row(kind: RoleKind, catalog: Catalog) -> None:
    knobs = replace(KNOBS, max_num_batched_tokens=(8200,), block_size=(32,))
    identity = PerfIdentity(QWEN.model, QWEN.sku, "trtllm", "1.3.0rc20")
    with pytest.raises(NoRow, match="8200 is no multiple of tokens_per_block 32") as refused:
        rows(catalog, RoleInput(kind, identity, (Shape(),), knobs, 3300))
    assert refused.value.reason == "backend_topology"
