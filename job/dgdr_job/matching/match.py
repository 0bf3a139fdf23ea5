"""The best worker counts of many pairs of rows at once, exactly.

The optimum of a pair lies where one role is just saturated: at a rate R out of {P * p}, {D * d} and the offered
rate, with the least counts that reach it, p = ceil(R / P) and d = ceil(R / D). Any feasible deployment's rate is one
of these, and least counts never cost more and stay within every cap; below the least budget a deployment is padded to
the cheapest total that can be reached: the fewest GPUs, or the least cost where the roles' GPUs have their own prices.
Source: engine.md section 6; `reference` is the specification, by trying all.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from dgdr_job.matching.arrays import ONE_PRICE, TIE, Floats, Goal, Ints, Prices
from dgdr_job.matching.matched import Matched, concatenate, least_workers
from dgdr_job.space.limits import Limits

Padding = Literal["fewest_gpus", "least_cost", "every"]
"""Which counts a deployment below the least budget is raised to."""
Most = tuple[Ints, Ints]
"""The most prefill and decode workers of each pair when the other role has one worker."""
Step = tuple[Ints, Floats, Floats]
"""Positions, and prefill and decode workers there."""
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


def best_deployments(pairs: Pairs, limits: Limits, goal: Goal, prices: Prices = ONE_PRICE) -> Matched:
    """The best deployment of each pair that has one.

    Ties: fewer GPUs, then the higher rate, then fewer decode, then fewer prefill workers.
    """
    best = _Best.none(len(pairs))
    padding: Padding = "least_cost" if goal == "rate_per_cost" else "fewest_gpus"
    for order, points in _break_points(pairs, limits, prices, padding):
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


def all_deployments(pairs: Pairs, limits: Limits, prices: Prices = ONE_PRICE) -> Iterator[Matched]:
    """Every deployment that no other of the same pair equals or beats in rate, GPUs and cost, and some more.

    A superset of the frontier: whatever is non-dominated in metrics that depend on the rows, the rate, the GPUs and
    the cost is among them. They come in chunks, in no order that means anything.
    """
    held: list[Matched] = []
    for order, points in _break_points(pairs, limits, prices, "fewest_gpus" if prices.one else "every"):
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
    most_p, most_d = most_workers(pairs, limits)
    fitting = (most_p >= 1) & (most_d >= 1)
    return int((most_p[fitting] + most_d[fitting]).sum()) + int(fitting.sum())


@dataclass(frozen=True)
class _Points:
    """One break point of each of the first pairs of an order. Counts are whole numbers in floats, for speed."""

    p: Floats
    d: Floats
    gpus: Floats
    cost: Floats
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
            case "rate_per_cost":
                value = points.rate / points.cost
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


def _break_points(
    pairs: Pairs, limits: Limits, prices: Prices, padding: Padding
) -> Iterator[tuple[Ints, Iterator[_Points]]]:
    """Orders of the pairs, each with points of its first pairs: one prefill or decode worker more each time."""
    most_p, most_d = most_workers(pairs, limits)
    fitting = np.flatnonzero((most_p >= 1) & (most_d >= 1))

    def points(some: Pairs, most: Most, rate: Floats) -> Iterator[_Points]:
        return _points(some, most, rate, padding, limits=limits, prices=prices)

    for rate, most in ((pairs.prefill_rate, most_p), (pairs.decode_rate, most_d)):
        order = fitting[np.argsort(-most[fitting], kind="stable")]
        both = most_p[order], most_d[order]
        yield order, _by_count(pairs.take(order), both, rate[order], most[order], points)
    loaded = fitting[np.isfinite(pairs.offered_rate[fitting])]
    if loaded.size:
        some = pairs.take(loaded)
        yield loaded, points(some, (most_p[loaded], most_d[loaded]), some.offered_rate)


def _by_count(
    pairs: Pairs, both: Most, rate: Floats, most: Ints, points: Callable[[Pairs, Most, Floats], Iterator[_Points]]
) -> Iterator[_Points]:
    """For 1, 2, … workers of one role the points of the pairs that may have so many; ``most``, of it, descends."""
    for count in range(1, int(most.max(initial=0)) + 1):
        some = pairs.first(int(np.searchsorted(-most, -count, side="right")))
        size = len(some)
        yield from points(some, (both[0][:size], both[1][:size]), rate[:size] * count)


def most_workers(pairs: Pairs, limits: Limits) -> Most:
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


def _points(
    pairs: Pairs, most: Most, rate: Floats, padding: Padding, *, limits: Limits, prices: Prices
) -> Iterator[_Points]:
    """The least deployment of each pair that serves this rate, as far as it is offered and as it is needed.

    One entry per pair; with every padding, one more for each step of it.
    """
    rate = np.minimum(rate, pairs.offered_rate)
    rate = np.maximum(rate, pairs.needed_rate)
    p = least_workers(rate, pairs.prefill_rate)
    d = np.maximum(least_workers(rate, pairs.decode_rate), pairs.least_decode_workers)
    most_p, most_d = most
    within = (p <= most_p) & (d <= most_d)
    short = np.empty(0, dtype=np.int64)
    if limits.min_gpu_budget > 1:
        gpus = p * pairs.prefill_gpus + d * pairs.decode_gpus
        short = np.flatnonzero(within & (gpus < limits.min_gpu_budget))
    if short.size:
        steps = _paddings(
            p[short], d[short], pairs.take(short), (most_p[short], most_d[short]), limits=limits, padding=padding
        )
        if padding == "every":
            for at, more_p, more_d in steps:
                fuller_p, fuller_d = p.copy(), d.copy()
                fuller_p[short[at]], fuller_d[short[at]] = more_p, more_d
                chosen = np.zeros(len(p), dtype=np.bool_)
                chosen[short[at]] = True
                yield _measured(pairs, fuller_p, fuller_d, chosen, limits=limits, prices=prices)
        else:
            p[short], d[short] = _cheapest(p[short], d[short], pairs.take(short), steps, prices=prices, padding=padding)
    yield _measured(pairs, p, d, within, limits=limits, prices=prices)


def _measured(
    pairs: Pairs, p: Floats, d: Floats, within: npt.NDArray[np.bool_], *, limits: Limits, prices: Prices
) -> _Points:
    """What these counts take and serve; ``within``: which of them keep the caps."""
    gpus_p, gpus_d = p * pairs.prefill_gpus, d * pairs.decode_gpus
    gpus = gpus_p + gpus_d
    capacity = np.minimum(pairs.prefill_rate * p, pairs.decode_rate * d)
    fits = within & (gpus <= limits.gpu_budget) & (gpus >= limits.min_gpu_budget)
    fits &= capacity >= pairs.needed_rate * (1 - TIE)
    cost = gpus if prices.one else gpus_p * prices.prefill + gpus_d * prices.decode
    return _Points(p, d, gpus, cost, np.minimum(capacity, pairs.offered_rate), fits)


def _paddings(p: Floats, d: Floats, pairs: Pairs, most: Most, *, limits: Limits, padding: Padding) -> Iterator[Step]:
    """Counts raised to a total of at least the least budget, within the caps: every total that can be the cheapest.

    With a given number of decode workers the least number of prefill workers is cheapest, and totals repeat after as
    many more decode workers as a prefill worker has GPUs (over their common divisor). From one repetition to the next
    the cost falls or rises throughout, so the cheapest stands at an end: at the fewest decode workers that leave no
    more to prefill workers than their cap, or, the roles exchanged, at the fewest prefill workers. GPUs alone
    (``fewest_gpus``) are the same at both ends.
    """
    least, g_p, g_d = limits.min_gpu_budget, pairs.prefill_gpus, pairs.decode_gpus
    for first, other, g, g_other, most_first, most_other in (
        (d, p, g_d, g_p, most[1], most[0]),
        (p, d, g_p, g_d, most[0], most[1]),
    )[: 1 if padding == "fewest_gpus" else 2]:
        start = np.maximum(first, np.ceil((least - most_other * g_other) / g))
        period = g_other // np.gcd(g, g_other)
        for step in range(int(period.max(initial=0))):
            at = np.flatnonzero(period > step)
            more = start[at] + step
            rest = np.maximum(other[at], np.ceil((least - more * g[at]) / g_other[at]))
            fits = (more <= most_first[at]) & (rest <= most_other[at])
            fits &= more * g[at] + rest * g_other[at] <= limits.gpu_budget
            at, more, rest = at[fits], more[fits], rest[fits]
            yield (at, rest, more) if first is d else (at, more, rest)


def _cheapest(
    p: Floats, d: Floats, pairs: Pairs, steps: Iterator[Step], *, prices: Prices, padding: Padding
) -> tuple[Floats, Floats]:
    """The cheapest padding of each pair; ties: fewer GPUs, then fewer decode workers. Where there is none they stay."""
    best_p, best_d = p.copy(), d.copy()
    best_cost, best_gpus = np.full(len(p), np.inf), np.full(len(p), np.inf)
    for at, more_p, more_d in steps:
        gpus_p, gpus_d = more_p * pairs.prefill_gpus[at], more_d * pairs.decode_gpus[at]
        gpus = gpus_p + gpus_d
        cost = gpus if padding == "fewest_gpus" else gpus_p * prices.prefill + gpus_d * prices.decode
        lower = cost < best_cost[at] * (1 - TIE)
        equal = ~lower & (cost <= best_cost[at] * (1 + TIE))
        fewer = (gpus < best_gpus[at]) | ((gpus == best_gpus[at]) & (more_d < best_d[at]))
        better = lower | (equal & fewer)
        chosen = at[better]
        best_cost[chosen], best_gpus[chosen] = cost[better], gpus[better]
        best_p[chosen], best_d[chosen] = more_p[better], more_d[better]
    return best_p, best_d
