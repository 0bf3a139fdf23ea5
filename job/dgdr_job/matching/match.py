"""The best worker counts of many pairs of rows at once, exactly.

The optimum of a pair lies where one role is just saturated: at a rate R out of {P * p}, {D * d} and the offered
rate, with the least counts that reach it, p = ceil(R / P) and d = ceil(R / D). Any feasible deployment's rate is one
of these, and least counts never cost more and stay within every cap; below the least budget a deployment is padded to
the cheapest total that can be reached. Source: engine.md section 6; `reference` is the specification, by trying all.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dgdr_job.matching.arrays import TIE, Floats, Goal, Ints
from dgdr_job.matching.matched import Matched, best_of_each, concatenate, enumerate_counts, least_workers
from dgdr_job.space.limits import Limits

CHUNK_POINTS = 500_000
"""Points held in memory at once (about 100 MB with everything that is computed on the way)."""


@dataclass(frozen=True)
class Pairs:
    """One entry per pair of a prefill row and a decode row. Rates are requests per second of one worker, finite."""

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

    def take(self, rows: Ints) -> "Pairs":
        """The pairs at these positions."""
        return Pairs(**{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})


def best_deployments(pairs: Pairs, limits: Limits, goal: Goal) -> Matched:
    """The best deployment of each pair that has one.

    Ties: fewer GPUs, then the higher rate, then fewer decode, then fewer prefill workers.
    """
    return concatenate([best_of_each(points, goal) for points in all_deployments(pairs, limits)])


def all_deployments(pairs: Pairs, limits: Limits) -> Iterator[Matched]:
    """Every deployment that no other of the same pair equals or beats in both rate and GPUs, and some more.

    A superset of the frontier: whatever is non-dominated in metrics that depend on the rows, the rate and the GPUs is
    among them. All deployments of one pair come in one chunk.
    """
    most_p, most_d = _most_workers(pairs, limits)
    points_of_pair = np.where((most_p >= 1) & (most_d >= 1), most_p + most_d + 1, 0)
    ends = np.cumsum(points_of_pair)
    start = 0
    while start < len(pairs):
        done = ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(ends, done + CHUNK_POINTS, side="right")), start + 1)
        yield _points(pairs, np.arange(start, stop), most_p, most_d, limits)
        start = stop


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
    of_p, count_p = enumerate_counts(index, np.ones_like(index), most_p[index])
    of_d, count_d = enumerate_counts(index, np.ones_like(index), most_d[index])
    loaded = index[np.isfinite(pairs.offered_rate[index])]
    pair = np.concatenate([of_p, of_d, loaded])
    rate = np.concatenate(
        [pairs.prefill_rate[of_p] * count_p, pairs.decode_rate[of_d] * count_d, pairs.offered_rate[loaded]]
    )
    rate = np.minimum(rate, pairs.offered_rate[pair])
    rate = np.maximum(rate, np.minimum(pairs.needed_rate[pair], pairs.offered_rate[pair]))
    p = least_workers(rate, pairs.prefill_rate[pair])
    d = np.maximum(least_workers(rate, pairs.decode_rate[pair]), pairs.least_decode_workers[pair])
    p, d = _pad(p, d, pairs.take(pair), (most_p[pair], most_d[pair]), limits)
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


def _pad(p: Ints, d: Ints, pairs: Pairs, most: tuple[Ints, Ints], limits: Limits) -> tuple[Ints, Ints]:
    """Counts raised to the cheapest total of at least the least budget; ties: fewer decode workers.

    Totals repeat when as many decode workers are added as a prefill worker has GPUs, so as many steps show them all;
    the first step is the least that leaves no more to prefill workers than their cap. All columns have one entry per
    point.
    """
    total = p * pairs.prefill_gpus + d * pairs.decode_gpus
    short = np.flatnonzero((total < limits.min_gpu_budget) & (p <= most[0]) & (d <= most[1]))
    if short.size == 0:
        return p, d
    g_p, g_d, cap_p, cap_d = pairs.prefill_gpus[short], pairs.decode_gpus[short], most[0][short], most[1][short]
    base_p = p[short]
    first_d = np.maximum(d[short], -(-(limits.min_gpu_budget - cap_p * g_p) // g_d))
    best_total = np.full(short.size, np.iinfo(np.int64).max)
    best_p, best_d = base_p.copy(), d[short].copy()
    for step in range(int(g_p.max())):
        more_d = first_d + step
        more_p = np.maximum(base_p, -(-(limits.min_gpu_budget - more_d * g_d) // g_p))
        total = more_p * g_p + more_d * g_d
        better = (more_d <= cap_d) & (more_p <= cap_p) & (total <= limits.gpu_budget) & (total < best_total)
        best_total = np.where(better, total, best_total)
        best_p = np.where(better, more_p, best_p)
        best_d = np.where(better, more_d, best_d)
    padded_p, padded_d = p.copy(), d.copy()
    padded_p[short], padded_d[short] = best_p, best_d
    return padded_p, padded_d
