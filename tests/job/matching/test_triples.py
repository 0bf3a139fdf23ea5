"""Matching of encode, prefill and decode, or encode and aggregated, equals trying all counts in exact arithmetic."""

from dataclasses import replace
from random import Random
from typing import get_args

import numpy as np
import pytest
from dgdr_job.matching import match, reference
from dgdr_job.matching.arrays import ONE_PRICE, Goal, Ints, Prices
from dgdr_job.matching.fixed_decode import FixedDecode, all_others, best_others
from dgdr_job.matching.matched import Matched, concatenate
from dgdr_job.matching.tuples import Pool, Tuples
from dgdr_job.space.limits import Limits, PoolName, SharedCap
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.job.matching.pools import E_AGG, EPD, Row, limits, prices, rows, tuples_of

GOALS: tuple[Goal, ...] = get_args(Goal)
cases = st.one_of(
    st.tuples(rows(EPD, 5), limits(EPD, 13)),
    st.tuples(rows(E_AGG, 6), limits(E_AGG, 30)),
)


def counts_of(found: Matched, at: int, names: tuple[PoolName, ...]) -> dict[PoolName, int]:
    return {name: int(getattr(found, f"{name}_workers")[at]) for name in names}


@settings(max_examples=2500, deadline=None)
@given(case=cases, goal=st.sampled_from(GOALS), prices=prices)
def test_best_counts_equal_trying_all(case: tuple[list[Row], Limits], goal: Goal, prices: Prices) -> None:
    rows, limits = case
    names = tuple(rows[0].pools)
    found = match.best_deployments(tuples_of(rows), limits, goal, prices)
    mine = {index: counts_of(found, at, names) for at, index in enumerate(found.pair.tolist())}
    for index, row in enumerate(rows):
        assert mine.get(index) == reference.best_counts(
            row.pools,
            limits,
            goal,
            least_decode_workers=row.least_decode_workers,
            offered_rate=row.offered_rate,
            needed_rate=row.needed_rate,
            prices=prices,
        )


@settings(max_examples=600, deadline=None)
@given(case=cases, prices=prices)
def test_all_deployments_hold_the_whole_frontier_and_stay_within_the_limits(
    case: tuple[list[Row], Limits], prices: Prices
) -> None:
    rows, limits = case
    names = tuple(rows[0].pools)
    found = concatenate(list(match.all_deployments(tuples_of(rows), limits, prices)))
    for index, row in enumerate(rows):
        mine = found.take((found.pair == index).nonzero()[0])
        gpus_of = {name: gpus for name, (_, gpus) in row.pools.items()}
        cost = sum(getattr(mine, f"{name}_workers") * gpus * prices.of(name) for name, gpus in gpus_of.items())
        legal = {tuple(counts.values()): total for counts, total in reference.deployments(gpus_of, limits)}
        for at in range(len(mine)):
            assert legal[tuple(counts_of(mine, at, names).values())] == mine.gpus[at]
        for counts, total in reference.deployments(gpus_of, limits):
            capacity = min(row.pools[name][0] * count for name, count in counts.items())
            if counts["decode"] < row.least_decode_workers or capacity < row.needed_rate * (1 - 1e-12):
                continue
            price = sum(counts[name] * gpus_of[name] * prices.of(name) for name in names)
            covered = (mine.gpus <= total) & (mine.rate >= min(capacity, row.offered_rate) * (1 - 1e-9))
            assert (covered & (cost <= price * (1 + 1e-9))).any(), counts


@settings(max_examples=200, deadline=None)
@given(case=cases, goal=st.sampled_from(GOALS), prices=prices, random=st.randoms(use_true_random=False))
def test_the_order_of_the_tuples_does_not_matter(
    case: tuple[list[Row], Limits], goal: Goal, prices: Prices, random: Random
) -> None:
    rows, limits = case
    order = list(range(len(rows)))
    random.shuffle(order)

    def answers(chosen: list[int]) -> dict[int, tuple[dict[PoolName, int], float]]:
        found = match.best_deployments(tuples_of([rows[index] for index in chosen]), limits, goal, prices)
        return {
            chosen[k]: (counts_of(found, at, tuple(rows[0].pools)), float(found.rate[at]))
            for at, k in enumerate(found.pair.tolist())
        }

    assert answers(order) == answers(sorted(order))


def test_parts_hold_the_same_as_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    some = [
        Row({"prefill": (1 + k / 7, 1 + k % 3), "decode": (5 - k / 9, 1 + k % 2), "encode": (3.0, 1)}, 1, 99.0, 0.0)
        for k in range(20)
    ]
    limits = Limits(gpu_budget=24)
    whole = match.best_deployments(tuples_of(some), limits, "rate_per_gpu")
    monkeypatch.setattr(match, "CHUNK_TUPLES", 7)
    parts = match.best_deployments(tuples_of(some), limits, "rate_per_gpu")
    assert parts.pair.tolist() == whole.pair.tolist() == list(range(20))
    assert parts.encode_workers.tolist() == whole.encode_workers.tolist()
    assert parts.rate.tolist() == whole.rate.tolist()


@settings(max_examples=800, deadline=None)
@given(
    case=st.tuples(rows(EPD, 4), limits(EPD, 14)) | st.tuples(rows(E_AGG, 6), limits(E_AGG, 30)),
    goal=st.sampled_from(GOALS),
    prices=prices,
)
def test_with_given_decode_workers_the_others_equal_trying_all(
    case: tuple[list[Row], Limits], goal: Goal, prices: Prices
) -> None:
    """As many least and most decode workers: what a KV load ratio asks for each number of them."""
    rows, limits = case
    names = tuple(rows[0].pools)
    most_gpus, most_workers = limits.caps("decode")
    alone = [cap.gpus for cap in limits.shared if cap.pools == {"decode"}]
    most_gpus = min([limits.gpu_budget, *alone] if most_gpus is None else [most_gpus, *alone])
    fits = [
        at
        for at, row in enumerate(rows)
        if row.least_decode_workers * row.pools["decode"][1] <= most_gpus
        and row.least_decode_workers <= (most_workers or row.least_decode_workers)
    ]
    tuples = tuples_of(rows).take(np.array(fits, dtype=np.int64))
    decode = tuples.pool("decode")
    workers = np.array([rows[at].least_decode_workers for at in fits], dtype=np.int64)
    entries = FixedDecode(
        pair=np.array(fits, dtype=np.int64),
        decode_workers=workers,
        others=tuple(pool for pool in tuples.pools if pool is not decode),
        decode_rate=decode.rate * workers,
        decode_gpus=decode.gpus * workers,
        offered_rate=tuples.offered_rate,
        needed_rate=tuples.needed_rate,
    )
    found = best_others(entries, limits, goal, prices)
    every = concatenate(list(all_others(entries, limits, prices)))
    mine = {index: at for at, index in enumerate(found.pair.tolist())}
    for index, row in enumerate(rows):
        count = row.least_decode_workers
        expected = reference.best_counts(
            row.pools,
            replace(limits, max_decode_workers=min(count, limits.max_decode_workers or count)),
            goal,
            least_decode_workers=count,
            offered_rate=row.offered_rate,
            needed_rate=row.needed_rate,
            prices=prices,
        )
        assert (counts_of(found, mine[index], names) if index in mine else None) == expected
        if index in mine:
            better = (every.pair == index) & (every.rate >= found.rate[mine[index]] * (1 - 1e-12))
            assert (better & (every.gpus <= found.gpus[mine[index]])).any() or goal == "rate_per_cost"
            assert set(every.decode_workers[every.pair == index].tolist()) == {count}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("goal", GOALS)
def test_what_is_not_looked_at_could_not_win(goal: Goal, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On budgets beyond trying all: the same with every count of every pool, and every rate padded."""
    random = np.random.default_rng(seed)
    size, budget = 150, 40
    columns = {name: (random.uniform(0.5, 9.0, size), random.choice([1, 2, 3, 4], size)) for name in EPD}
    tuples = Tuples(
        tuple(Pool(name, rate, gpus) for name, (rate, gpus) in columns.items()),
        np.where(random.random(size) < 0.5, np.inf, random.uniform(1.0, 40.0, size)),
        np.zeros(size),
    )
    prices = Prices(*random.uniform(0.5, 4.0, 3)) if seed % 2 else ONE_PRICE
    shared = (SharedCap(frozenset({"prefill", "encode"}), 28),) if seed % 3 else ()
    limits = Limits(budget, int(random.integers(20, 39)), max_decode_gpus=24, shared=shared)
    found = match.best_deployments(tuples, limits, goal, prices)

    def every_count(tuples: Tuples, limits: Limits, most: tuple[Ints, ...]) -> tuple[Ints, ...]:
        return tuple(np.where(np.minimum.reduce(most) >= 1, each, 0) for each in most)

    monkeypatch.setattr(match, "saturated_workers", every_count)
    monkeypatch.setattr(match._Best, "could_gain", lambda *asked: asked[2])
    everything = match.best_deployments(tuples, limits, goal, prices)
    assert len(found) > size // 2
    for name in Matched.__dataclass_fields__:
        assert getattr(found, name).tolist() == getattr(everything, name).tolist()


def test_each_shared_cap_is_enforced_alone() -> None:
    """One decode worker serves 3/s; the first cap leaves room for 3 prefill, the second for 2 encode workers."""
    row = Row({"prefill": (1.0, 1), "decode": (3.0, 1), "encode": (1.0, 1)}, 1, float("inf"), 0.0)
    first, second = (SharedCap(frozenset({"prefill", "decode"}), 4), SharedCap(frozenset({"decode", "encode"}), 3))
    for shared, expected in (((first,), 3.0), ((second,), 2.0), ((first, second), 2.0), ((second, first), 2.0)):
        found = match.best_deployments(tuples_of([row]), Limits(gpu_budget=20, shared=shared), "rate")
        assert found.rate.tolist() == [expected]
