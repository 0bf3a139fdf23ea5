"""The best counts of workers that do everything themselves, exactly: more of them never serve more per GPU.

So the best count is the least that the limits and the load allow, except for the rate itself: there it is the least
that serves what is offered, or else the most. `reference.best_count` is the specification, by trying all.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dgdr_job.matching.arrays import Floats, Goal, Ints
from dgdr_job.matching.matched import Matched, enumerate_counts, least_workers
from dgdr_job.space.limits import Limits

CHUNK_POINTS = 500_000
"""Points held in memory at once."""


@dataclass(frozen=True)
class Rows:
    """One entry per row. Rates are requests per second of one worker, finite; loads as in `tuples.Tuples`."""

    rate: Floats
    gpus: Ints
    """GPUs of one worker."""
    least_workers: Ints
    offered_rate: Floats
    needed_rate: Floats


def best_replicas(rows: Rows, limits: Limits, goal: Goal) -> Matched:
    """The best deployment of each row that has one; ties: fewer GPUs."""
    least, most = _counts(rows, limits)
    index = np.flatnonzero(least <= most)
    return _matched(rows, index, (_saturating(rows, least, most) if goal == "rate" else least)[index])


def all_replicas(rows: Rows, limits: Limits) -> Iterator[Matched]:
    """Every deployment that no other of the same row equals or beats in both rate and GPUs."""
    least, most = _counts(rows, limits)
    last = _saturating(rows, least, most)
    ends = np.cumsum(np.maximum(last - least + 1, 0))
    start = 0
    while start < len(rows.rate):
        done = ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(ends, done + CHUNK_POINTS, side="right")), start + 1)
        yield _matched(rows, *enumerate_counts(np.arange(start, stop), least[start:stop], last[start:stop]))
        start = stop


def _counts(rows: Rows, limits: Limits) -> tuple[Ints, Ints]:
    """Least and most workers of each row; none where the least is more than the most."""
    least = np.maximum(rows.least_workers, -(-limits.min_gpu_budget // rows.gpus))
    needed = np.minimum(least_workers(rows.needed_rate, rows.rate), limits.gpu_budget + 1).astype(np.int64)
    return np.maximum(least, needed), limits.gpu_budget // rows.gpus


def _saturating(rows: Rows, least: Ints, most: Ints) -> Ints:
    """The least count that serves what is offered, or the most; below ``least`` where there is no count."""
    reached = np.minimum(rows.offered_rate, rows.rate * most)
    return np.minimum(np.maximum(least_workers(reached, rows.rate).astype(np.int64), least), most)


def _matched(rows: Rows, index: Ints, count: Ints) -> Matched:
    rate = np.minimum(rows.rate[index] * count, rows.offered_rate[index])
    return Matched.of(index, {"decode": count}, rows.gpus[index] * count, rate)
