"""The best worker counts of the other pools where the number of decode workers is given, exactly.

For a load that depends on the decode workers (a KV load ratio) each number of them is a question of its own. With one
other pool, prefill or (beside aggregated workers) encode, one number p is left: the rate is the lesser of P * p and
what the decode workers and the load allow, X. Per GPU, or per cost, it rises as long as P * p is below X and falls from
there on, so the best p is one of the two around X / P. With two other pools the decode workers are matched as if they
were one worker. `reference.best_counts` with as many least and most decode workers is the specification.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from dgdr_job.matching.arrays import TIE, Floats, Goal, Ints, Prices
from dgdr_job.matching.match import all_deployments, best_deployments
from dgdr_job.matching.matched import Matched, enumerate_counts, least_workers
from dgdr_job.matching.tuples import Pool, Tuples
from dgdr_job.space.limits import POOL_NAMES, Limits, PoolName

CHUNK_POINTS = 500_000
"""Points held in memory at once."""


@dataclass(frozen=True)
class FixedDecode:
    """One entry per tuple of rows and number of decode workers, which is within its caps. Rates: requests/s."""

    pair: Ints
    """Index of the tuple: told back, and nothing else."""
    decode_workers: Ints
    others: tuple[Pool, ...]
    """The one or two other pools."""
    decode_rate: Floats
    """Of all decode workers."""
    decode_gpus: Ints
    """Of all decode workers."""
    offered_rate: Floats
    needed_rate: Floats

    def __len__(self) -> int:
        return len(self.pair)

    def take(self, rows: Ints) -> "FixedDecode":
        """The entries at these positions."""
        return FixedDecode(
            pair=self.pair[rows],
            decode_workers=self.decode_workers[rows],
            others=tuple(pool.take(rows) for pool in self.others),
            decode_rate=self.decode_rate[rows],
            decode_gpus=self.decode_gpus[rows],
            offered_rate=self.offered_rate[rows],
            needed_rate=self.needed_rate[rows],
        )


def best_others(entries: FixedDecode, limits: Limits, goal: Goal, prices: Prices) -> Matched:
    """The best deployment of each entry that has one; ties: fewer GPUs, then the higher rate, then fewer prefill."""
    if len(entries.others) > 1:
        return _told_back(entries, best_deployments(*_as_one_worker(entries, limits), goal, prices))
    least, most, saturating = _counts(entries, limits)
    index = np.flatnonzero(least <= most)
    some, least, most, saturating = entries.take(index), least[index], most[index], saturating[index]
    match goal:
        case "fewest_gpus":
            return _matched(some, least)
        case "rate":
            return _matched(some, np.clip(saturating, least, most))
        case _:
            more, fewer = np.clip(saturating, least, most), np.clip(saturating - 1, least, most)
            each = prices if goal == "rate_per_cost" else Prices()
            worth_more, worth_fewer = _worth(some, more, each), _worth(some, fewer, each)
            return _matched(some, np.where(worth_more > worth_fewer * (1 + TIE), more, fewer))


def all_others(entries: FixedDecode, limits: Limits, prices: Prices) -> Iterator[Matched]:
    """Every deployment that no other of the same entry equals or beats in rate, GPUs and cost, in chunks.

    With two other pools some more, as `match.all_deployments`.
    """
    if len(entries.others) > 1:
        for found in all_deployments(*_as_one_worker(entries, limits), prices):
            yield _told_back(entries, found)
        return
    least, most, saturating = _counts(entries, limits)
    last = np.minimum(np.maximum(saturating, least), most)
    ends = np.cumsum(np.maximum(last - least + 1, 0))
    start = 0
    while start < len(entries):
        done = ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(ends, done + CHUNK_POINTS, side="right")), start + 1)
        index, count = enumerate_counts(np.arange(start, stop), least[start:stop], last[start:stop])
        yield _matched(entries.take(index), count)
        start = stop


def _as_one_worker(entries: FixedDecode, limits: Limits) -> tuple[Tuples, Limits]:
    """The decode workers of each entry, which are within their caps, as one worker of which there is one."""
    decode = Pool("decode", entries.decode_rate, entries.decode_gpus)
    pools = sorted((*entries.others, decode), key=lambda pool: POOL_NAMES.index(pool.name))
    one = replace(limits, max_decode_gpus=None, max_decode_workers=1)
    return Tuples(tuple(pools), entries.offered_rate, entries.needed_rate), one


def _told_back(entries: FixedDecode, found: Matched) -> Matched:
    return replace(found, pair=entries.pair[found.pair], decode_workers=entries.decode_workers[found.pair])


def _counts(entries: FixedDecode, limits: Limits) -> tuple[Ints, Ints, Ints]:
    """Least and most other workers of each entry, none where the least is more, and those that saturate the rest."""
    (pool,) = entries.others
    room = limits.gpu_budget - entries.decode_gpus
    for cap in limits.shared:
        if pool.name in cap.pools:
            room = np.minimum(room, cap.gpus - (entries.decode_gpus if "decode" in cap.pools else 0))
    max_gpus, max_workers = limits.caps(pool.name)
    if max_gpus is not None:
        room = np.minimum(room, max_gpus)
    most = np.maximum(room, 0) // pool.gpus
    if max_workers is not None:
        most = np.minimum(most, max_workers)
    beyond = limits.gpu_budget + 1
    lacking = -(-(limits.min_gpu_budget - entries.decode_gpus) // pool.gpus)
    needed = np.minimum(least_workers(entries.needed_rate, pool.rate), beyond).astype(np.int64)
    least = np.maximum(np.maximum(lacking, needed), 1)
    carried = entries.decode_rate >= entries.needed_rate * (1 - TIE)
    bound = np.minimum(entries.decode_rate, entries.offered_rate)
    saturating = np.minimum(least_workers(bound, pool.rate), beyond).astype(np.int64)
    return np.where(carried, least, beyond), most, saturating


def _rate(entries: FixedDecode, count: Ints) -> Floats:
    capacity = np.minimum(entries.others[0].rate * count, entries.decode_rate)
    return np.minimum(capacity, entries.offered_rate)


def _worth(entries: FixedDecode, count: Ints, prices: Prices) -> Floats:
    (pool,) = entries.others
    cost = count * pool.gpus * prices.of(pool.name) + entries.decode_gpus * prices.decode
    return np.asarray(_rate(entries, count) / cost, dtype=np.float64)


def _matched(entries: FixedDecode, count: Ints) -> Matched:
    (pool,) = entries.others
    workers: dict[PoolName, Ints] = {pool.name: count, "decode": entries.decode_workers}
    return Matched.of(entries.pair, workers, pool.gpus * count + entries.decode_gpus, _rate(entries, count))
