"""Numbers of deployments: those of engine.md section 3, and equality with trying all counts."""

import math

import pytest
from dgdr_api.shape import Shape
from dgdr_job.matching.reference import deployments
from dgdr_job.space.counts import agg_counts, agg_pairs, count_deployments, most_workers_of, pool_pairs
from dgdr_job.space.limits import Limits, PoolName, SharedCap
from hypothesis import given
from hypothesis import strategies as st

DENSE = [Shape(tp=gpus) for gpus in (1, 2, 4, 8, 16)]
MOE = [
    Shape(),
    *(
        shape
        for gpus in (2, 4, 8, 16)
        for shape in (
            Shape(tp=gpus, moe_ep=gpus),
            Shape(attention_dp=gpus, moe_ep=gpus),
            Shape(tp=gpus, moe_tp=gpus),
            Shape(attention_dp=gpus, moe_tp=gpus),
        )
    ),
]


@pytest.mark.parametrize(
    ("shapes", "budget", "agg", "disagg"),
    [(DENSE, 4, 7, 11), (DENSE, 8, 15, 71), (DENSE, 16, 31, 367), (MOE, 8, 36, 332)],
)
def test_counts_of_the_specification(shapes: list[Shape], budget: int, agg: int, disagg: int) -> None:
    limits = Limits(gpu_budget=budget)
    assert agg_pairs(shapes, limits) == agg
    assert pool_pairs({"prefill": shapes, "decode": shapes}, limits) == disagg


caps = st.none() | st.integers(1, 30)


SHARING: list[frozenset[PoolName]] = [
    frozenset(),
    frozenset({"prefill", "encode"}),
    frozenset({"prefill", "decode"}),
    frozenset({"decode", "encode"}),
]


@st.composite
def bounds(draw: st.DrawFn) -> Limits:
    budget = draw(st.integers(1, 40))
    shared = draw(st.sampled_from(SHARING))
    return Limits(
        gpu_budget=budget,
        min_gpu_budget=draw(st.integers(1, budget)),
        max_prefill_gpus=draw(caps),
        max_decode_gpus=draw(caps),
        max_encode_gpus=draw(caps),
        max_prefill_workers=draw(caps),
        max_decode_workers=draw(caps),
        max_encode_workers=draw(caps),
        shared=(SharedCap(shared, draw(st.integers(1, 30))),) if shared else (),
    )


pools = st.sampled_from([("prefill", "decode"), ("decode", "encode"), ("prefill", "decode", "encode")]).flatmap(
    lambda names: st.fixed_dictionaries({name: st.sampled_from([1, 2, 3, 4, 8, 16]) for name in names})
)


@given(limits=bounds(), gpus=pools)
def test_counts_equal_trying_all(limits: Limits, gpus: dict[PoolName, int]) -> None:
    every = [counts for counts, _ in deployments(gpus, limits)]
    assert count_deployments(gpus, limits) == len(every)
    for pool in gpus:
        assert most_workers_of(pool, gpus, limits) == max((counts[pool] for counts in every), default=0)


@given(limits=bounds(), gpus=st.sampled_from([1, 2, 3, 4, 8, 16]))
def test_counts_of_one_pool(limits: Limits, gpus: int) -> None:
    assert list(agg_counts(Shape(tp=gpus), limits)) == [
        n for n in range(1, 41) if limits.min_gpu_budget <= n * gpus <= limits.gpu_budget
    ]


@given(limits=bounds(), shapes=st.lists(st.sampled_from(MOE), min_size=1, max_size=6))
def test_pairs_of_shapes_are_summed(limits: Limits, shapes: list[Shape]) -> None:
    few = [Shape(), Shape(tp=2)]
    expected = sum(
        count_deployments({"prefill": p.gpus, "decode": d.gpus, "encode": e.gpus}, limits)
        for p in shapes
        for d in shapes
        for e in few
    )
    assert pool_pairs({"prefill": shapes, "decode": shapes, "encode": few}, limits) == expected


def test_the_largest_budget_is_counted_at_once() -> None:
    """Choose(n, 3) ways to split up to n GPUs among three pools of one GPU a worker."""
    n = 65_536
    assert count_deployments({"prefill": 1, "decode": 1, "encode": 1}, Limits(gpu_budget=n)) == math.comb(n, 3)
