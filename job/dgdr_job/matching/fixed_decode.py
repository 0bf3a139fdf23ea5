"""The best prefill worker counts where the number of decode workers is given, exactly.

For a load that depends on the decode workers (a KV load ratio) each number of them is a question of its own. What is
left is one number p: the rate is the lesser of P * p and what the decode workers and the load allow, X. Per GPU, or per
cost, it rises as long as P * p is below X and falls from there on, so the best p is one of the two around X / P.
`reference.best_counts` with as many least and most decode workers is the specification, by trying all.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dgdr_job.matching.arrays import TIE, Floats, Goal, Ints, Prices
from dgdr_job.matching.matched import Matched, enumerate_counts, least_workers
from dgdr_job.space.limits import Limits

CHUNK_POINTS = 500_000
"""Points held in memory at once."""


@dataclass(frozen=True)
class FixedDecode:
    """One entry per pair of rows and number of decode workers, which is within its caps. Rates: requests per second."""

    pair: Ints
    """Index of the pair: told back, and nothing else."""
    decode_workers: Ints
    prefill_rate: Floats
    """Of one worker."""
    prefill_gpus: Ints
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
        return FixedDecode(**{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})


def best_prefill(entries: FixedDecode, limits: Limits, goal: Goal, prices: Prices) -> Matched:
    """The best deployment of each entry that has one; ties: fewer GPUs."""
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


def all_prefill(entries: FixedDecode, limits: Limits) -> Iterator[Matched]:
    """Every deployment that no other of the same entry equals or beats in both rate and GPUs, in chunks."""
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


def _counts(entries: FixedDecode, limits: Limits) -> tuple[Ints, Ints, Ints]:
    """Least and most prefill workers of each entry, none where the least is more, and those that saturate the rest."""
    room = np.maximum(limits.gpu_budget - entries.decode_gpus, 0)
    if limits.max_prefill_gpus is not None:
        room = np.minimum(room, limits.max_prefill_gpus)
    most = room // entries.prefill_gpus
    if limits.max_prefill_workers is not None:
        most = np.minimum(most, limits.max_prefill_workers)
    beyond = limits.gpu_budget + 1
    lacking = -(-(limits.min_gpu_budget - entries.decode_gpus) // entries.prefill_gpus)
    needed = np.minimum(least_workers(entries.needed_rate, entries.prefill_rate), beyond).astype(np.int64)
    least = np.maximum(np.maximum(lacking, needed), 1)
    carried = entries.decode_rate >= entries.needed_rate * (1 - TIE)
    bound = np.minimum(entries.decode_rate, entries.offered_rate)
    saturating = np.minimum(least_workers(bound, entries.prefill_rate), beyond).astype(np.int64)
    return np.where(carried, least, beyond), most, saturating


def _rate(entries: FixedDecode, count: Ints) -> Floats:
    capacity = np.minimum(entries.prefill_rate * count, entries.decode_rate)
    return np.minimum(capacity, entries.offered_rate)


def _worth(entries: FixedDecode, count: Ints, prices: Prices) -> Floats:
    cost = count * entries.prefill_gpus * prices.prefill + entries.decode_gpus * prices.decode
    return np.asarray(_rate(entries, count) / cost, dtype=np.float64)


def _matched(entries: FixedDecode, count: Ints) -> Matched:
    return Matched(
        pair=entries.pair,
        prefill_workers=count,
        decode_workers=entries.decode_workers,
        gpus=entries.prefill_gpus * count + entries.decode_gpus,
        rate=_rate(entries, count),
    )
