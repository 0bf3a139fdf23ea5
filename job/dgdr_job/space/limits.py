"""What bounds the worker counts of a deployment."""

from dataclasses import dataclass
from typing import Literal, get_args

from dgdr_api.terms import RoleKind

PoolName = Literal["prefill", "decode", "encode"]
"""The workers of one role. Workers that prefill and decode are the decode pool of a deployment."""

POOL_NAMES: tuple[PoolName, ...] = get_args(PoolName)
"""In the order in which the pools of a deployment stand."""

POOL_OF_ROLE: dict[RoleKind, PoolName] = {"prefill": "prefill", "decode": "decode", "agg": "decode", "encode": "encode"}
"""The pool that the workers of a role are."""


@dataclass(frozen=True)
class SharedCap:
    """A hard limit on the GPUs of several pools together: what one GPU type has, where not all roles share it."""

    pools: frozenset[PoolName]
    gpus: int
    name: str = "a shared cap"
    """What sets it, for messages."""


@dataclass(frozen=True)
class Limits:
    """Hard limits on one deployment. All are inclusive, and each is enforced alone."""

    gpu_budget: int
    """GPUs of all workers together."""
    min_gpu_budget: int = 1
    """Least GPUs of all workers together."""
    max_prefill_gpus: int | None = None
    max_decode_gpus: int | None = None
    max_prefill_workers: int | None = None
    max_decode_workers: int | None = None
    budget_name: str = "the budget"
    """What sets ``gpu_budget``, for messages."""
    max_encode_gpus: int | None = None
    max_encode_workers: int | None = None
    shared: tuple[SharedCap, ...] = ()

    def caps(self, pool: PoolName) -> tuple[int | None, int | None]:
        """Most GPUs and most workers of one pool."""
        match pool:
            case "prefill":
                return self.max_prefill_gpus, self.max_prefill_workers
            case "decode":
                return self.max_decode_gpus, self.max_decode_workers
            case "encode":
                return self.max_encode_gpus, self.max_encode_workers

    def most_workers(self, pool: PoolName, gpus: int, others: int) -> int:
        """Largest count of this pool's workers of ``gpus`` GPUs each when the other pools take ``others`` in all.

        Caps that it shares with other pools are not looked at.
        """
        max_gpus, max_workers = self.caps(pool)
        most = max(self.gpu_budget - others, 0) // gpus
        if max_gpus is not None:
            most = min(most, max_gpus // gpus)
        return most if max_workers is None else min(most, max_workers)
