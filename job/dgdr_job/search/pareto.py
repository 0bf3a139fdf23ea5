"""The exact non-dominated set and the order in which its points are published.

Source of the order: engine.md section 8. Objectives are scaled to 0..1 over the front with reference point 0; the
extreme of each objective comes first, then again and again the point that adds most hypervolume; ties by a key.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dgdr_job.matching.arrays import TIE, Floats, Ints
from dgdr_job.search.points import differs

Key = Callable[[int], Any]
"""Sort key of a point by its position in the front: decides between equal points, and is asked only for those."""


def front(scores: Floats) -> Ints:
    """Positions of the non-dominated points, ascending; of points that are equal in all objectives the first one.

    Scores within 1e-12 relative are equal (engine.md section 6): better by a rounding error alone is not better.

    Args:
        scores: [points, objectives], higher is better.
    """
    from moocore import is_nondominated  # noqa: PLC0415 - 50 ms that only this mode needs

    if len(scores) == 0:
        return np.empty(0, dtype=np.int64)
    levels = np.stack([_levels(column) for column in scores.T], axis=1)
    return np.flatnonzero(is_nondominated(levels, maximise=True, keep_weakly=False))


def _levels(values: Floats) -> Floats:
    """The values by number, least first; neighbours within the tie have one number."""
    order = np.argsort(values, kind="stable")
    levels = np.empty(len(values))
    levels[order] = np.concatenate([[0], np.cumsum(differs(values[order]))])
    return levels


def scaled(scores: Floats) -> Floats:
    """Scores scaled to 0..1 over the front; an objective that does not vary is 1 everywhere."""
    low, high = scores.min(axis=0), scores.max(axis=0)
    span = high - low
    return np.where(span > 0, (scores - low) / np.where(span > 0, span, 1.0), 1.0)


def knee_product(unit: Floats) -> Floats:
    """Product of the scaled objectives of each point; the greatest is the knee."""
    product: Floats = np.prod(unit, axis=1)
    return product


@dataclass(order=True)
class _Gain:
    negated: float
    position: int


def publication_order(unit: Floats, key: Key, count: int) -> list[int]:
    """The first ``count`` points of the front in the order of publication.

    The gain in hypervolume never grows as points are added, so a gain that was computed earlier is an upper bound
    and only the points at the top of the heap are computed anew.

    Args:
        unit: [points, objectives], scaled to 0..1.
        key: decides ties; unique for each point.
        count: how many positions are wanted.
    """
    chosen = _extremes(unit, key)[:count]
    if len(chosen) < min(count, len(unit)):
        taken = set(chosen)
        heap = [_Gain(-np.inf, i) for i in range(len(unit)) if i not in taken]
        heapq.heapify(heap)
        while heap and len(chosen) < count:
            chosen.append(_next(heap, unit, chosen, key))
    return chosen


def _extremes(unit: Floats, key: Key) -> list[int]:
    chosen: list[int] = []
    for column in unit.T:
        best = _first(np.flatnonzero(column == column.max()).tolist(), key)
        if best not in chosen:
            chosen.append(best)
    return chosen


def _first(positions: list[int], key: Key) -> int:
    """The position with the smallest key; a single one needs none."""
    return min(positions, key=key) if len(positions) > 1 else positions[0]


def _next(heap: list[_Gain], unit: Floats, chosen: Sequence[int], key: Key) -> int:
    """Take the point that adds most; gains within the tie go to the smallest key."""
    present = hypervolume(unit[list(chosen)])
    fresh: list[_Gain] = []
    while heap and (not fresh or -heap[0].negated >= max(-gain.negated for gain in fresh) * (1 - TIE)):
        top = heapq.heappop(heap)
        gain = hypervolume(unit[[*chosen, top.position]]) - present
        fresh.append(_Gain(-gain, top.position))
    most = max(-gain.negated for gain in fresh)
    best = _first([each.position for each in fresh if -each.negated >= most * (1 - TIE)], key)
    for each in fresh:
        if each.position != best:
            heapq.heappush(heap, each)
    return best


def hypervolume(unit: Floats) -> float:
    """Volume between the points and the origin."""
    from moocore import hypervolume as volume  # noqa: PLC0415 - as above

    return float(volume(unit, ref=0.0, maximise=True))
