"""The slow, obvious matching: every worker count, in exact rational arithmetic. The specification of `match`."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import product

from dgdr_job.matching.arrays import ONE_PRICE, TIE, Goal, Prices
from dgdr_job.space.limits import Limits, PoolName

Counts = dict[PoolName, int]
Choice = tuple[Fraction, int, Fraction, tuple[int, ...]]
"""Value, GPUs, rate, and decode, prefill and encode workers: what decides, in this order."""


def deployments(gpus: Mapping[PoolName, int], limits: Limits) -> Iterator[tuple[Counts, int]]:
    """Every (workers of each pool, GPUs in all) within the limits.

    Args:
        gpus: GPUs of one worker of each pool.
        limits: what bounds the counts.
    """
    for workers in product(*(range(1, limits.gpu_budget // each + 1) for each in gpus.values())):
        counts = dict(zip(gpus, workers, strict=True))
        total = sum(counts[pool] * gpus[pool] for pool in gpus)
        if limits.min_gpu_budget <= total <= limits.gpu_budget and _keeps_caps(counts, gpus, limits):
            yield counts, total


def _keeps_caps(counts: Counts, gpus: Mapping[PoolName, int], limits: Limits) -> bool:
    for pool, count in counts.items():
        max_gpus, max_workers = limits.caps(pool)
        if max_gpus is not None and count * gpus[pool] > max_gpus:
            return False
        if max_workers is not None and count > max_workers:
            return False
    return all(
        sum(counts[pool] * gpus[pool] for pool in counts if pool in cap.pools) <= cap.gpus for cap in limits.shared
    )


def best_counts(
    pools: Mapping[PoolName, tuple[float, int]],
    limits: Limits,
    goal: Goal,
    *,
    least_decode_workers: int = 1,
    offered_rate: float = float("inf"),
    needed_rate: float = 0.0,
    prices: Prices = ONE_PRICE,
) -> Counts | None:
    """The best worker counts of one tuple of rows, by trying all.

    Args:
        pools: of each pool the rate of one worker in requests per second, and its GPUs.
        limits: what bounds the counts.
        goal: what is maximised; ties go to fewer GPUs, then the higher rate, then fewer decode, then fewer prefill,
            then fewer encode workers.
        least_decode_workers: workers that hold the offered concurrency.
        offered_rate: requests per second that the load brings; nothing serves more.
        needed_rate: requests per second that the deployment must be able to serve.
        prices: price of one GPU of each role.

    Returns:
        The workers of each pool, or None where no count is within the limits.
    """
    best: Choice | None = None
    best_counts: Counts | None = None
    for counts, gpus in deployments({pool: each[1] for pool, each in pools.items()}, limits):
        capacity = min(Fraction(pools[pool][0]) * count for pool, count in counts.items())
        if counts["decode"] < least_decode_workers or capacity < Fraction(needed_rate) * (1 - Fraction(TIE)):
            continue
        rate = capacity if offered_rate == float("inf") else min(capacity, Fraction(offered_rate))
        cost = sum(Fraction(prices.of(pool)) * count * pools[pool][1] for pool, count in counts.items())
        order = tuple(counts.get(pool, 0) for pool in ("decode", "prefill", "encode"))
        choice = (_value(goal, rate, gpus, Fraction(cost)), gpus, rate, order)
        if best is None or _better(choice, best):
            best, best_counts = choice, counts
    return best_counts


def best_count(
    rate: float,
    gpus: int,
    limits: Limits,
    goal: Goal,
    *,
    least_workers: int = 1,
    offered_rate: float = float("inf"),
    needed_rate: float = 0.0,
) -> int | None:
    """The best number of workers that do everything themselves, by trying all; arguments as for `best_counts`."""
    best: Choice | None = None
    for count in range(least_workers, limits.gpu_budget // gpus + 1):
        capacity = Fraction(rate) * count
        if count * gpus < limits.min_gpu_budget or capacity < Fraction(needed_rate) * (1 - Fraction(TIE)):
            continue
        served = capacity if offered_rate == float("inf") else min(capacity, Fraction(offered_rate))
        total = count * gpus
        choice = (_value(goal, served, total, Fraction(total)), total, served, (count,))
        if best is None or _better(choice, best):
            best = choice
    return None if best is None else best[3][0]


def _value(goal: Goal, rate: Fraction, gpus: int, cost: Fraction) -> Fraction:
    return {
        "rate_per_gpu": rate / gpus,
        "rate_per_cost": rate / cost,
        "rate": rate,
        "fewest_gpus": Fraction(0),
    }[goal]


def _better(new: Choice, old: Choice) -> bool:
    if not _equal(new[0], old[0]):
        return new[0] > old[0]
    if new[1] != old[1]:
        return new[1] < old[1]
    if not _equal(new[2], old[2]):
        return new[2] > old[2]
    return new[3] < old[3]


def _equal(a: Fraction, b: Fraction) -> bool:
    return abs(a - b) <= Fraction(TIE) * max(abs(a), abs(b))
