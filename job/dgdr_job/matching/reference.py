"""The slow, obvious matching: every worker count, in exact rational arithmetic. The specification of `match`."""

from collections.abc import Iterator
from fractions import Fraction

from dgdr_job.matching.arrays import TIE, Goal
from dgdr_job.space.limits import Limits


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
) -> tuple[int, int] | None:
    """The best worker counts of one pair of rows, by trying all.

    Args:
        prefill: rate of one worker in requests per second, and its GPUs.
        decode: the same for a decode worker.
        limits: what bounds the counts.
        goal: what is maximised; ties go to fewer GPUs, then fewer decode, then fewer prefill workers.
        least_decode_workers: workers that hold the offered concurrency.
        offered_rate: requests per second that the load brings; nothing serves more.
        needed_rate: requests per second that the deployment must be able to serve.

    Returns:
        (prefill workers, decode workers), or None where no count is within the limits.
    """
    best: tuple[Fraction, int, int, int] | None = None
    for p, d, gpus in deployments(prefill[1], decode[1], limits):
        capacity = min(Fraction(prefill[0]) * p, Fraction(decode[0]) * d)
        if d < least_decode_workers or capacity < Fraction(needed_rate) * (1 - Fraction(TIE)):
            continue
        rate = capacity if offered_rate == float("inf") else min(capacity, Fraction(offered_rate))
        value = {"rate_per_gpu": rate / gpus, "rate": rate, "fewest_gpus": Fraction(0)}[goal]
        if best is None or _better((value, gpus, d, p), best):
            best = (value, gpus, d, p)
    return None if best is None else (best[3], best[2])


def _better(new: tuple[Fraction, int, int, int], old: tuple[Fraction, int, int, int]) -> bool:
    if abs(new[0] - old[0]) > Fraction(TIE) * max(abs(new[0]), abs(old[0])):
        return new[0] > old[0]
    return new[1:] < old[1:]
