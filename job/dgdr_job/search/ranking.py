"""The ordered reserve over all branches: best first, or the front in the order of its publication."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from dgdr_api.canonical import canonical_json
from dgdr_api.candidate import EvaluatedCandidate

from dgdr_job.matching.arrays import Floats
from dgdr_job.search import pareto
from dgdr_job.search.candidates import BranchResult
from dgdr_job.search.config import Goal
from dgdr_job.search.points import rank_order, score

Build = Callable[[BranchResult, int, float], EvaluatedCandidate]
"""Builds the candidate of a point of a branch with a score."""


@dataclass(frozen=True)
class Reserve:
    """Candidates in order, more than will be published."""

    candidates: tuple[EvaluatedCandidate, ...]
    pareto_front: int
    """Size of the front; 0 for one metric."""


@dataclass(frozen=True)
class _Merged:
    """The points of all branches: which branch and which point each is."""

    branch: "np.ndarray[tuple[int], np.dtype[np.int64]]"
    point: "np.ndarray[tuple[int], np.dtype[np.int64]]"
    scores: Floats
    """[points, objectives]."""


def reserve(results: list[BranchResult], goal: Goal, size: int, build: Build) -> Reserve:
    """Order what was found.

    Args:
        results: branches without repeated deployments.
        goal: one metric, or the front over several.
        size: candidates wanted.
        build: makes a candidate; also decides ties, by canonical JSON.
    """
    merged = _merge(results, goal)
    if len(merged.point) == 0:
        return Reserve((), 0)
    return _front(results, merged, size, build) if goal.pareto else _best(results, merged, size, build)


def _merge(results: list[BranchResult], goal: Goal) -> _Merged:
    branch = [np.full(len(result.points), index) for index, result in enumerate(results)]
    point = [np.arange(len(result.points)) for result in results]
    scores = [
        np.stack([score(result.objectives[metric], metric) for metric in goal.metrics], axis=1) for result in results
    ]
    return _Merged(np.concatenate(branch), np.concatenate(point), np.concatenate(scores))


def _best(results: list[BranchResult], merged: _Merged, size: int, build: Build) -> Reserve:
    values = merged.scores[:, 0]
    gpus = np.concatenate([result.points.gpus for result in results])
    rate = np.concatenate([result.points.rate for result in results])
    order, tie = rank_order(values, gpus, rate)

    def candidates() -> Iterator[EvaluatedCandidate]:
        for _, tied in groupby(zip(order.tolist(), tie.tolist(), strict=True), key=lambda entry: entry[1]):
            made = [
                build(results[merged.branch[i]], int(merged.point[i]), float(values[i])) for i, _ in tied
            ]
            yield from sorted(made, key=_canonical) if len(made) > 1 else made

    return Reserve(tuple(candidate for candidate, _ in zip(candidates(), range(size), strict=False)), 0)


def _front(results: list[BranchResult], merged: _Merged, size: int, build: Build) -> Reserve:
    gpus = np.concatenate([result.points.gpus for result in results])
    fewest_first = np.argsort(gpus, kind="stable")
    positions = fewest_first[pareto.front(merged.scores[fewest_first])]
    unit = pareto.scaled(merged.scores[positions])
    knee = pareto.knee_product(unit)
    made = [
        build(results[merged.branch[i]], int(merged.point[i]), float(product))
        for i, product in zip(positions.tolist(), knee.tolist(), strict=True)
    ]
    keys = [_canonical(candidate) for candidate in made]
    order = pareto.publication_order(unit, keys.__getitem__, size)
    return Reserve(tuple(made[i] for i in order), len(positions))


def _canonical(candidate: EvaluatedCandidate) -> str:
    return canonical_json(candidate.candidate.model_dump(mode="json"))
