"""Fewer points where all of them do not fit: the front, the top and a seeded sample stay, in their order."""

import random
from collections.abc import Collection, Sequence

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
    if sum(len(batch.id) for batch in batches) <= rows:
        return tuple(batches)
    chosen = _important(batches, keep)[:rows]
    rest = sorted({*_places(batches)}.difference(chosen))
    generator = random.Random(seed)  # noqa: S311 - a repeatable sample, no secret
    chosen += generator.sample(rest, min(max(rows - len(chosen), 0), len(rest)))
    wanted: list[list[int]] = [[] for _ in batches]
    for batch, index in sorted(chosen):
        wanted[batch].append(index)
    return tuple(taken(batch, kept) for batch, kept in zip(batches, wanted, strict=True) if kept)


def _places(batches: Sequence[Evaluations]) -> list[tuple[int, int]]:
    return [(number, index) for number, batch in enumerate(batches) for index in range(len(batch.id))]


def _important(batches: Sequence[Evaluations], keep: Collection[str]) -> list[tuple[int, int]]:
    """Places that always stay, the named ones first, then by value."""
    named = [place for place in _places(batches) if batches[place[0]].id[place[1]] in keep]
    valued = sorted(
        (-value, (number, index)) for number, batch in enumerate(batches) for index, value in _scores(batch)
    )
    return list(dict.fromkeys([*named, *(place for _, place in valued[:TOP])]))


def _scores(batch: Evaluations) -> list[tuple[int, float]]:
    """Index and value, higher is better, of the feasible points of a batch."""
    name = next(iter(batch.objectives), None)
    if name is None:
        return []
    sign = -1.0 if name in LOWER_IS_BETTER else 1.0
    return [
        (index, sign * value)
        for index, (status, value) in enumerate(zip(batch.status, batch.objectives[name], strict=True))
        if status == "feasible" and value is not None
    ]
