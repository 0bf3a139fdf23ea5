"""The best worker counts of many pairs of rows at once, exactly.

The optimum of a pair lies where one role is just saturated: at a rate R out of {P * p}, {D * d} and the offered
rate, with the least counts that reach it, p = ceil(R / P) and d = ceil(R / D). Any feasible deployment's rate is one
of these, and least counts never cost more and stay within every cap; below the least budget a deployment is padded to
the cheapest total that can be reached. Source: engine.md section 6; `reference` is the specification, by trying all.
"""

from dataclasses import dataclass

import numpy as np

from dgdr_job.matching.arrays import TIE, Floats, Goal, Ints
from dgdr_job.space.limits import Limits

CHUNK_POINTS = 2_000_000
"""Points held in memory at once (about 150 MB of columns)."""


@dataclass(frozen=True)
class Pairs:
    """One entry per pair of a prefill row and a decode row. Rates are requests per second of one worker."""

    prefill_rate: Floats
    prefill_gpus: Ints
    decode_rate: Floats
    decode_gpus: Ints
    least_decode_workers: Ints
    """Decode workers that hold the offered concurrency; 1 without one."""
    offered_rate: Floats
    """Requests per second that the load brings; infinite when saturated."""
    needed_rate: Floats
    """Requests per second that must be reached; 0 without such a need."""

    def __len__(self) -> int:
        return len(self.prefill_rate)


@dataclass(frozen=True)
class Matched:
    """Deployments: the index of the pair, worker counts, GPUs, and the rate served in requests per second."""

    pair: Ints
    prefill_workers: Ints
    decode_workers: Ints
    gpus: Ints
    rate: Floats

    def take(self, rows: Ints) -> "Matched":
        """The deployments at these positions."""
        return Matched(
            self.pair[rows], self.prefill_workers[rows], self.decode_workers[rows], self.gpus[rows], self.rate[rows]
        )


def best_deployments(pairs: Pairs, limits: Limits, goal: Goal) -> Matched:
    """The best deployment of each pair that has one; ties: fewer GPUs, fewer decode, fewer prefill workers."""
    return _concatenate([best_of_each(points, goal) for points in _chunks(pairs, limits)])


def all_deployments(pairs: Pairs, limits: Limits) -> Matched:
    """Every deployment of each pair that no other of the same pair equals or beats in both rate and GPUs, and some more.

    A superset of the frontier: whatever is non-dominated in metrics that depend on the rows, the rate and the GPUs
    is among them.
    """
    return _concatenate(list(_chunks(pairs, limits)))


def replicas(rate: Floats, gpus: Ints, most: Ints) -> Matched:
    """Every count 1..most of each row of a topology with one role; prefill_workers is 0, decode_workers the count.

    Args:
        rate: requests per second of one worker.
        gpus: GPUs of one worker.
        most: largest count of the row, 0 where it has none.
    """
    row, count = _enumerate(np.arange(len(rate)), most)
    return Matched(row, np.zeros_like(count), count, gpus[row] * count, rate[row] * count)


def best_of_each(points: Matched, goal: Goal) -> Matched:
    """The best deployment of each pair: highest value within the tie, then fewer GPUs, decode, prefill workers."""
    if points.pair.size == 0:
        return points
    by_pair = points.take(np.argsort(points.pair, kind="stable"))
    value = _value(by_pair, goal)
    start = np.flatnonzero(np.diff(by_pair.pair, prepend=-1))
    top = np.repeat(np.maximum.reduceat(value, start), np.diff(np.append(start, len(value))))
    tied = by_pair.take(np.flatnonzero(value >= top * (1 - TIE)))
    order = np.lexsort((tied.prefill_workers, tied.decode_workers, tied.gpus, tied.pair))
    return tied.take(order[np.flatnonzero(np.diff(tied.pair[order], prepend=-1))])


def _chunks(pairs: Pairs, limits: Limits) -> "list[Matched]":
    most_p, most_d = _most_workers(pairs, limits)
    points_of_pair = np.where((most_p >= 1) & (most_d >= 1), most_p + most_d + 1, 0)
    ends = np.cumsum(points_of_pair)
    chunks = []
    start = 0
    while start < len(pairs):
        done = ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(ends, done + CHUNK_POINTS, side="right")), start + 1)
        chunks.append(_points(pairs, np.arange(start, stop), most_p, most_d, limits))
        start = stop
    return chunks


def _most_workers(pairs: Pairs, limits: Limits) -> tuple[Ints, Ints]:
    """Per pair the most prefill and decode workers when the other role has one worker."""

    def most(gpus: Ints, others: Ints, max_gpus: int | None, max_workers: int | None) -> Ints:
        bound = np.maximum(limits.gpu_budget - others, 0) // gpus
        if max_gpus is not None:
            bound = np.minimum(bound, max_gpus // gpus)
        return bound if max_workers is None else np.minimum(bound, max_workers)

    return (
        most(pairs.prefill_gpus, pairs.decode_gpus, limits.max_prefill_gpus, limits.max_prefill_workers),
        most(pairs.decode_gpus, pairs.prefill_gpus, limits.max_decode_gpus, limits.max_decode_workers),
    )


def _points(pairs: Pairs, index: Ints, most_p: Ints, most_d: Ints, limits: Limits) -> Matched:
    """The break points of the pairs at ``index`` that keep within the limits."""
    index = index[(most_p[index] >= 1) & (most_d[index] >= 1)]
    of_p, count_p = _enumerate(index, most_p[index])
    of_d, count_d = _enumerate(index, most_d[index])
    load = np.minimum(pairs.offered_rate[index], np.finfo(np.float64).max)
    has_load = np.isfinite(pairs.offered_rate[index])
    pair = np.concatenate([of_p, of_d, index[has_load]])
    rate = np.concatenate(
        [pairs.prefill_rate[of_p] * count_p, pairs.decode_rate[of_d] * count_d, load[has_load]]
    )
    rate = np.minimum(rate, pairs.offered_rate[pair])
    rate = np.maximum(rate, np.minimum(pairs.needed_rate[pair], pairs.offered_rate[pair]))
    p = _least_workers(rate, pairs.prefill_rate[pair])
    d = np.maximum(_least_workers(rate, pairs.decode_rate[pair]), pairs.least_decode_workers[pair])
    p, d = _pad(p, d, pair, pairs, most_p, most_d, limits)
    gpus = p * pairs.prefill_gpus[pair] + d * pairs.decode_gpus[pair]
    capacity = np.minimum(pairs.prefill_rate[pair] * p, pairs.decode_rate[pair] * d)
    fits = (
        (p <= most_p[pair])
        & (d <= most_d[pair])
        & (gpus <= limits.gpu_budget)
        & (gpus >= limits.min_gpu_budget)
        & (capacity >= pairs.needed_rate[pair] * (1 - TIE))
    )
    served = np.minimum(capacity, pairs.offered_rate[pair])
    return Matched(pair[fits], p[fits], d[fits], gpus[fits], served[fits])


def _enumerate(index: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """For each index its counts 1..n, flattened: (index repeated, count)."""
    repeated = np.repeat(index, counts)
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    return repeated, np.arange(len(repeated), dtype=np.int64) - starts + 1


def _least_workers(rate: Floats, of_one: Floats) -> Ints:
    """Least count whose rate reaches ``rate`` (within the tie), at least 1; the rounding of the quotient is mended."""
    target = rate * (1 - TIE)
    count = np.maximum(np.ceil(target / of_one), 1.0)
    count = np.where((count > 1) & (of_one * (count - 1) >= target), count - 1, count)
    count = np.where(of_one * count < target, count + 1, count)
    return count.astype(np.int64)


def _pad(
    p: Ints, d: Ints, pair: Ints, pairs: Pairs, most_p: Ints, most_d: Ints, limits: Limits
) -> tuple[Ints, Ints]:
    """Counts raised to the cheapest total of at least the least budget; ties: fewer decode workers."""
    g_p, g_d = pairs.prefill_gpus[pair], pairs.decode_gpus[pair]
    short = np.flatnonzero((p * g_p + d * g_d < limits.min_gpu_budget) & (p <= most_p[pair]) & (d <= most_d[pair]))
    if short.size == 0:
        return p, d
    best_total = np.full(short.size, np.iinfo(np.int64).max)
    best_p, best_d = p[short].copy(), d[short].copy()
    base_p, base_d, g_p, g_d = p[short], d[short], g_p[short], g_d[short]
    for extra in range(int((most_d[pair[short]] - base_d).max()) + 1):
        more_d = base_d + extra
        lacking = limits.min_gpu_budget - more_d * g_d
        more_p = np.maximum(base_p, -(-lacking // g_p))
        total = more_p * g_p + more_d * g_d
        legal = (more_d <= most_d[pair[short]]) & (more_p <= most_p[pair[short]]) & (total <= limits.gpu_budget)
        better = legal & (total < best_total)
        best_total = np.where(better, total, best_total)
        best_p = np.where(better, more_p, best_p)
        best_d = np.where(better, more_d, best_d)
    padded_p, padded_d = p.copy(), d.copy()
    padded_p[short], padded_d[short] = best_p, best_d
    return padded_p, padded_d


def _value(points: Matched, goal: Goal) -> Floats:
    match goal:
        case "rate_per_gpu":
            return points.rate / points.gpus
        case "rate":
            return points.rate
        case "fewest_gpus":
            return np.zeros(len(points.rate))


def _concatenate(parts: list[Matched]) -> Matched:
    if not parts:
        empty = np.empty(0, dtype=np.int64)
        return Matched(empty, empty, empty, empty, np.empty(0))
    return Matched(
        np.concatenate([part.pair for part in parts]),
        np.concatenate([part.prefill_workers for part in parts]),
        np.concatenate([part.decode_workers for part in parts]),
        np.concatenate([part.gpus for part in parts]),
        np.concatenate([part.rate for part in parts]),
    )
