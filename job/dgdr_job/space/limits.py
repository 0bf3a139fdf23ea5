"""What bounds the worker counts of a deployment."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Hard limits on one deployment. All are inclusive."""

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

    def most_prefill_workers(self, gpus: int, others: int) -> int:
        """Largest count of prefill workers of ``gpus`` GPUs each when the other roles take at least ``others``."""
        return _most(gpus, self.gpu_budget - others, self.max_prefill_gpus, self.max_prefill_workers)

    def most_decode_workers(self, gpus: int, others: int) -> int:
        """Largest count of decode workers of ``gpus`` GPUs each when the other roles take at least ``others``."""
        return _most(gpus, self.gpu_budget - others, self.max_decode_gpus, self.max_decode_workers)


def _most(gpus: int, room: int, max_gpus: int | None, max_workers: int | None) -> int:
    most = max(room, 0) // gpus
    if max_gpus is not None:
        most = min(most, max_gpus // gpus)
    if max_workers is not None:
        most = min(most, max_workers)
    return most
