"""The best worker counts of many tuples of rows at once, exactly.

The optimum of a tuple lies where one pool is just saturated: at a rate R out of {P * p}, {D * d}, {C * e} and the
offered rate, with the least counts that reach it, p = ceil(R / P), d = ceil(R / D), e = ceil(R / C). Any feasible
deployment's rate is one of these, and least counts never cost more and stay within every cap; below the least budget a
deployment is padded to the cheapest total that can be reached: the fewest GPUs, or the least cost where the roles' GPUs
have their own prices. Source: engine.md section 6; `reference` is the specification, by trying all.

Rates are gone through from the highest down. A deployment that must be padded is looked at only where its own rate, on
no more than the least budget, could still win: what its padding serves beyond that rate, the break point of the higher
rate serves for no more GPUs.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dgdr_job.matching.arrays import ONE_PRICE, TIE, Floats, Goal, Ints, Prices
from dgdr_job.matching.matched import Matched, concatenate, least_workers
from dgdr_job.matching.padding import TIE_ORDER, Counts, Padding, Short, Step, cheapest, steps
from dgdr_job.matching.tuples import Tuples, most_workers, saturated_workers
from dgdr_job.space.limits import Limits, PoolName

Caps = dict[PoolName, Ints]
"""Most workers of each pool."""
CHUNK_POINTS = 500_000
"""Deployments that `all_deployments` holds at once, about 50 MB with what is computed on the way."""
CHUNK_TUPLES = 32_768
"""Tuples that are matched at once: few enough that what is computed of them stays in the processor's cache."""


def best_deployments(tuples: Tuples, limits: Limits, goal: Goal, prices: Prices = ONE_PRICE) -> Matched:
    """The best deployment of each tuple that has one.

    Ties: fewer GPUs, then the higher rate, then fewer decode, then fewer prefill, then fewer encode workers.
    """
    return concatenate([_best(start, part, limits, goal, prices) for start, part in _parts(tuples)])


def all_deployments(tuples: Tuples, limits: Limits, prices: Prices = ONE_PRICE) -> Iterator[Matched]:
    """Every deployment that no other of the same tuple equals or beats in rate, GPUs and cost, and some more.

    A superset of the frontier: whatever is non-dominated in metrics that depend on the rows, the rate, the GPUs and
    the cost is among them. They come in chunks, in no order that means anything.
    """
    held: list[Matched] = []
    points = 0
    for start, part in _parts(tuples):
        for found in _all(start, part, limits, prices):
            held.append(found)
            points += len(found)
            if points >= CHUNK_POINTS:
                yield concatenate(held)
                held, points = [], 0
    yield concatenate(held)


def break_points(tuples: Tuples, limits: Limits) -> int:
    """How many counts `all_deployments` goes through."""
    useful = saturated_workers(tuples, limits, most_workers(tuples, limits))
    return int(sum(count.sum() for count in useful)) + int((np.maximum.reduce(useful) > 0).sum())


@dataclass(frozen=True)
class _Points:
    """Deployments of some tuples. Counts and GPUs are whole numbers in floats, for speed."""

    counts: Counts
    gpus: Floats
    cost: Floats
    rate: Floats
    fits: npt.NDArray[np.bool_]
    """Whether the deployment is within the limits and carries the load."""


@dataclass(frozen=True)
class _Least:
    """The least deployment that serves a rate, of the first tuples of an order."""

    tuples: Tuples
    rate: Floats
    """As far as it is offered, and as it is needed."""
    counts: Counts
    gpus: Floats
    most: Caps
    within: npt.NDArray[np.bool_]
    """Whether the counts keep the caps of each pool."""

    def short(self, limits: Limits) -> Ints:
        """Positions below the least budget."""
        if limits.min_gpu_budget <= 1:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(self.within & (self.gpus < limits.min_gpu_budget))

    def short_of(self, rows: Ints, limits: Limits) -> Short:
        """What is padded at these positions."""
        return Short(self.tuples, self.counts, self.most, limits).take(rows)


@dataclass(frozen=True)
class _Best:
    """The best deployment so far of each tuple; 0 GPUs where there is none."""

    value: Floats
    floor: Floats
    """Values from here on are at least equal."""
    gpus: Floats
    rate: Floats
    counts: Counts

    @classmethod
    def none(cls, tuples: Tuples) -> "_Best":
        """No deployment of any tuple."""
        size = len(tuples)
        least = np.full(size, np.finfo(np.float64).min / 2)
        ordered = [name for name in TIE_ORDER if name in tuples.names]
        return cls(
            least, np.full(size, -np.inf), np.zeros(size), np.zeros(size), {name: np.zeros(size) for name in ordered}
        )

    def take(self, order: Ints) -> "_Best":
        """A copy in another order."""
        counts = {name: count[order] for name, count in self.counts.items()}
        return _Best(self.value[order], self.floor[order], self.gpus[order], self.rate[order], counts)

    def put(self, order: Ints, others: "_Best") -> None:
        """Write back a copy that was taken in this order."""
        self.value[order], self.floor[order] = others.value, others.floor
        self.gpus[order], self.rate[order] = others.gpus, others.rate
        for name, count in self.counts.items():
            count[order] = others.counts[name]

    def offer(self, points: _Points, goal: Goal, rows: Ints | None = None) -> None:
        """Take over the points that are better: those of the first tuples, or of the tuples at these positions."""
        value: Floats = _value(goal, points.rate, points.gpus, points.cost)
        floor = self.floor[: len(value)] if rows is None else self.floor[rows]
        new = np.flatnonzero(points.fits & (value >= floor))
        if new.size == 0:
            return
        at = new if rows is None else rows[new]
        better = value[new] > self.value[at] + TIE * np.abs(self.value[at])
        equal = ~better
        keys: list[tuple[Floats, Floats, Floats | float]] = [
            (points.gpus[new], self.gpus[at], 0.0),
            (-points.rate[new], -self.rate[at], TIE * self.rate[at]),
            *((points.counts[name][new], count[at], 0.0) for name, count in self.counts.items()),
        ]
        for mine, theirs, tie in keys:
            better |= equal & (mine < theirs - tie)
            equal &= np.abs(mine - theirs) <= tie
        new, at = new[better], at[better]
        self.value[at] = value[new]
        self.floor[at] = value[new] - TIE * np.abs(value[new])
        self.gpus[at], self.rate[at] = points.gpus[new], points.rate[new]
        for name, count in self.counts.items():
            count[at] = points.counts[name][new]

    def could_gain(self, least: _Least, rows: Ints, goal: Goal, limits: Limits, prices: Prices) -> Ints:
        """Of these positions, all below the least budget, those whose padding can be better.

        The padding serves this rate on at least the least budget. Where it serves more, it is no better than the break
        point of the rate that it serves.
        """
        gpus = np.full(rows.size, float(limits.min_gpu_budget))
        rate = np.minimum(least.rate[rows], least.tuples.offered_rate[rows])
        cost = gpus
        if not prices.one:
            counts = {name: count[rows] for name, count in least.counts.items()}
            cost = _cost(least.tuples.take(rows), counts, prices)
            cost += (gpus - least.gpus[rows]) * min(prices.of(name) for name in least.tuples.names)
        gains = _value(goal, rate, gpus, cost) >= self.floor[rows]
        if goal != "rate_per_cost":
            gains &= (self.gpus[rows] != limits.min_gpu_budget) | (rate >= self.rate[rows] * (1 - TIE))
        return rows[gains]


def _value(goal: Goal, rate: Floats, gpus: Floats, cost: Floats) -> Floats:
    match goal:
        case "rate_per_gpu":
            return rate / gpus
        case "rate_per_cost":
            return rate / cost
        case "rate":
            return rate
        case "fewest_gpus":
            return -gpus


def _parts(tuples: Tuples) -> Iterator[tuple[int, Tuples]]:
    for start in range(0, len(tuples), CHUNK_TUPLES):
        yield start, tuples.take(slice(start, start + CHUNK_TUPLES))


def _best(start: int, tuples: Tuples, limits: Limits, goal: Goal, prices: Prices) -> Matched:
    """The best deployments of one part of the tuples, which begins there."""
    best = _Best.none(tuples)
    padding: Padding = "least_cost" if goal == "rate_per_cost" else "fewest_gpus"
    for order, rates in _break_points(tuples, limits):
        mine = best.take(order)
        for least in rates:
            mine.offer(
                _measured(least.tuples, least.counts, least.gpus, least.within, limits=limits, prices=prices), goal
            )
            short = mine.could_gain(least, least.short(limits), goal, limits, prices)
            if short.size:
                padded = least.short_of(short, limits)
                mine.offer(_padded(padded, cheapest(padded, prices, padding), limits, prices), goal, short)
        best.put(order, mine)
    at = np.flatnonzero(best.gpus > 0)
    return _matched(start + at, best.counts, best.gpus, best.rate, at)


def _all(start: int, tuples: Tuples, limits: Limits, prices: Prices) -> Iterator[Matched]:
    """What `all_deployments` holds of one part of the tuples, which begins there."""
    on_least_budget = np.zeros(len(tuples))  # highest rate that exactly the least budget was seen to serve
    for order, rates in _break_points(tuples, limits):
        for least in rates:
            points = _measured(least.tuples, least.counts, least.gpus, least.within, limits=limits, prices=prices)
            at = np.flatnonzero(points.fits)
            yield _matched(start + order[at], points.counts, points.gpus, points.rate, at)
            short = least.short(limits)
            if prices.one:
                short = short[least.rate[short] >= on_least_budget[order[short]] * (1 - TIE)]
            padded = least.short_of(short, limits)
            for rows, counts in _paddings(padded, prices):
                points = _padded(padded.take(rows), counts, limits, prices)
                at = np.flatnonzero(points.fits)
                yield _matched(start + order[short[rows[at]]], points.counts, points.gpus, points.rate, at)
                exact = rows[at[points.gpus[at] == limits.min_gpu_budget]]
                on_least_budget[order[short[exact]]] = np.maximum(
                    on_least_budget[order[short[exact]]], least.rate[short[exact]]
                )


def _matched(pair: Ints, counts: Counts, gpus: Floats, rate: Floats, at: Ints) -> Matched:
    workers = {name: count[at].astype(np.int64) for name, count in counts.items()}
    return Matched.of(pair, workers, gpus[at].astype(np.int64), rate[at])


def _paddings(short: Short, prices: Prices) -> Iterator[Step]:
    """The cheapest padding of each; where GPUs have different prices, every one that can be the cheapest of some."""
    if len(short.tuples) == 0:
        return
    if prices.one:
        yield np.arange(len(short.tuples)), cheapest(short, prices, "fewest_gpus")
    else:
        yield from steps(short, "every")


def _break_points(tuples: Tuples, limits: Limits) -> Iterator[tuple[Ints, Iterator[_Least]]]:
    """Per pool the order of the tuples, and in it what serves each of the pool's rates, from the highest on."""
    most = most_workers(tuples, limits)
    by_name = dict(zip(tuples.names, most, strict=True))
    useful = saturated_workers(tuples, limits, most)
    fitting = np.flatnonzero(np.maximum.reduce(useful) > 0)
    for pool, bound in zip(tuples.pools, useful, strict=True):
        order = fitting[np.argsort(-bound[fitting], kind="stable")]
        caps = {name: each[order] for name, each in by_name.items()}
        yield order, _by_count(tuples.take(order), caps, pool.rate[order], bound[order])
    loaded = fitting[np.isfinite(tuples.offered_rate[fitting])]
    if loaded.size:
        caps = {name: each[loaded] for name, each in by_name.items()}
        yield loaded, iter((_least(tuples.take(loaded), caps, tuples.offered_rate[loaded]),))


def _by_count(tuples: Tuples, most: Caps, rate: Floats, bound: Ints) -> Iterator[_Least]:
    """For …, 2, 1 workers of one pool the tuples that may have so many; ``bound``, of it, descends."""
    for count in range(int(bound.max(initial=0)), 0, -1):
        first = slice(int(np.searchsorted(-bound, -count, side="right")))
        yield _least(tuples.take(first), {name: each[first] for name, each in most.items()}, rate[first] * count)


def _least(tuples: Tuples, most: Caps, rate: Floats) -> _Least:
    """The least deployment of each tuple that serves this rate, as far as it is offered and as it is needed."""
    rate = np.maximum(np.minimum(rate, tuples.offered_rate), tuples.needed_rate)
    counts: Counts = {}
    gpus, within = np.zeros(len(tuples)), np.ones(len(tuples), dtype=np.bool_)
    for pool in tuples.pools:
        count = least_workers(rate, pool.rate)
        if pool.least_workers is not None:
            count = np.maximum(count, pool.least_workers)
        counts[pool.name] = count
        within &= count <= most[pool.name]
        gpus += count * pool.gpus
    return _Least(tuples, rate, counts, gpus, most, within)


def _padded(short: Short, counts: Counts, limits: Limits, prices: Prices) -> _Points:
    gpus = np.zeros(len(short.tuples))
    within = np.ones(len(short.tuples), dtype=np.bool_)
    for pool in short.tuples.pools:
        gpus += counts[pool.name] * pool.gpus
        within &= counts[pool.name] <= short.most[pool.name]
    return _measured(short.tuples, counts, gpus, within, limits=limits, prices=prices)


def _cost(tuples: Tuples, counts: Counts, prices: Prices) -> Floats:
    cost = np.zeros(len(tuples))
    for pool in tuples.pools:
        cost += counts[pool.name] * pool.gpus * prices.of(pool.name)
    return cost


def _measured(
    tuples: Tuples, counts: Counts, gpus: Floats, within: npt.NDArray[np.bool_], *, limits: Limits, prices: Prices
) -> _Points:
    """What these counts take and serve; ``within``: which of them keep the caps of each pool."""
    fits = within & (gpus <= limits.gpu_budget) & (gpus >= limits.min_gpu_budget)
    for cap in limits.shared:
        fits &= sum(counts[pool.name] * pool.gpus for pool in tuples.pools if pool.name in cap.pools) <= cap.gpus
    capacity = np.minimum.reduce([counts[pool.name] * pool.rate for pool in tuples.pools])
    fits &= capacity >= tuples.needed_rate * (1 - TIE)
    cost = gpus if prices.one else _cost(tuples, counts, prices)
    return _Points(counts, gpus, cost, np.minimum(capacity, tuples.offered_rate), fits)
