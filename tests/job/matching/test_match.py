"""The vectorised matching equals trying all counts in exact arithmetic, ties included."""

from typing import get_args

import numpy as np
import pytest
from dgdr_job.matching import match, reference
from dgdr_job.matching.arrays import ONE_PRICE, Goal, Prices
from dgdr_job.matching.matched import concatenate
from dgdr_job.space.limits import Limits
from hypothesis import given, settings
from hypothesis import strategies as st

GOALS: tuple[Goal, ...] = get_args(Goal)
rates = st.one_of(
    st.integers(1, 12).map(float),  # small whole rates: many exact ties
    st.floats(0.0625, 30.0, allow_nan=False, width=32),
    st.integers(1, 40).map(lambda n: n / 7),
)
gpus = st.sampled_from([1, 2, 3, 4, 8, 16])
offered = st.one_of(st.just(float("inf")), st.floats(0.1, 40.0), st.integers(1, 30).map(float))
caps = st.none() | st.integers(1, 24)


@st.composite
def limits(draw: st.DrawFn) -> Limits:
    budget = draw(st.integers(1, 40))
    return Limits(
        gpu_budget=budget,
        min_gpu_budget=draw(st.integers(1, budget)),
        max_prefill_gpus=draw(caps),
        max_decode_gpus=draw(caps),
        max_prefill_workers=draw(caps),
        max_decode_workers=draw(caps),
    )


Row = tuple[float, int, float, int, int, float, float]
row = st.tuples(rates, gpus, rates, gpus, st.integers(1, 6), offered, st.one_of(st.just(0.0), st.floats(0.1, 20.0)))


def pairs_of(rows: list[Row]) -> match.Pairs:
    columns = list(zip(*rows, strict=True))
    return match.Pairs(
        prefill_rate=np.array(columns[0]),
        prefill_gpus=np.array(columns[1], dtype=np.int64),
        decode_rate=np.array(columns[2]),
        decode_gpus=np.array(columns[3], dtype=np.int64),
        least_decode_workers=np.array(columns[4], dtype=np.int64),
        offered_rate=np.array(columns[5]),
        needed_rate=np.minimum(np.array(columns[6]), np.array(columns[5])),
    )


prices = st.one_of(
    st.just(ONE_PRICE),
    st.builds(Prices, st.integers(1, 6).map(float), st.integers(1, 6).map(float)),  # ties of cost
    st.builds(Prices, st.floats(0.25, 8.0), st.floats(0.25, 8.0)),
)


@settings(max_examples=1500, deadline=None)
@given(rows=st.lists(row, min_size=1, max_size=6), limits=limits(), goal=st.sampled_from(GOALS), prices=prices)
def test_best_counts_equal_trying_all(rows: list[Row], limits: Limits, goal: Goal, prices: Prices) -> None:
    found = match.best_deployments(pairs_of(rows), limits, goal, prices)
    by_pair = {
        int(k): (int(p), int(d))
        for k, p, d in zip(found.pair, found.prefill_workers, found.decode_workers, strict=True)
    }
    for index, (prefill_rate, g_p, decode_rate, g_d, least_d, offer, need) in enumerate(rows):
        expected = reference.best_counts(
            (prefill_rate, g_p),
            (decode_rate, g_d),
            limits,
            goal,
            least_decode_workers=least_d,
            offered_rate=offer,
            needed_rate=min(need, offer),
            prices=prices,
        )
        assert by_pair.get(index) == expected


@settings(max_examples=300, deadline=None)
@given(rows=st.lists(row, min_size=1, max_size=4), limits=limits(), prices=prices)
def test_all_deployments_hold_the_whole_frontier_and_stay_within_the_limits(
    rows: list[Row], limits: Limits, prices: Prices
) -> None:
    pairs = pairs_of(rows)
    found = concatenate(list(match.all_deployments(pairs, limits, prices)))
    assert (found.gpus <= limits.gpu_budget).all()
    assert (found.gpus >= limits.min_gpu_budget).all()
    for index, (prefill_rate, g_p, decode_rate, g_d, least_d, offer, need) in enumerate(rows):
        mine = found.pair == index
        of_prefill = found.prefill_workers[mine] * g_p
        cost = of_prefill * prices.prefill + (found.gpus[mine] - of_prefill) * prices.decode
        for p, d, total in reference.deployments(g_p, g_d, limits):
            capacity = min(prefill_rate * p, decode_rate * d)
            if d < least_d or capacity < min(need, offer) * (1 - 1e-12):
                continue
            rate = min(capacity, offer)
            covered = (found.gpus[mine] <= total) & (found.rate[mine] >= rate * (1 - 1e-9))
            covered &= cost <= (p * g_p * prices.prefill + d * g_d * prices.decode) * (1 + 1e-9)
            assert covered.any(), (p, d, total, rate)


def test_the_order_of_the_pairs_does_not_matter() -> None:
    rows: list[Row] = [(3.3, 1, 17.0, 2, 1, float("inf"), 0.0), (2.0, 2, 9.0, 4, 1, float("inf"), 0.0)]
    limits = Limits(gpu_budget=16)
    forward = match.best_deployments(pairs_of(rows), limits, "rate_per_gpu")
    backward = match.best_deployments(pairs_of(rows[::-1]), limits, "rate_per_gpu")
    assert forward.rate.tolist() == backward.rate[::-1].tolist()


def test_chunks_hold_the_same_deployments_as_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[Row] = [(1.0 + k / 7, 1 + k % 3, 5.0 - k / 9, 1 + k % 2, 1, float("inf"), 0.0) for k in range(20)]
    limits = Limits(gpu_budget=24)

    def all_of_them() -> list[tuple[int, int, int, int, float]]:
        chunks = list(match.all_deployments(pairs_of(rows), limits))
        found = concatenate(chunks)
        columns = (found.pair, found.prefill_workers, found.decode_workers, found.gpus, found.rate)
        return sorted(zip(*(column.tolist() for column in columns), strict=True))

    whole = all_of_them()
    monkeypatch.setattr(match, "CHUNK_POINTS", 60)
    assert all_of_them() == whole
    assert len(list(match.all_deployments(pairs_of(rows), limits))) > 3


def test_at_equal_gpus_the_higher_rate_is_taken() -> None:
    """Exactly 5 GPUs: 1 + 2 serves 2/s, 3 + 1 serves 3/s on as many GPUs."""
    rows: list[Row] = [(2.0, 1, 3.0, 2, 1, float("inf"), 0.0)]
    found = match.best_deployments(pairs_of(rows), Limits(gpu_budget=5, min_gpu_budget=5), "fewest_gpus")
    assert (found.prefill_workers[0], found.decode_workers[0], found.rate[0]) == (3, 1, 3.0)


def test_numbers_far_beyond_every_budget_fit_no_deployment_and_raise_nothing() -> None:
    """A rate or concurrency that no count reaches must not overflow into a negative count."""
    rows: list[Row] = [
        (0.001, 1, 0.001, 1, 1, 1e15, 1e15),
        (1.0, 1, 1.0, 1, 2**31 - 1, 2.0, 0.0),
        (1e-300, 16, 1e-300, 16, 1, 1e15, 1e15),
    ]
    for goal in GOALS:
        assert match.best_deployments(pairs_of(rows), Limits(gpu_budget=4096), goal).pair.tolist() == []


def test_no_pairs_make_no_deployments() -> None:
    none = pairs_of([(1.0, 1, 1.0, 1, 1, float("inf"), 0.0)]).take(np.empty(0, dtype=np.int64))
    assert match.best_deployments(none, Limits(gpu_budget=8), "rate").pair.tolist() == []
    assert concatenate(list(match.all_deployments(none, Limits(gpu_budget=8)))).pair.tolist() == []


def test_the_peer_s_best_row_is_beaten_by_counts_it_does_not_try() -> None:
    """Qwen3-32B on 16 H200 (engine.md section 6): 12 prefill + 2 decode is the peer's, 11 + 2 serves more per GPU."""
    rows: list[Row] = [(3.3054 * 0.9, 1, 18.5182 * 0.92, 2, 1, float("inf"), 0.0)]
    found = match.best_deployments(pairs_of(rows), Limits(gpu_budget=16), "rate_per_gpu")
    assert (found.prefill_workers[0], found.decode_workers[0], found.gpus[0]) == (11, 2, 15)
    assert found.rate[0] * 300 / found.gpus[0] > 638.87
