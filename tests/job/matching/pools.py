"""Random small deployments of two and three pools, with everything that bounds them."""

from typing import NamedTuple

import numpy as np
from dgdr_job.matching.arrays import ONE_PRICE, Prices
from dgdr_job.matching.tuples import Pool, Tuples
from dgdr_job.space.limits import Limits, PoolName, SharedCap
from hypothesis import strategies as st

EPD: tuple[PoolName, ...] = ("prefill", "decode", "encode")
E_AGG: tuple[PoolName, ...] = ("decode", "encode")
rates = st.one_of(
    st.integers(1, 12).map(float),  # small whole rates: many exact ties
    st.floats(0.0625, 30.0, allow_nan=False, width=32),
    st.integers(1, 40).map(lambda n: n / 7),
)
offered = st.one_of(st.just(float("inf")), st.floats(0.1, 40.0), st.integers(1, 30).map(float))
caps = st.none() | st.integers(1, 12)
price = st.integers(1, 6).map(float) | st.floats(0.25, 8.0)
prices = st.one_of(
    st.sampled_from([ONE_PRICE, Prices(5.0, 5.0), Prices(0.2, 0.2, 0.2)]),
    st.builds(Prices, price, price, price),
    st.builds(Prices, price, price),
)


class Row(NamedTuple):
    """One tuple of rows: rate and GPUs of a worker of each pool, and the load."""

    pools: dict[PoolName, tuple[float, int]]
    least_decode_workers: int
    offered_rate: float
    needed_rate: float


@st.composite
def rows(draw: st.DrawFn, names: tuple[PoolName, ...], most: int) -> list[Row]:
    """Up to so many tuples of these pools."""
    pool = st.tuples(rates, st.sampled_from([1, 1, 2, 3, 4]))
    load = st.tuples(st.integers(1, 3), offered, st.just(0.0) | st.floats(0.1, 20.0))
    found = draw(st.lists(st.tuples(st.tuples(*[pool] * len(names)), load), min_size=1, max_size=most))
    return [
        Row(dict(zip(names, pools, strict=True)), least, offer, min(need, offer))
        for pools, (least, offer, need) in found
    ]


@st.composite
def limits(draw: st.DrawFn, names: tuple[PoolName, ...], most: int) -> Limits:
    """A budget up to so many GPUs, and any caps."""
    budget = draw(st.integers(len(names), most))
    some_pools = st.sets(st.sampled_from(names), min_size=1).map(frozenset)
    return Limits(
        gpu_budget=budget,
        min_gpu_budget=draw(st.just(1) | st.integers(1, budget)),
        max_prefill_gpus=draw(caps),
        max_decode_gpus=draw(caps),
        max_prefill_workers=draw(caps),
        max_decode_workers=draw(caps),
        max_encode_gpus=draw(caps),
        max_encode_workers=draw(caps),
        shared=tuple(draw(st.lists(st.builds(SharedCap, some_pools, st.integers(1, most)), max_size=2))),
    )


def tuples_of(rows: list[Row]) -> Tuples:
    """The same as columns."""
    pools = tuple(
        Pool(
            name,
            np.array([row.pools[name][0] for row in rows]),
            np.array([row.pools[name][1] for row in rows], dtype=np.int64),
            np.array([row.least_decode_workers for row in rows], dtype=np.int64) if name == "decode" else None,
        )
        for name in rows[0].pools
    )
    return Tuples(pools, np.array([row.offered_rate for row in rows]), np.array([row.needed_rate for row in rows]))
