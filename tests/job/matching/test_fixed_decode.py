"""With a given number of decode workers the best prefill workers equal trying all in exact arithmetic."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from dgdr_job.matching import fixed_decode, reference
from dgdr_job.matching.arrays import ONE_PRICE, Goal, Prices
from dgdr_job.matching.fixed_decode import FixedDecode, all_others, best_others
from dgdr_job.matching.matched import concatenate
from dgdr_job.matching.tuples import Pool
from dgdr_job.space.limits import Limits
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.job.matching.test_match import Row, limits, prices, row

GOALS: tuple[Goal, ...] = get_args(Goal)


def entries_of(rows: list[Row], limits: Limits) -> FixedDecode:
    """The decode workers of a row are its least ones, where its caps allow them."""
    fitting = [
        (index, *each)
        for index, each in enumerate(rows)
        if each[4] <= (limits.max_decode_workers or each[4]) and each[4] * each[3] <= (limits.max_decode_gpus or 10**6)
    ]
    index, rate_p, g_p, rate_d, g_d, d, offered, needed = (
        (list(c) for c in zip(*fitting, strict=True)) if fitting else ([],) * 8
    )
    return FixedDecode(
        pair=np.array(index, dtype=np.int64),
        decode_workers=np.array(d, dtype=np.int64),
        others=(Pool("prefill", np.array(rate_p, dtype=np.float64), np.array(g_p, dtype=np.int64)),),
        decode_rate=np.array(rate_d, dtype=np.float64) * np.array(d, dtype=np.int64),
        decode_gpus=np.array(g_d, dtype=np.int64) * np.array(d, dtype=np.int64),
        offered_rate=np.array(offered, dtype=np.float64),
        needed_rate=np.minimum(np.array(needed, dtype=np.float64), np.array(offered, dtype=np.float64)),
    )


@settings(max_examples=800, deadline=None)
@given(rows=st.lists(row, min_size=1, max_size=6), limits=limits(), goal=st.sampled_from(GOALS), prices=prices)
def test_best_counts_equal_trying_all(rows: list[Row], limits: Limits, goal: Goal, prices: Prices) -> None:
    found = best_others(entries_of(rows, limits), limits, goal, prices)
    mine = {
        int(k): {"prefill": int(p), "decode": int(d)}
        for k, p, d in zip(found.pair, found.prefill_workers, found.decode_workers, strict=True)
    }
    for index, (rate_p, g_p, rate_d, g_d, d, offered, needed) in enumerate(rows):
        exactly = replace(limits, max_decode_workers=min(d, limits.max_decode_workers or d))
        expected = reference.best_counts(
            {"prefill": (rate_p, g_p), "decode": (rate_d, g_d)},
            exactly,
            goal,
            least_decode_workers=d,
            offered_rate=offered,
            needed_rate=min(needed, offered),
            prices=prices,
        )
        assert mine.get(index) == expected


@settings(max_examples=200, deadline=None)
@given(rows=st.lists(row, min_size=1, max_size=4), limits=limits())
def test_all_counts_are_the_frontier_of_rate_and_gpus(rows: list[Row], limits: Limits) -> None:
    entries = entries_of(rows, limits)
    found = concatenate(list(all_others(entries, limits, ONE_PRICE)))
    for at, index in enumerate(entries.pair.tolist()):
        g_p, decode_gpus = rows[index][1], int(entries.decode_gpus[at])
        served = {
            p: min(rows[index][0] * p, float(entries.decode_rate[at]), float(entries.offered_rate[at]))
            for p in range(1, 41)
            if limits.min_gpu_budget <= p * g_p + decode_gpus <= limits.gpu_budget
            and p <= (limits.max_prefill_workers or p)
            and p * g_p <= (limits.max_prefill_gpus or p * g_p)
            and min(rows[index][0] * p, float(entries.decode_rate[at])) >= float(entries.needed_rate[at]) * (1 - 1e-12)
        }
        frontier = [p for p in served if not any(q < p and served[q] >= served[p] * (1 - 1e-12) for q in served)]
        mine = found.pair == index
        assert found.prefill_workers[mine].tolist() == frontier
        assert found.rate[mine].tolist() == [served[p] for p in frontier]


def test_chunks_hold_the_same_as_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[Row] = [(1.0 + k / 7, 1, 5.0, 2, 1 + k % 4, float("inf"), 0.0) for k in range(12)]
    limits = Limits(gpu_budget=24)
    whole = concatenate(list(all_others(entries_of(rows, limits), limits, ONE_PRICE)))
    monkeypatch.setattr(fixed_decode, "CHUNK_POINTS", 10)
    parts = list(all_others(entries_of(rows, limits), limits, ONE_PRICE))
    assert len(parts) > 1
    assert concatenate(parts).prefill_workers.tolist() == whole.prefill_workers.tolist()
    assert concatenate(parts).pair.tolist() == whole.pair.tolist()


def test_no_entries_make_no_deployments() -> None:
    limits = Limits(gpu_budget=8)
    assert len(best_others(entries_of([], limits), limits, "rate", ONE_PRICE)) == 0
    assert list(all_others(entries_of([], limits), limits, ONE_PRICE)) == []
