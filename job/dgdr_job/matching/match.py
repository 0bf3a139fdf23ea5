"""The best worker counts of many pairs of rows at once, exactly.

The optimum of a pair lies where one role is just saturated: at a rate R out of {P * p}, {D * d} and the offered
rate, with the least counts that reach it, p = ceil(R / P) and d = ceil(R / D). Any feasible deployment's rate is one
of these, and least counts never cost more and stay within every cap; below the least budget a deployment is padded to
the cheapest total that can be reached. Source: engine.md section 6; `reference` is the specification, by trying all.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dgdr_job.matching.arrays import TIE, Floats, Goal, Ints
from dgdr_job.matching.matched import Matched, concatenate, least_workers
from dgdr_job.space.limits import Limits

CHUNK_POINTS = 500_000
"""Deployments that `all_deployments` holds at once, about 50 MB with what is computed on the way."""


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

    def first(self, count: int) -> "Pairs":
        """The first pairs, without a copy."""
        return Pairs(**{name: getattr(self, name)[:count] for name in self.__dataclass_fields__})


def best_deployments(pairs: Pairs, limits: Limits, goal: Goal) -> Matched:
    """The best deployment of each pair that has one.

    Ties: fewer GPUs, then the higher rate, then fewer decode, then fewer prefill workers.
    """
    best = _Best.none(len(pairs))
    for order, points in _break_points(pairs, limits):
        mine = best.take(order)
        for each in points:
            mine.offer(each, goal)
        best.put(order, mine)
    pair = np.flatnonzero(best.gpus > 0)
    return Matched(
        pair=pair,
        prefill_workers=best.p[pair].astype(np.int64),
        decode_workers=best.d[pair].astype(np.int64),
        gpus=best.gpus[pair].astype(np.int64),
        rate=best.rate[pair],
    )


def all_deployments(pairs: Pairs, limits: Limits) -> Iterator[Matched]:
    """Every deployment that no other of the same pair equals or beats in both rate and GPUs, and some more.

    A superset of the frontier: whatever is non-dominated in metrics that depend on the rows, the rate and the GPUs is
    among them. They come in chunks, in no order that means anything.
    """
    held: list[Matched] = []
    for order, points in _break_points(pairs, limits):
        for each in points:
            at = np.flatnonzero(each.fits)
            held.append(
                Matched(
                    pair=order[at],
                    prefill_workers=each.p[at].astype(np.int64),
                    decode_workers=each.d[at].astype(np.int64),
                    gpus=each.gpus[at].astype(np.int64),
                    rate=each.rate[at],
                )
            )
            if sum(map(len, held)) >= CHUNK_POINTS:
                yield concatenate(held)
                held = []
    yield concatenate(held)


def break_points(pairs: Pairs, limits: Limits) -> int:
    """How many counts `all_deployments` goes through."""
    most_p, most_d = _most_workers(pairs, limits)
    fitting = (most_p >= 1) & (most_d >= 1)
    return int((most_p[fitting] + most_d[fitting]).sum()) + int(fitting.sum())


@dataclass(frozen=True)
class _Points:
    """One break point of each of the first pairs of an order. Counts are whole numbers in floats, for speed."""

    p: Floats
    d: Floats
    gpus: Floats
    rate: Floats
    fits: npt.NDArray[np.bool_]
    """Whether the deployment is within the limits and carries the load."""


@dataclass(frozen=True)
class _Best:
    """The best deployment so far of each pair; 0 GPUs where there is none."""

    value: Floats
    floor: Floats
    """Values from here on are at least equal."""
    gpus: Floats
    rate: Floats
    d: Floats
    p: Floats

    @classmethod
    def none(cls, count: int) -> "_Best":
        """No deployment of any pair."""
        least = np.full(count, np.finfo(np.float64).min / 2)
        return cls(least, np.full(count, -np.inf), *(np.zeros(count) for _ in range(4)))

    def take(self, order: Ints) -> "_Best":
        """A copy in another order."""
        return _Best(**{name: getattr(self, name)[order] for name in self.__dataclass_fields__})

    def put(self, order: Ints, others: "_Best") -> None:
        """Write back a copy that was taken in this order."""
        for name in self.__dataclass_fields__:
            getattr(self, name)[order] = getattr(others, name)

    def offer(self, points: _Points, goal: Goal) -> None:
        """Take over the points that are better."""
        match goal:
            case "rate_per_gpu":
                value = points.rate / points.gpus
            case "rate":
                value = points.rate
            case "fewest_gpus":
                value = -points.gpus
        at = np.flatnonzero(points.fits & (value >= self.floor[: len(value)]))
        if at.size == 0:
            return
        better = value[at] > self.value[at] + TIE * np.abs(self.value[at])
        equal = ~better
        slack = TIE * self.rate[at]
        for new, old, tie in (
            (points.gpus[at], self.gpus[at], 0.0),
            (-points.rate[at], -self.rate[at], slack),
            (points.d[at], self.d[at], 0.0),
            (points.p[at], self.p[at], 0.0),
        ):
            better |= equal & (new < old - tie)
            equal &= np.abs(new - old) <= tie
        at = at[better]
        self.value[at] = value[at]
        self.floor[at] = value[at] - TIE * np.abs(value[at])
        for name in ("gpus", "rate", "d", "p"):
            getattr(self, name)[at] = getattr(points, name)[at]


def _break_points(pairs: Pairs, limits: Limits) -> Iterator[tuple[Ints, Iterator[_Points]]]:
    """Orders of the pairs, each with points of its first pairs: one prefill or decode worker more each time."""
    most_p, most_d = _most_workers(pairs, limits)
    fitting = np.flatnonzero((most_p >= 1) & (most_d >= 1))
    for rate, most in ((pairs.prefill_rate, most_p), (pairs.decode_rate, most_d)):
        order = fitting[np.argsort(-most[fitting], kind="stable")]
        yield order, _by_count(pairs.take(order), rate[order], most[order], limits)
    loaded = fitting[np.isfinite(pairs.offered_rate[fitting])]
    if loaded.size:
        some = pairs.take(loaded)
        yield loaded, iter((_points(some, some.offered_rate, limits),))


def _by_count(pairs: Pairs, rate: Floats, most: Ints, limits: Limits) -> Iterator[_Points]:
    """For 1, 2, … workers of one role the points of the pairs that may have so many; ``most`` descends."""
    for count in range(1, int(most.max(initial=0)) + 1):
        some = pairs.first(int(np.searchsorted(-most, -count, side="right")))
        yield _points(some, rate[: len(some)] * count, limits)


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


def _points(pairs: Pairs, rate: Floats, limits: Limits) -> _Points:
    """The least deployment of each pair that serves this rate, as far as it is offered and as it is needed."""
    rate = np.minimum(rate, pairs.offered_rate)
    rate = np.maximum(rate, pairs.needed_rate)
    p = least_workers(rate, pairs.prefill_rate)
    d = np.maximum(least_workers(rate, pairs.decode_rate), pairs.least_decode_workers)
    gpus = p * pairs.prefill_gpus + d * pairs.decode_gpus
    most_p, most_d = _most_workers(pairs, limits)
    if limits.min_gpu_budget > 1:
        short = np.flatnonzero((gpus < limits.min_gpu_budget) & (p <= most_p) & (d <= most_d))
        p[short], d[short] = _padded(p[short], d[short], pairs.take(short), (most_p[short], most_d[short]), limits)
        gpus = p * pairs.prefill_gpus + d * pairs.decode_gpus
    capacity = np.minimum(pairs.prefill_rate * p, pairs.decode_rate * d)
    fits = (p <= most_p) & (d <= most_d) & (gpus <= limits.gpu_budget) & (gpus >= limits.min_gpu_budget)
    fits &= capacity >= pairs.needed_rate * (1 - TIE)
    return _Points(p, d, gpus, np.minimum(capacity, pairs.offered_rate), fits)


def _padded(p: Floats, d: Floats, pairs: Pairs, most: tuple[Ints, Ints], limits: Limits) -> tuple[Floats, Floats]:
    """Counts raised to the cheapest total of at least the least budget; ties: fewer decode workers.

    Totals repeat after as many more decode workers as a prefill worker has GPUs (over their common divisor); the
    first step is the least that leaves no more to prefill workers than their cap. Where nothing fits they stay.
    """
    least, g_p, g_d = limits.min_gpu_budget, pairs.prefill_gpus, pairs.decode_gpus
    first_d = np.maximum(d, np.ceil((least - most[0] * g_p) / g_d))
    best_total = np.full(len(p), np.inf)
    best_p, best_d = p.copy(), d.copy()
    period = g_p // np.gcd(g_p, g_d)
    for step in range(int(period.max(initial=0))):
        at = np.flatnonzero(period > step)
        more_d = first_d[at] + step
        more_p = np.maximum(p[at], np.ceil((least - more_d * g_d[at]) / g_p[at]))
        total = more_p * g_p[at] + more_d * g_d[at]
        better = (more_d <= most[1][at]) & (more_p <= most[0][at])
        better &= (total <= limits.gpu_budget) & (total < best_total[at])
        chosen = at[better]
        best_total[chosen], best_p[chosen], best_d[chosen] = total[better], more_p[better], more_d[better]
    return best_p, best_d
