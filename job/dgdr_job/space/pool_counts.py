"""How many worker counts of two or three pools are within the limits, in time linear in the budget.

The number of ways to fill n GPUs is built pool by pool: workers of g GPUs, 1 to K of them, make ways[n] the sum of
ways[n - g], ways[n - 2g], …, ways[n - K g], which is a difference of running sums in steps of g.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from dgdr_job.space.limits import Limits, PoolName

Ways = npt.NDArray[np.int64]


def count_deployments(gpus: Mapping[PoolName, int], limits: Limits) -> int:
    """The number of deployments with at least one worker of each pool.

    Args:
        gpus: GPUs of one worker of each pool.
        limits: what bounds the counts. Its shared caps are those of GPU types, so no pool stands in two of them.
    """
    ways = np.zeros(limits.gpu_budget + 1, dtype=np.int64)
    ways[0] = 1
    members = next((cap for cap in limits.shared if len(cap.pools & gpus.keys()) > 1), None)
    together = () if members is None else tuple(name for name in gpus if name in members.pools)
    for name in together:
        ways = _with_workers(ways, gpus[name], _most(name, gpus[name], limits))
    if members is not None:
        ways[members.gpus + 1 :] = 0
    for name in gpus:
        if name not in together:
            ways = _with_workers(ways, gpus[name], _most(name, gpus[name], limits))
    return int(ways[limits.min_gpu_budget :].sum())


def _most(name: PoolName, gpus: int, limits: Limits) -> int:
    """Most workers of a pool by its own caps, and by a shared one that no other pool is in."""
    alone = [cap.gpus // gpus for cap in limits.shared if name in cap.pools]
    return min(limits.most_workers(name, gpus, 0), *alone)


def _with_workers(ways: Ways, gpus: int, most: int) -> Ways:
    """Ways to fill each number of GPUs with one to ``most`` more workers of so many GPUs."""
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
