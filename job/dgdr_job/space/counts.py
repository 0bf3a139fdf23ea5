"""How many deployments a set of shapes makes within the limits: (shape, workers) of each of its pools."""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from dgdr_api.shape import Shape

from dgdr_job.space.limits import Limits, PoolName

Ways = npt.NDArray[np.int64]


def agg_counts(shape: Shape, limits: Limits) -> range:
    """The worker counts of an aggregated deployment of this shape within the limits."""
    least = -(-limits.min_gpu_budget // shape.gpus)
    return range(max(least, 1), limits.gpu_budget // shape.gpus + 1)


def agg_pairs(shapes: Iterable[Shape], limits: Limits) -> int:
    """Aggregated deployments, knobs aside."""
    return sum(len(agg_counts(shape, limits)) for shape in shapes)


def pool_pairs(pools: Mapping[PoolName, Iterable[Shape]], limits: Limits) -> int:
    """Deployments of workers of several pools, a shape of each, knobs aside."""
    sizes = [Counter(shape.gpus for shape in shapes) for shapes in pools.values()]
    return sum(
        math.prod(count[gpus] for count, gpus in zip(sizes, chosen, strict=True))
        * count_deployments(dict(zip(pools, chosen, strict=True)), limits)
        for chosen in itertools.product(*sizes)
    )


def count_deployments(gpus: Mapping[PoolName, int], limits: Limits) -> int:
    """How many worker counts of these pools, at least one worker of each, are within the limits.

    Args:
        gpus: GPUs of one worker of each pool.
        limits: what bounds the counts. Its shared caps are those of GPU types, so no pool stands in two of them.
    """
    return _count(tuple(gpus.items()), limits)


def most_workers_of(pool: PoolName, gpus: Mapping[PoolName, int], limits: Limits) -> int:
    """The most workers of one pool in any deployment of these pools within the limits; 0 where there is none."""
    others = {name: each for name, each in gpus.items() if name != pool}
    for count in range(limits.most_workers(pool, gpus[pool], sum(others.values())), 0, -1):
        beside = _without(limits, pool, count * gpus[pool])
        if all(cap.gpus >= 0 for cap in beside.shared) and _count(tuple(others.items()), beside):
            return count
    return 0


def _without(limits: Limits, pool: PoolName, gpus: int) -> Limits:
    """What the limits leave to the other pools beside one pool of so many GPUs."""
    return replace(
        limits,
        gpu_budget=limits.gpu_budget - gpus,
        min_gpu_budget=max(limits.min_gpu_budget - gpus, 0),
        shared=tuple(
            replace(cap, pools=cap.pools - {pool}, gpus=cap.gpus - gpus) if pool in cap.pools else cap
            for cap in limits.shared
        ),
    )


@lru_cache(maxsize=4096)
def _count(gpus: tuple[tuple[PoolName, int], ...], limits: Limits) -> int:
    """The ways to fill n GPUs are built pool by pool, those that share a cap first; linear in the budget."""
    names = {name for name, _ in gpus}
    together = next((cap for cap in limits.shared if len(cap.pools & names) > 1), None)
    members = frozenset[PoolName]() if together is None else together.pools
    ways = np.zeros(limits.gpu_budget + 1, dtype=np.int64)
    ways[0] = 1
    for name, each in gpus:
        if name in members:
            ways = _with_workers(ways, each, limits.most_workers(name, each, 0))
    if together is not None:
        ways[max(together.gpus, 0) + 1 :] = 0
    for name, each in gpus:
        if name not in members:
            alone = [max(cap.gpus, 0) // each for cap in limits.shared if name in cap.pools]
            ways = _with_workers(ways, each, min([limits.most_workers(name, each, 0), *alone]))
    return int(ways[limits.min_gpu_budget :].sum())


def _with_workers(ways: Ways, gpus: int, most: int) -> Ways:
    """Ways to fill each number of GPUs with 1 to ``most`` more workers of so many GPUs.

    For n GPUs these are ways[n - gpus] + ways[n - 2 gpus] + ... + ways[n - most gpus]: a difference of running sums in
    steps of ``gpus``.
    """
    size = len(ways)
    rows = -(-size // gpus)
    padded = np.zeros(rows * gpus, dtype=np.int64)
    padded[:size] = ways
    running = np.cumsum(padded.reshape(rows, gpus), axis=0).reshape(-1)
    result = np.zeros(size, dtype=np.int64)
    result[gpus:] = running[: max(size - gpus, 0)]
    beyond = (most + 1) * gpus
    if beyond < size:
        result[beyond:] -= running[: size - beyond]
    return result
