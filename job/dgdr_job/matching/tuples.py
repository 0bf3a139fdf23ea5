"""Deployments to be matched, as columns: one entry per tuple of rows, a row of each pool."""

from collections.abc import Container
from dataclasses import dataclass

import numpy as np

from dgdr_job.matching.arrays import Floats, Ints
from dgdr_job.space.limits import POOL_NAMES, Limits, PoolName

SLACK = 1e-9
"""What a bound is widened by, relative: far above rounding and the tie, far below one worker."""


@dataclass(frozen=True)
class Pool:
    """The workers of one role, by tuple. Rates are requests per second of one worker, positive and finite."""

    name: PoolName
    rate: Floats
    gpus: Ints
    """GPUs of one worker."""
    least_workers: Ints | None = None
    """Workers that the load needs at least, whatever the rate: those that hold its concurrency. None: 1."""

    def take(self, rows: Ints | slice) -> "Pool":
        """The pool of the tuples at these positions."""
        least = None if self.least_workers is None else self.least_workers[rows]
        return Pool(self.name, self.rate[rows], self.gpus[rows], least)


@dataclass(frozen=True)
class Tuples:
    """One entry per tuple of rows: prefill and decode, encode and aggregated (as decode), or all three.

    A deployment of it serves the least of what its pools serve: min over the pools of rate * workers.
    """

    pools: tuple[Pool, ...]
    """Two or three of different names, of which one is decode, in the order prefill, decode, encode."""
    offered_rate: Floats
    """Requests per second that the load brings; infinite when saturated."""
    needed_rate: Floats
    """Requests per second that must be reached; 0 without such a need. Never above what is offered."""

    def __len__(self) -> int:
        return len(self.offered_rate)

    def take(self, rows: Ints | slice) -> "Tuples":
        """The tuples at these positions; a slice makes no copy."""
        return Tuples(tuple(pool.take(rows) for pool in self.pools), self.offered_rate[rows], self.needed_rate[rows])

    def pool(self, name: PoolName) -> Pool:
        """The pool of this name."""
        return next(pool for pool in self.pools if pool.name == name)

    @property
    def names(self) -> tuple[PoolName, ...]:
        """Names of the pools."""
        return tuple(pool.name for pool in self.pools)


def most_workers(tuples: Tuples, limits: Limits) -> tuple[Ints, ...]:
    """Per pool the most workers of each tuple when every other pool has one worker."""
    result = []
    for pool in tuples.pools:
        max_gpus, max_workers = limits.caps(pool.name)
        most = _room(tuples, pool, limits.gpu_budget) // pool.gpus
        for cap in limits.shared:
            if pool.name in cap.pools:
                most = np.minimum(most, _room(tuples, pool, cap.gpus, cap.pools) // pool.gpus)
        if max_gpus is not None:
            most = np.minimum(most, max_gpus // pool.gpus)
        result.append(most if max_workers is None else np.minimum(most, max_workers))
    return tuple(result)


def _room(tuples: Tuples, pool: Pool, gpus: int, names: Container[PoolName] = POOL_NAMES) -> Ints:
    """What one worker of each other pool of these names leaves of so many GPUs."""
    others = sum(other.gpus for other in tuples.pools if other.name in names and other is not pool)
    return np.maximum(gpus - others, 0)


def saturated_workers(tuples: Tuples, limits: Limits, most: tuple[Ints, ...]) -> tuple[Ints, ...]:
    """Per pool the most workers of each tuple that a deployment without an idle worker can have; 0 where none fits.

    A rate R takes at least R / rate workers of each pool, and so R * (sum of gpus / rate) GPUs: R is at most the
    budget over that sum, alike for every shared cap, and at most what the most workers of each pool serve. More workers
    of a pool than R / rate, rounded up, never serve anything.

    Args:
        tuples: what is matched.
        limits: what bounds the counts.
        most: `most_workers` of the same.
    """
    rate = np.minimum.reduce([pool.rate * bound for pool, bound in zip(tuples.pools, most, strict=True)])
    with np.errstate(over="ignore"):
        gpus_per_rate = {pool.name: pool.gpus / pool.rate for pool in tuples.pools}
        for names, cap in [(set(tuples.names), limits.gpu_budget), *((cap.pools, cap.gpus) for cap in limits.shared)]:
            members = [each for name, each in gpus_per_rate.items() if name in names]
            if members:
                rate = np.minimum(rate, cap / sum(members[1:], start=members[0]))
        fits = np.logical_and.reduce([bound >= 1 for bound in most])
        return tuple(
            np.where(fits, np.minimum(np.floor(rate / pool.rate * (1 + SLACK)), bound), 0).astype(np.int64)
            for pool, bound in zip(tuples.pools, most, strict=True)
        )
