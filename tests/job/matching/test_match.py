"""The vectorised matching equals trying all counts in exact arithmetic, ties included."""

from collections import Counter
from fractions import Fraction
from random import Random
from typing import NamedTuple, get_args

import numpy as np
import pytest
from dgdr_job.matching import match, reference
from dgdr_job.matching.arrays import ONE_PRICE, Goal, Prices
from dgdr_job.matching.matched import concatenate
from dgdr_job.matching.tuples import Pool, Tuples
from dgdr_job.search.branches import limits_of
from dgdr_job.search.config import SearchSpace
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


def pairs_of(rows: list[Row]) -> Tuples:
    columns = list(zip(*rows, strict=True))
    return Tuples(
        (
            Pool("prefill", np.array(columns[0]), np.array(columns[1], dtype=np.int64)),
            Pool(
                "decode",
                np.array(columns[2]),
                np.array(columns[3], dtype=np.int64),
                np.array(columns[4], dtype=np.int64),
            ),
        ),
        offered_rate=np.array(columns[5]),
        needed_rate=np.minimum(np.array(columns[6]), np.array(columns[5])),
    )


prices = st.one_of(
    st.sampled_from([ONE_PRICE, Prices(5.0, 5.0), Prices(0.2, 0.2)]),
    st.builds(Prices, st.integers(1, 6).map(float), st.integers(1, 6).map(float)),  # ties of cost
    st.builds(Prices, st.floats(0.25, 8.0), st.floats(0.25, 8.0)),
)


@settings(max_examples=1500, deadline=None)
@given(rows=st.lists(row, min_size=1, max_size=6), limits=limits(), goal=st.sampled_from(GOALS), prices=prices)
def test_best_counts_equal_trying_all(rows: list[Row], limits: Limits, goal: Goal, prices: Prices) -> None:
    found = match.best_deployments(pairs_of(rows), limits, goal, prices)
    by_pair = {
        int(k): {"prefill": int(p), "decode": int(d)}
        for k, p, d in zip(found.pair, found.prefill_workers, found.decode_workers, strict=True)
    }
    for index, (prefill_rate, g_p, decode_rate, g_d, least_d, offer, need) in enumerate(rows):
        expected = reference.best_counts(
            {"prefill": (prefill_rate, g_p), "decode": (decode_rate, g_d)},
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
        for counts, total in reference.deployments({"prefill": g_p, "decode": g_d}, limits):
            p, d = counts["prefill"], counts["decode"]
            capacity = min(prefill_rate * p, decode_rate * d)
            if d < least_d or capacity < min(need, offer) * (1 - 1e-12):
                continue
            rate = min(capacity, offer)
            covered = (found.gpus[mine] <= total) & (found.rate[mine] >= rate * (1 - 1e-9))
            covered &= cost <= (p * g_p * prices.prefill + d * g_d * prices.decode) * (1 + 1e-9)
            assert covered.any(), (p, d, total, rate)


@settings(max_examples=200, deadline=None)
@given(
    rows=st.lists(row, min_size=2, max_size=8),
    limits=limits(),
    goal=st.sampled_from(GOALS),
    prices=prices,
    random=st.randoms(use_true_random=False),
)
def test_the_order_of_the_pairs_does_not_matter(
    rows: list[Row], limits: Limits, goal: Goal, prices: Prices, random: Random
) -> None:
    """Each pair has the same bytes of answer, whatever stands before and after it."""
    order = list(range(len(rows)))
    random.shuffle(order)

    def answers(chosen: list[int]) -> dict[int, tuple[int, int, int, float]]:
        found = match.best_deployments(pairs_of([rows[index] for index in chosen]), limits, goal, prices)
        columns = (found.prefill_workers, found.decode_workers, found.gpus, found.rate)
        values = zip(*(column.tolist() for column in columns), strict=True)
        return dict(zip((chosen[k] for k in found.pair.tolist()), values, strict=True))

    assert answers(order) == answers(sorted(order))


class SkuCaps(NamedTuple):
    """The limits as the request says them: in all, and of each GPU type."""

    budget: int
    least: int
    caps: dict[str, int]
    skus: tuple[str, str]


@st.composite
def sku_caps(draw: st.DrawFn) -> SkuCaps:
    budget = draw(st.integers(2, 32))
    caps = {sku: draw(st.integers(1, 32)) for sku in draw(st.sets(st.sampled_from(["h100_sxm", "h200_sxm"])))}
    skus = draw(st.tuples(*[st.sampled_from(["h100_sxm", "h200_sxm"])] * 2))
    return SkuCaps(budget, draw(st.integers(1, budget)), caps, skus)


@settings(max_examples=1000, deadline=None)
@given(
    rates=st.tuples(rates, rates),
    sizes=st.tuples(gpus, gpus),
    asked=sku_caps(),
    goal=st.sampled_from(GOALS),
    prices=prices,
)
def test_caps_of_gpu_types_equal_trying_all_counts_against_each_cap(
    rates: tuple[float, float], sizes: tuple[int, int], asked: SkuCaps, goal: Goal, prices: Prices
) -> None:
    """From the request's caps, one by one, in exact arithmetic, to the counts that the matching finds."""
    space = SearchSpace(
        model_name="m",
        hardware_sku="h200_sxm",
        prefill_hardware_sku=asked.skus[0],
        decode_hardware_sku=asked.skus[1],
        deployment_mode=("disagg",),
        backend=("vllm",),
        backend_version={"vllm": "0.24.0"},
        gpu_budget=asked.budget,
        min_gpu_budget=asked.least,
        gpu_budget_by_sku=asked.caps,
    )
    best: tuple[Fraction, ...] | None = None
    for p in range(1, asked.budget + 1):
        for d in range(1, asked.budget + 1):
            used = Counter({asked.skus[0]: p * sizes[0]}) + Counter({asked.skus[1]: d * sizes[1]})
            total = sum(used.values())
            if not asked.least <= total <= asked.budget or any(used[sku] > cap for sku, cap in asked.caps.items()):
                continue
            rate = min(Fraction(rates[0]) * p, Fraction(rates[1]) * d)
            cost = Fraction(prices.prefill) * p * sizes[0] + Fraction(prices.decode) * d * sizes[1]
            value = {"rate_per_gpu": rate / total, "rate_per_cost": rate / cost, "rate": rate}.get(
                goal, Fraction(-total)
            )
            found = (value, Fraction(-total), rate, Fraction(-d), Fraction(-p))
            best = found if best is None else max(best, found)
    rows: list[Row] = [(rates[0], sizes[0], rates[1], sizes[1], 1, float("inf"), 0.0)]
    matched = match.best_deployments(pairs_of(rows), limits_of(space, "disagg"), goal, prices)
    if best is None:
        assert len(matched) == 0
        return
    p, d = int(matched.prefill_workers[0]), int(matched.decode_workers[0])
    rate = min(Fraction(rates[0]) * p, Fraction(rates[1]) * d)
    total = p * sizes[0] + d * sizes[1]
    cost = Fraction(prices.prefill) * p * sizes[0] + Fraction(prices.decode) * d * sizes[1]
    value = {"rate_per_gpu": rate / total, "rate_per_cost": rate / cost, "rate": rate}.get(goal, Fraction(-total))
    tie = abs(best[0]) * Fraction(1, 10**12)
    assert value >= best[0] - tie
    if value == best[0]:
        assert (Fraction(-total), rate) >= (best[1], best[2] * (1 - Fraction(1, 10**12)))
    used = Counter({asked.skus[0]: p * sizes[0]}) + Counter({asked.skus[1]: d * sizes[1]})
    assert total <= asked.budget
    assert all(used[sku] <= cap for sku, cap in asked.caps.items())


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
