"""Counts raised to the least budget, exactly: the cheapest totals that can be reached within the caps.

Two pools have a closed form. With a given number of decode workers the least number of others is cheapest, and totals
repeat after as many more decode workers as one of the others has GPUs (over their common divisor). From one repetition
to the next the cost falls or rises throughout, so the cheapest stands at an end: at the fewest decode workers that
leave no more to the others than their cap, or, the roles exchanged, at the fewest others. GPUs alone
(``fewest_gpus``) are the same at both ends. Of three pools the counts of the third are gone through, up to those that
reach the least budget alone: more would only add to the total.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dgdr_job.matching.arrays import TIE, Floats, Ints, Prices
from dgdr_job.matching.tuples import Pool, Tuples
from dgdr_job.space.limits import Limits, PoolName, SharedCap

Padding = Literal["fewest_gpus", "least_cost", "every"]
"""Which counts a deployment below the least budget is raised to."""
Counts = dict[PoolName, Floats]
"""Workers of each pool, whole numbers in floats, for speed."""
Step = tuple[Ints, Counts]
"""Positions, and the workers there."""
TIE_ORDER: tuple[PoolName, ...] = ("decode", "prefill", "encode")
"""Which pool has fewer workers where everything else is equal."""


@dataclass(frozen=True)
class Short:
    """Deployments below the least budget, and what each may be raised to; one entry for each."""

    tuples: Tuples
    counts: Counts
    most: dict[PoolName, Ints]
    """Most workers of each pool."""
    limits: Limits

    def take(self, rows: Ints) -> "Short":
        """The deployments at these positions."""
        return Short(
            self.tuples.take(rows),
            {name: count[rows] for name, count in self.counts.items()},
            {name: most[rows] for name, most in self.most.items()},
            self.limits,
        )


def cheapest(short: Short, prices: Prices, padding: Padding) -> Counts:
    """The cheapest padding of each; ties: fewer GPUs, then fewer decode, then fewer prefill workers.

    Where there is none the counts stay as they are.
    """
    best = {name: count.copy() for name, count in short.counts.items()}
    best_cost, best_gpus = np.full(len(short.tuples), np.inf), np.full(len(short.tuples), np.inf)
    for at, counts in steps(short, padding):
        gpus = np.zeros(len(at))
        cost = np.zeros(len(at))
        for pool in short.tuples.pools:
            of_pool = counts[pool.name] * pool.gpus[at]
            gpus += of_pool
            cost += of_pool * prices.of(pool.name)
        if padding == "fewest_gpus":
            cost = gpus
        better = cost < best_cost[at] * (1 - TIE)
        equal = ~better & (cost <= best_cost[at] * (1 + TIE))
        for new, old in (
            (gpus, best_gpus[at]),
            *((counts[name], best[name][at]) for name in TIE_ORDER if name in best),
        ):
            better |= equal & (new < old)
            equal &= new == old
        chosen = at[better]
        best_cost[chosen], best_gpus[chosen] = cost[better], gpus[better]
        for name, count in best.items():
            count[chosen] = counts[name][better]
    return best


def steps(short: Short, padding: Padding) -> Iterator[Step]:
    """Counts of at least the least budget, within the limits: every total that can be the cheapest."""
    limits, size = short.limits, len(short.tuples)
    least, room = np.full(size, float(limits.min_gpu_budget)), np.full(size, float(limits.gpu_budget))
    *two, third = short.tuples.pools
    if len(two) == 1:
        some = _Two(short.tuples.pools, short.counts, short.most, least, room)
        yield from some.capped(limits.shared, {}).steps(both_ends=padding != "fewest_gpus")
        return
    base, gpus = short.counts[third.name], third.gpus
    others = sum(short.counts[pool.name] * pool.gpus for pool in two)
    last = np.minimum(short.most[third.name], np.maximum(np.ceil((least - others) / gpus), base))
    for more in range(int((last - base).max(initial=-1)) + 1):
        at = np.flatnonzero(last - base >= more)
        count = base[at] + more
        taken = count * gpus[at]
        some = _Two(
            tuple(pool.take(at) for pool in two),
            {pool.name: short.counts[pool.name][at] for pool in two},
            {pool.name: short.most[pool.name][at] for pool in two},
            least[at] - taken,
            room[at] - taken,
        )
        for position, counts in some.capped(limits.shared, {third.name: taken}).steps(
            both_ends=padding != "fewest_gpus"
        ):
            yield at[position], {**counts, third.name: count[position]}


@dataclass(frozen=True)
class _Two:
    """Two pools whose GPUs together must be at least ``least`` and at most ``room``; one of them is decode."""

    pools: tuple[Pool, ...]
    counts: Counts
    most: dict[PoolName, Ints]
    least: Floats
    room: Floats

    def capped(self, shared: tuple[SharedCap, ...], taken: Counts) -> "_Two":
        """The same within the caps that pools share, of which a third pool takes so many GPUs."""
        result = self
        for cap in shared:
            left = np.asarray(cap.gpus - sum(gpus for name, gpus in taken.items() if name in cap.pools))
            mine = [pool for pool in self.pools if pool.name in cap.pools]
            if len(mine) == len(self.pools):
                result = replace(result, room=np.minimum(result.room, left))
            elif mine:
                bound = np.minimum(result.most[mine[0].name], (left // mine[0].gpus).astype(np.int64))
                result = replace(result, most={**result.most, mine[0].name: bound})
        return result

    def steps(self, *, both_ends: bool) -> Iterator[Step]:
        """One repetition of totals, from the fewest decode workers, and from the fewest others too."""
        other, decode = sorted(self.pools, key=lambda pool: pool.name == "decode")
        for first, second in ((decode, other), (other, decode))[: 2 if both_ends else 1]:
            start = np.maximum(
                self.counts[first.name], np.ceil((self.least - self.most[second.name] * second.gpus) / first.gpus)
            )
            period = second.gpus // np.gcd(first.gpus, second.gpus)
            for step in range(int(period.max(initial=0))):
                at = np.flatnonzero(period > step)
                more = start[at] + step
                taken = more * first.gpus[at]
                rest = np.maximum(self.counts[second.name][at], np.ceil((self.least[at] - taken) / second.gpus[at]))
                fits = (more <= self.most[first.name][at]) & (rest <= self.most[second.name][at])
                fits &= taken + rest * second.gpus[at] <= self.room[at]
                if fits.any():
                    yield at[fits], {first.name: more[fits], second.name: rest[fits]}
