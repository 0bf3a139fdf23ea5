"""Deployments under a KV load ratio: each has the concurrency that its own KV cache stands for.

Source: engine.md section 4. The concurrency depends on the decode (or aggregated) row and on how many such workers
there are, so each number of them is matched on its own: `dgdr_job.matching.fixed_decode` for several roles, a plain
list for one.
"""

from collections.abc import Iterator

import numpy as np

from dgdr_job.matching.arrays import TIE, Floats, Goal, Ints
from dgdr_job.matching.fixed_decode import FixedDecode, all_others, best_others
from dgdr_job.matching.matched import Matched, enumerate_counts
from dgdr_job.matching.tuples import Tuples, most_workers
from dgdr_job.search.question import Question

CHUNK_ENTRIES = 500_000
"""Pairs with a number of decode workers that are held at once."""


class OwnLoadPairs:
    """Tuples of rows (pairs, or with encode workers triples), each with every number of decode workers."""

    def __init__(
        self, question: Question, pairs: Tuples, ttft_ms: Floats, tpot_ms: Floats, *, held: Ints, slots: Ints
    ) -> None:
        """Take columns by pair.

        Args:
            question: load, bounds, limits and objective.
            pairs: rates and GPUs of each pair.
            ttft_ms: time to first token of each, without a wait.
            tpot_ms: time per output token.
            held: KV tokens of one decode worker, in whole blocks.
            slots: requests that one decode worker runs.
        """
        self._question, self._pairs = question, pairs
        self._ttft_ms, self._tpot_ms, self._held, self._slots = ttft_ms, tpot_ms, held, slots

    def best(self, goal: Goal) -> Iterator[Matched]:
        """The best deployment of each pair and number of decode workers, in chunks."""
        for entries in self._entries():
            yield best_others(entries, self._question.limits, goal, self._question.prices)

    def every(self) -> Iterator[Matched]:
        """Every deployment that no other of the same pair and decode workers equals or beats in rate and GPUs."""
        for entries in self._entries():
            yield from all_others(entries, self._question.limits, self._question.prices)

    @property
    def counts(self) -> int:
        """How many counts `every` goes through at most."""
        most = most_workers(self._pairs, self._question.limits)
        return int(np.prod([np.maximum(each, 0) for each in most], axis=0).sum())

    def _entries(self) -> Iterator[FixedDecode]:
        most = dict(zip(self._pairs.names, most_workers(self._pairs, self._question.limits), strict=True))
        some_of_each = np.minimum.reduce(list(most.values())) >= 1
        for index, workers in chunked_counts(np.where(some_of_each, most["decode"], 0)):
            pairs = self._pairs.take(index)
            decode = pairs.pool("decode")
            concurrency = self._question.own_concurrency(self._held[index], workers)
            load = self._question.load(self._ttft_ms[index], self._tpot_ms[index], self._slots[index], concurrency)
            entries = FixedDecode(
                pair=index,
                decode_workers=workers,
                others=tuple(pool for pool in pairs.pools if pool is not decode),
                decode_rate=decode.rate * workers,
                decode_gpus=decode.gpus * workers,
                offered_rate=load.offered_rate,
                needed_rate=load.needed_rate,
            )
            yield entries.take(np.flatnonzero((concurrency >= 1) & (load.least_workers <= workers)))


def own_load_replicas(
    question: Question, *, rate: Floats, gpus: Ints, ttft_ms: Floats, tpot_ms: Floats, held: Ints, slots: Ints
) -> Iterator[Matched]:
    """Every deployment of workers that do everything, in chunks; columns by row, as for `OwnLoadPairs`."""
    limits = question.limits
    for index, workers in chunked_counts(limits.gpu_budget // gpus):
        concurrency = question.own_concurrency(held[index], workers)
        load = question.load(ttft_ms[index], tpot_ms[index], slots[index], concurrency)
        capacity = rate[index] * workers
        fits = (concurrency >= 1) & (load.least_workers <= workers) & (capacity >= load.needed_rate * (1 - TIE))
        fits &= gpus[index] * workers >= limits.min_gpu_budget
        at = np.flatnonzero(fits)
        rate = np.minimum(capacity, load.offered_rate)[at]
        yield Matched.of(index[at], {"decode": workers[at]}, gpus[index[at]] * workers[at], rate)


def chunked_counts(most: Ints) -> Iterator[tuple[Ints, Ints]]:
    """(index, count) of every count 1..most of each index, a bounded number at once."""
    ends = np.cumsum(np.maximum(most, 0))
    start = 0
    while start < len(most):
        done = ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(ends, done + CHUNK_ENTRIES, side="right")), start + 1)
        yield enumerate_counts(np.arange(start, stop), np.ones(stop - start, dtype=np.int64), most[start:stop])
        start = stop
