"""Counts of one role equal trying all counts in exact arithmetic."""

from typing import get_args

import numpy as np
from dgdr_job.matching import reference, replicas
from dgdr_job.matching.arrays import Goal
from dgdr_job.matching.matched import concatenate
from dgdr_job.space.limits import Limits
from hypothesis import given, settings
from hypothesis import strategies as st

GOALS: tuple[Goal, ...] = get_args(Goal)
INFINITE = float("inf")

Row = tuple[float, int, int, float, float]
rates = st.one_of(st.integers(1, 9).map(float), st.integers(1, 40).map(lambda n: n / 7))
row = st.tuples(
    rates,
    st.sampled_from([1, 2, 3, 4, 8]),
    st.integers(1, 6),
    st.one_of(st.just(INFINITE), rates.map(lambda rate: 4 * rate)),
    st.one_of(st.just(0.0), rates),
)


@st.composite
def limits(draw: st.DrawFn) -> Limits:
    budget = draw(st.integers(1, 40))
    return Limits(gpu_budget=budget, min_gpu_budget=draw(st.integers(1, budget)))


def rows_of(rows: list[Row]) -> replicas.Rows:
    columns = list(zip(*rows, strict=True))
    return replicas.Rows(
        rate=np.array(columns[0]),
        gpus=np.array(columns[1], dtype=np.int64),
        least_workers=np.array(columns[2], dtype=np.int64),
        offered_rate=np.array(columns[3]),
        needed_rate=np.minimum(np.array(columns[4]), np.array(columns[3])),
    )


@settings(max_examples=400, deadline=None)
@given(rows=st.lists(row, min_size=1, max_size=5), limits=limits(), goal=st.sampled_from(GOALS))
def test_best_counts_equal_trying_all(rows: list[Row], limits: Limits, goal: Goal) -> None:
    found = replicas.best_replicas(rows_of(rows), limits, goal)
    mine = dict(zip(found.pair.tolist(), found.decode_workers.tolist(), strict=True))
    for index, (rate, gpus, least, offered, needed) in enumerate(rows):
        expected = reference.best_count(
            rate,
            gpus,
            limits,
            goal,
            least_workers=least,
            offered_rate=offered,
            needed_rate=min(needed, offered),
        )
        assert mine.get(index) == expected


@settings(max_examples=200, deadline=None)
@given(rows=st.lists(row, min_size=1, max_size=4), limits=limits())
def test_all_replicas_are_the_frontier_of_rate_and_gpus(rows: list[Row], limits: Limits) -> None:
    found = concatenate(list(replicas.all_replicas(rows_of(rows), limits)))
    for index, (rate, gpus, least, offered, needed) in enumerate(rows):
        served = {
            count: min(rate * count, offered)
            for count in range(least, limits.gpu_budget // gpus + 1)
            if count * gpus >= limits.min_gpu_budget and rate * count >= min(needed, offered) * (1 - 1e-12)
        }
        frontier = [
            count
            for count in served
            if not any(other < count and served[other] >= served[count] * (1 - 1e-12) for other in served)
        ]
        mine = found.pair == index
        assert found.decode_workers[mine].tolist() == frontier
        assert found.rate[mine].tolist() == [served[count] for count in frontier]
        assert found.gpus[mine].tolist() == [count * gpus for count in frontier]


def test_a_load_beyond_every_budget_fits_no_count() -> None:
    rows = rows_of([(0.5, 1, 1, 1e15, 1e15), (0.5, 1, 2**31 - 1, INFINITE, 0.0)])
    for goal in GOALS:
        assert replicas.best_replicas(rows, Limits(gpu_budget=65_536), goal).pair.tolist() == []
