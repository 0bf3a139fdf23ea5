"""Deployments as columns, and the steps that matching of one role and of several have in common."""

from dataclasses import dataclass

import numpy as np

from dgdr_job.matching.arrays import TIE, Floats, Ints
from dgdr_job.space.limits import PoolName


@dataclass(frozen=True)
class Matched:
    """Deployments: the index of the tuple, worker counts, GPUs, and the rate served in requests per second.

    A topology with one role has rows instead of tuples. Workers of a pool that it lacks are 0; those that do everything
    count as decode workers.
    """

    pair: Ints
    """Index of the tuple of rows."""
    prefill_workers: Ints
    decode_workers: Ints
    encode_workers: Ints
    gpus: Ints
    rate: Floats

    def __len__(self) -> int:
        return len(self.pair)

    @classmethod
    def of(cls, pair: Ints, workers: dict[PoolName, Ints], gpus: Ints, rate: Floats) -> "Matched":
        """Deployments with the workers of the pools that there are."""
        none = np.zeros_like(pair)
        return cls(
            pair=pair,
            prefill_workers=workers.get("prefill", none),
            decode_workers=workers.get("decode", none),
            encode_workers=workers.get("encode", none),
            gpus=gpus,
            rate=rate,
        )

    def take(self, rows: Ints) -> "Matched":
        """The deployments at these positions."""
        return Matched(**{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})


def concatenate(parts: list[Matched]) -> Matched:
    """Deployments one after another."""
    empty = np.empty(0, dtype=np.int64)
    parts = [Matched.of(empty, {}, empty, np.empty(0)), *parts]
    return Matched(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in Matched.__dataclass_fields__}
    )


def enumerate_counts(index: Ints, least: Ints, most: Ints) -> tuple[Ints, Ints]:
    """For each index its counts least..most, flattened: (index repeated, count). None where most is below least."""
    counts = np.maximum(most - least + 1, 0)
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    of_index = np.arange(int(counts.sum()), dtype=np.int64) - starts
    return np.repeat(index, counts), of_index + np.repeat(least, counts)


def least_workers(rate: Floats, of_one: Floats) -> Floats:
    """Least count whose rate reaches ``rate`` within the tie, at least 1, as a whole number in a float (or infinite).

    The rounding of the quotient is four orders below the tie, so it decides nothing.
    """
    with np.errstate(over="ignore"):
        return np.maximum(np.ceil(rate * (1 - TIE) / of_one), 1.0)
