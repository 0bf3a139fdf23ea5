"""Numbers of deployments: those of engine.md section 3, and equality with trying all counts."""

import pytest
from dgdr_api.shape import Shape
from dgdr_job.space.counts import agg_counts, agg_pairs, disagg_count, disagg_pairs, most_decode_workers
from dgdr_job.space.limits import Limits
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
    assert disagg_pairs(shapes, shapes, limits) == disagg


caps = st.none() | st.integers(1, 30)


@st.composite
def bounds(draw: st.DrawFn) -> Limits:
    budget = draw(st.integers(1, 40))
    return Limits(
        gpu_budget=budget,
        min_gpu_budget=draw(st.integers(1, budget)),
        max_prefill_gpus=draw(caps),
        max_decode_gpus=draw(caps),
        max_prefill_workers=draw(caps),
        max_decode_workers=draw(caps),
    )


widths = st.sampled_from([1, 2, 3, 4, 8, 16]).map(lambda gpus: Shape(tp=gpus))


@given(limits=bounds(), prefill=widths, decode=widths)
def test_counts_equal_trying_all(limits: Limits, prefill: Shape, decode: Shape) -> None:
    no_cap = 10**9
    deployments = [
        (p, d)
        for p in range(1, 41)
        for d in range(1, 41)
        if limits.min_gpu_budget <= p * prefill.gpus + d * decode.gpus <= limits.gpu_budget
        and p <= (limits.max_prefill_workers or no_cap)
        and d <= (limits.max_decode_workers or no_cap)
        and p * prefill.gpus <= (limits.max_prefill_gpus or no_cap)
        and d * decode.gpus <= (limits.max_decode_gpus or no_cap)
    ]
    assert disagg_count(prefill, decode, limits) == len(deployments)
    assert most_decode_workers(prefill, decode, limits) == max((d for _, d in deployments), default=0)
    assert list(agg_counts(prefill, limits)) == [
        n for n in range(1, 41) if limits.min_gpu_budget <= n * prefill.gpus <= limits.gpu_budget
    ]
