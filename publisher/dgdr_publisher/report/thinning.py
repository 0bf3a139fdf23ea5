"""Fewer points where all of them do not fit: the front, the top and a seeded sample stay, in their order."""

import heapq
import itertools
import random
from array import array
from collections.abc import Collection, Iterator, Sequence

from dgdr_api.events import Evaluations
from dgdr_api.terms import LOWER_IS_BETTER

from dgdr_publisher.points import taken

TOP = 1000
"""Points with the best value of the first objective that are always kept."""


def thinned(batches: Sequence[Evaluations], keep: Collection[str], rows: int, seed: int) -> tuple[Evaluations, ...]:
    """At most ``rows`` points.

    Args:
        batches: all points.
        keep: ids that stay: what is published, and the reserve (the whole front, or the first by rank).
        rows: points wanted.
        seed: of the sample.
    """
    total = sum(len(batch.id) for batch in batches)
    if total <= rows:
        return tuple(batches)
    chosen = set(_important(batches, keep)[:rows])
    rest = array("q", (place for place in range(total) if place not in chosen))
    generator = random.Random(seed)  # noqa: S311 - a repeatable sample, no secret
    chosen.update(generator.sample(rest, min(max(rows - len(chosen), 0), len(rest))))
    parts = ((batch, [index for index, place in places if place in chosen]) for batch, places in _placed(batches))
    return tuple(taken(batch, kept) for batch, kept in parts if kept)


def _placed(batches: Sequence[Evaluations]) -> Iterator[tuple[Evaluations, "enumerate[int]"]]:
    """Each batch with the index of each of its points in it, and in all."""
    start = 0
    for batch in batches:
        yield batch, enumerate(range(start, start + len(batch.id)))
        start += len(batch.id)


def _important(batches: Sequence[Evaluations], keep: Collection[str]) -> list[int]:
    """Places that always stay, the named ones first, then by value."""
    named = [place for batch, places in _placed(batches) for index, place in places if batch.id[index] in keep]
    valued = heapq.nsmallest(
        TOP,
        (
            (-value, place)
            for batch, places in _placed(batches)
            for value, (_, place) in zip(_scores(batch), places, strict=True)
            if value is not None
        ),
    )
    return list(dict.fromkeys([*named, *(place for _, place in valued)]))


def _scores(batch: Evaluations) -> Iterator[float | None]:
    """Of each point of a batch its value, higher is better; None where it is not feasible or has none."""
    name = next(iter(batch.objectives), None)
    if name is None:
        yield from itertools.repeat(None, len(batch.id))
        return
    sign = -1.0 if name in LOWER_IS_BETTER else 1.0
    for status, value in zip(batch.status, batch.objectives[name], strict=True):
        yield sign * value if status == "feasible" and value is not None else None
