"""Deployments as columns, and the steps that matching of one role and of two have in common."""

from dataclasses import dataclass

import numpy as np

from dgdr_job.matching.arrays import TIE, Floats, Goal, Ints

MOST_WORKERS = 2.0**31
"""Counts are cut here: far beyond every budget, and products with GPUs stay within 64 bits."""


@dataclass(frozen=True)
class Matched:
    """Deployments: the index of the pair, worker counts, GPUs, and the rate served in requests per second.

    A topology with one role has rows instead of pairs, no prefill workers, and counts its workers as decode workers.
    """

    pair: Ints
    prefill_workers: Ints
    decode_workers: Ints
    gpus: Ints
    rate: Floats

    def __len__(self) -> int:
        return len(self.pair)

    def take(self, rows: Ints) -> "Matched":
        """The deployments at these positions."""
        return Matched(**{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})


def best_of_each(points: Matched, goal: Goal) -> Matched:
    """The best deployment of each pair, pairs ascending.

    Highest value within the tie, then fewer GPUs, then the higher rate within the tie, then fewer decode, then fewer
    prefill workers.
    """
    points = points.take(np.argsort(points.pair, kind="stable"))
    points = _keep_highest(points, _value(points, goal))
    points = _keep_highest(points, -points.gpus.astype(np.float64))
    points = _keep_highest(points, points.rate)
    order = np.lexsort((points.prefill_workers, points.decode_workers, points.pair))
    return points.take(order[np.flatnonzero(np.diff(points.pair[order], prepend=-1))])


def concatenate(parts: list[Matched]) -> Matched:
    """Deployments one after another."""
    empty = np.empty(0, dtype=np.int64)
    parts = [Matched(empty, empty, empty, empty, np.empty(0)), *parts]
    return Matched(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in Matched.__dataclass_fields__}
    )


def enumerate_counts(index: Ints, least: Ints, most: Ints) -> tuple[Ints, Ints]:
    """For each index its counts least..most, flattened: (index repeated, count). None where most is below least."""
    counts = np.maximum(most - least + 1, 0)
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    of_index = np.arange(int(counts.sum()), dtype=np.int64) - starts
    return np.repeat(index, counts), of_index + np.repeat(least, counts)


def least_workers(rate: Floats, of_one: Floats) -> Ints:
    """Least count whose rate reaches ``rate`` (within the tie), at least 1; the rounding of the quotient is mended."""
    target = rate * (1 - TIE)
    count = np.clip(np.ceil(target / of_one), 1.0, MOST_WORKERS)
    count = np.where((count > 1) & (of_one * (count - 1) >= target), count - 1, count)
    count = np.where((of_one * count < target) & (count < MOST_WORKERS), count + 1, count)
    return count.astype(np.int64)


def _keep_highest(points: Matched, value: Floats) -> Matched:
    """Of each pair the deployments whose value is the highest, within the tie. Pairs are in one run each."""
    if len(points) == 0:
        return points
    start = np.flatnonzero(np.diff(points.pair, prepend=-1))
    top = np.repeat(np.maximum.reduceat(value, start), np.diff(np.append(start, len(value))))
    return points.take(np.flatnonzero(value >= top - TIE * np.abs(top)))


def _value(points: Matched, goal: Goal) -> Floats:
    match goal:
        case "rate_per_gpu":
            return points.rate / points.gpus
        case "rate":
            return points.rate
        case "fewest_gpus":
            return np.zeros(len(points.rate))
