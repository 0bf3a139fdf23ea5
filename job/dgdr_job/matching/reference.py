"""The slow, obvious matching: every worker count, in exact rational arithmetic. The specification of `match`."""

from collections.abc import Iterator
from fractions import Fraction

from dgdr_job.matching.arrays import ONE_PRICE, TIE, Goal, Prices
from dgdr_job.space.limits import Limits

Choice = tuple[Fraction, int, Fraction, int, int]
"""Value, GPUs, rate, decode workers, prefill workers: what decides, in this order."""


def deployments(prefill_gpus: int, decode_gpus: int, limits: Limits) -> Iterator[tuple[int, int, int]]:
    """Every (prefill workers, decode workers, GPUs) within the limits."""
    for p in range(1, limits.most_prefill_workers(prefill_gpus, decode_gpus) + 1):
        for d in range(1, limits.most_decode_workers(decode_gpus, p * prefill_gpus) + 1):
            gpus = p * prefill_gpus + d * decode_gpus
            if limits.min_gpu_budget <= gpus <= limits.gpu_budget:
                yield p, d, gpus


def best_counts(
    prefill: tuple[float, int],
    decode: tuple[float, int],
    limits: Limits,
    goal: Goal,
    *,
    least_decode_workers: int = 1,
    offered_rate: float = float("inf"),
    needed_rate: float = 0.0,
    prices: Prices = ONE_PRICE,
) -> tuple[int, int] | None:
    """The best worker counts of one pair of rows, by trying all.

    Args:
        prefill: rate of one worker in requests per second, and its GPUs.
        decode: the same for a decode worker.
        limits: what bounds the counts.
        goal: what is maximised; ties go to fewer GPUs, then the higher rate, then fewer decode,
            then fewer prefill workers.
        least_decode_workers: workers that hold the offered concurrency.
        offered_rate: requests per second that the load brings; nothing serves more.
        needed_rate: requests per second that the deployment must be able to serve.
        prices: price of one GPU of each role.

    Returns:
        (prefill workers, decode workers), or None where no count is within the limits.
    """
    best: Choice | None = None
    for p, d, gpus in deployments(prefill[1], decode[1], limits):
        capacity = min(Fraction(prefill[0]) * p, Fraction(decode[0]) * d)
        if d < least_decode_workers or capacity < Fraction(needed_rate) * (1 - Fraction(TIE)):
            continue
        rate = capacity if offered_rate == float("inf") else min(capacity, Fraction(offered_rate))
        cost = Fraction(prices.prefill) * p * prefill[1] + Fraction(prices.decode) * d * decode[1]
        value = _value(goal, rate, gpus, cost)
        if best is None or _better((value, gpus, rate, d, p), best):
            best = (value, gpus, rate, d, p)
    return None if best is None else (best[4], best[3])


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
        value = _value(goal, served, total, Fraction(total))
        if best is None or _better((value, total, served, count, 0), best):
            best = (value, total, served, count, 0)
    return None if best is None else best[3]


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
    return new[3:] < old[3:]


def _equal(a: Fraction, b: Fraction) -> bool:
    return abs(a - b) <= Fraction(TIE) * max(abs(a), abs(b))
