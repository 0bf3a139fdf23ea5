"""KV load ratios: the worked numbers, and a search whose candidates each have a load of their own."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from dgdr_api.shape import Shape
from dgdr_api.terms import Metric
from dgdr_job.catalog.catalog import Catalog
from dgdr_job.catalog.provenance import SourceShares
from dgdr_job.search import own_load, static
from dgdr_job.search.config import Sla, Workload
from dgdr_job.search.mapper import search_config
from dgdr_job.search.question import Question
from dgdr_job.search.role_rows import Rows, ShapeData
from dgdr_job.search.role_table import table_of
from dgdr_job.space.limits import Limits
from dgdr_job.timing.plausibility import Plausibility
from dgdr_publisher.rendering import render_candidate

from tests.job.search import synthetic
from tests.job.search.runs import Events, run, search


def question(
    ratio: float, *, isl: int = 100, osl: int = 100, budget: int = 8, metric: Metric = "throughput"
) -> Question:
    workload = Workload(isl=isl, osl=osl)
    return Question(workload, Sla(), Limits(budget), (metric,), pareto=False, kv_load_ratio=ratio)


def in_flight(ratio: float, held: int, workers: int) -> int:
    return int(question(ratio).own_concurrency(np.array([held]), np.array([workers]))[0])


def test_a_ratio_beyond_all_numbers_is_a_load_that_nothing_carries() -> None:
    """1e15 of 4 million requests is no 64-bit number; it must not become a small or a negative one."""
    assert in_flight(1e15, 800_000_000, 1) > 10**15


@pytest.mark.parametrize("ends", [(1e-300, 1e15), (5e-324, 1.0), (0.5, math.nextafter(0.5, 1))])
def test_a_range_of_any_ends_has_five_finite_ratios(ends: tuple[float, float]) -> None:
    low, high = ends
    load = {"static": {"saturated": None, "kvLoadRatioRange": {"min": low, "max": high}}}
    ratios = search_config(run(workload=load, objective={"mode": "pareto"}), {"vllm": "0.24.0"}).workload.kv_load_ratios
    assert (ratios[0], ratios[-1]) == ends
    assert all(low <= ratio <= high for ratio in ratios)


def test_the_worked_example() -> None:
    """10,000 tokens a rank in blocks of 64, two ranks, three workers, isl 100, osl 100: engine.md section 4."""
    data = ShapeData(
        Shape(attention_dp=2, moe_ep=2),
        SourceShares(1.0, 0.0, 0.0, 0.0),
        Plausibility(2.0, 1.0, is_implausible=False),
    )
    estimate = replace(synthetic.ESTIMATE, tokens_per_rank=10_000)
    one = np.array([1], dtype=np.int64)
    rows = Rows(one, one, np.ones(1), np.ones(1), np.ones(1), (estimate,))
    held = int(table_of("decode", (data,), (), [rows], block_tokens=64).held[0])
    assert held * 3 == 59_904
    assert in_flight(1.0, held, 3) == 399
    assert in_flight(0.5, held, 3) == 199


def test_less_than_one_request_is_one_as_long_as_the_cache_holds_one() -> None:
    assert in_flight(0.001, 150, 1) == 1
    assert in_flight(0.001, 149, 1) == 0
    assert in_flight(0.001, 149, 2) == 1


def test_a_ratio_is_rounded_down_as_it_is_written() -> None:
    """0.29 * 100 is 28.999999999999996 in floating point."""
    for hundredths in range(1, 200):
        for at_once in (1, 7, 100, 12_345):
            expected = max(1, math.floor(Fraction(hundredths, 100) * at_once))
            assert in_flight(hundredths / 100, at_once * 150, 1) == expected


def test_a_cache_that_holds_no_request_is_kv_capacity() -> None:
    prefill = synthetic.table("prefill", {1: [(1, 10.0, 100.0, 0.0)]})
    decode = synthetic.table("decode", {4: [(4, 10.0, 0.0, 20.0)]}, kv_tokens=149)
    (refused,) = static.evaluate_pools((prefill, decode), question(0.5)).refusals
    assert (refused.status, refused.reason) == ("infeasible", "kv_capacity")
    assert refused.detail == (
        "the KV cache of 1 worker holds 128 tokens in whole blocks, a request takes 150 half way through its output"
    )


def test_more_than_the_engine_runs_is_a_load_that_is_not_carried() -> None:
    agg = synthetic.table("agg", {1: [(4, 10.0, 100.0, 20.0)]}, kv_tokens=6400)
    (refused,) = static.evaluate_agg(agg, question(0.5)).refusals
    assert (refused.status, refused.reason) == ("infeasible", "load_constraint")
    assert "8 workers have 170 requests in flight, of which at most 32 run at once" in refused.detail


def test_chunks_hold_every_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_load, "CHUNK_ENTRIES", 5)
    most = np.array([0, 3, 0, 9, 1, 2, -1, 4])
    parts = list(own_load.chunked_counts(most))
    assert len(parts) > 2
    found = [(int(i), int(n)) for index, count in parts for i, n in zip(index, count, strict=True)]
    assert found == [(i, n) for i, top in enumerate(most.tolist()) for n in range(1, top + 1)]


def load(**static_load: Any) -> dict[str, Any]:
    return {"static": {"saturated": None, **static_load}}


def test_a_range_is_five_geometric_ratios_with_both_ends() -> None:
    spec = run(workload=load(kvLoadRatioRange={"min": 0.1, "max": 1.6}), objective={"mode": "pareto"})
    ratios = search_config(spec, {"vllm": "0.24.0"}).workload.kv_load_ratios
    assert ratios == pytest.approx((0.1, 0.2, 0.4, 0.8, 1.6))
    assert (ratios[0], ratios[-1]) == (0.1, 1.6)
    one = search_config(run(workload=load(kvLoadRatio=0.3)), {"vllm": "0.24.0"}).workload
    assert (one.kv_load_ratios, one.concurrency, one.saturated) == ((0.3,), None, False)


def own_numbers(told: Events) -> None:
    """Each candidate's concurrency follows from its own cache, and its engine runs so many."""
    for each in told.reserve:
        last, workload = each.replay_spec.roles[-1], each.replay_spec.workload.static
        assert workload is not None
        assert workload.concurrency is not None
        ratio = Fraction(each.candidate.parameters["kvLoadRatio"]).limit_denominator(10**9)
        held = last.engine.num_gpu_blocks * last.engine.block_size * last.shape.attention_dp * last.workers
        assert workload.concurrency == max(1, math.floor(ratio * (held // 3150)))
        assert workload.concurrency <= last.engine.max_num_seqs * last.shape.attention_dp * last.workers
        assert each.candidate.parameters["workload"]["concurrency"] == workload.concurrency
        assert workload.requests == max(10 * workload.concurrency, 100)
        assert workload.warmup_requests == min(workload.concurrency, workload.requests // 10)
        rate = each.evaluation.metrics["requestThroughputPerS"]
        assert workload.concurrency == pytest.approx(rate * each.evaluation.metrics["e2eMs"] / 1000)


@pytest.mark.parametrize("topology", ["agg", "disagg"])
def test_a_search_under_a_ratio(topology: str, catalog: Catalog) -> None:
    spec = run(workload=load(kvLoadRatio=0.1), search={"topologies": [topology]})
    told = search(spec, catalog)
    assert told.completed.outcome == "SearchSucceeded"
    own_numbers(told)
    render_candidate(told.reserve[0], spec, "one")
    counters = told.completed.counters
    assert counters.scheduled == {"agg": 31, "disagg": 367}[topology]
    assert counters.remaining == 0
    assert " in flight (KV load 0.1)" in told.rows[0]["summary"]


def test_a_front_over_a_range_of_ratios(catalog: Catalog) -> None:
    spec = run(workload=load(kvLoadRatioRange={"min": 0.05, "max": 0.4}), objective={"mode": "pareto"})
    told = search(spec, catalog)
    assert {plan.name: plan.pool for plan in told.resolved.branches} == {"vllm/agg": 31 * 5, "vllm/disagg": 367 * 5}
    assert [(each.branch, each.round, each.total) for each in told.rounds] == [
        (branch, index, 5) for branch in ("vllm/agg", "vllm/disagg") for index in range(1, 6)
    ]
    ids = [row["id"] for row in told.rows]
    assert len(set(ids)) == len(ids)
    own_numbers(told)
    assert len({each.candidate.parameters["kvLoadRatio"] for each in told.reserve}) > 1
    counters = told.completed.counters
    assert counters.scheduled == (31 + 367) * 5
    assert counters.remaining == 0
    assert counters.feasible + counters.infeasible + counters.pruned == counters.scheduled
