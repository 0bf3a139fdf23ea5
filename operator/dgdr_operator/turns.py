"""Whose turn it is when the number of searches at the same time is limited: first come, first served."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dgdr_operator.snapshot import Turn


@dataclass(frozen=True, order=True)
class Waiting:
    """A run that has no Job yet. The order is that of the queue."""

    created: str
    """Creation time, RFC 3339."""
    namespace: str
    name: str
    uid: str


def turns(
    waiting: Iterable[Waiting], searching: Mapping[str, int], *, per_namespace: int, in_cluster: int
) -> dict[str, Turn]:
    """Return the turn of each waiting run by its uid.

    Args:
        waiting: runs without a Job.
        searching: number of searches by namespace.
        per_namespace: searches at the same time in one namespace; 0: any number.
        in_cluster: searches at the same time; 0: any number.
    """
    busy = Counter(searching)
    total = busy.total()
    found: dict[str, Turn] = {}
    held_by_namespace: list[Waiting] = []
    held_by_cluster: list[Waiting] = []
    for run in sorted(waiting):
        if per_namespace and busy[run.namespace] >= per_namespace:
            held_by_namespace.append(run)
        elif in_cluster and total >= in_cluster:
            held_by_cluster.append(run)
        else:
            busy[run.namespace] += 1
            total += 1
            found[run.uid] = Turn()
    sizes = Counter(run.namespace for run in held_by_namespace)
    places: Counter[str] = Counter()
    for run in held_by_namespace:
        places[run.namespace] += 1
        where = f"namespace {run.namespace}"
        found[run.uid] = _held(places[run.namespace], sizes[run.namespace], per_namespace, where)
    for place, run in enumerate(held_by_cluster, 1):
        found[run.uid] = _held(place, len(held_by_cluster), in_cluster, "the cluster")
    return found


def _held(place: int, size: int, limit: int, where: str) -> Turn:
    waiting = f"position {place} of {size}; searches are limited to {limit} at the same time in {where}"
    return Turn(granted=False, waiting=waiting)
