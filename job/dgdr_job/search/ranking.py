"""The ordered reserve over all branches: best first, or the front in the order of its publication."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby

import numpy as np
import numpy.typing as npt
from dgdr_api.candidate import EvaluatedCandidate
from dgdr_api.canonical import canonical_json
from dgdr_api.expressible import unrendered_backend, unrendered_encoder

from dgdr_job.matching.arrays import Floats, Ints
from dgdr_job.search import pareto
from dgdr_job.search.candidates import BranchResult
from dgdr_job.search.config import Goal
from dgdr_job.search.points import rank_keys, rank_order, score

Build = Callable[[BranchResult, int, float], EvaluatedCandidate]
"""Builds the candidate of a point of a branch with a score."""
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Reserve:
    """Candidates in order, more than will be published."""

    candidates: tuple[EvaluatedCandidate, ...]
    pareto_front: int
    """Size of the front; 0 for one metric."""
    rendered: frozenset[str] = frozenset()
    """Ids of those that a template of some version renders."""

    @property
    def best(self) -> EvaluatedCandidate:
        """The highest score, if possible of one that a template renders: the first by one metric, or the knee.

        There must be candidates.
        """
        rendered = [each for each in self.candidates if each.id in self.rendered]
        return max(rendered or self.candidates, key=lambda candidate: candidate.evaluation.score)


@dataclass(frozen=True)
class _Merged:
    """The points of all branches: which branch and which point each is."""

    branch: Ints
    point: Ints
    scores: Floats
    """[points, objectives]."""


def reserve(results: list[BranchResult], goal: Goal, osl: int, size: int, build: Build) -> Reserve:
    """Order what was found.

    Points that no template renders, of whatever version, stand where they rank, but never take the place of one that
    can be rendered: as many of those follow. A front has scores of its own with and without them, so there they come
    first.

    Args:
        results: branches without repeated deployments.
        goal: one metric, or the front over several.
        osl: output tokens of a request.
        size: candidates wanted.
        build: makes a candidate; also decides ties, by canonical JSON.
    """
    results = [result for result in results if len(result.points)]
    masks = [_rendered(result) for result in results]
    parts = [_part(result, mask) for result, mask in zip(results, masks, strict=True) if mask.any()]
    mask_of = {id(result): mask for result, mask in zip(results, masks, strict=True)}
    rendered: set[str] = set()

    def noted(result: BranchResult, point: int, value: float) -> EvaluatedCandidate:
        made = build(result, point, value)
        if id(result) not in mask_of or mask_of[id(result)][point]:
            rendered.add(made.id)
        return made

    found = _ordered(results, goal, osl, size, noted)
    if not parts or all(mask.all() for mask in masks):
        return replace(found, rendered=frozenset(rendered))
    own = _ordered(parts, goal, osl, size, noted).candidates
    if goal.pareto:
        others = tuple(each for each in found.candidates if each.id not in rendered)
        return Reserve((*others, *own), found.pareto_front, frozenset(rendered))
    known = {each.id for each in found.candidates}
    return Reserve((*found.candidates, *(each for each in own if each.id not in known)), 0, frozenset(rendered))


def _rendered(result: BranchResult) -> Mask:
    """Whether a template of some version renders each point of a branch."""
    branch = result.branch
    images = any(role.images is not None for role in branch.roles)
    problem = unrendered_backend(branch.backend) or unrendered_encoder(branch.encoder, images=images)
    mask = np.full(len(result.points), problem is None)
    for index, (role, table) in enumerate(zip(result.branch.roles, result.tables, strict=True)):
        shapes = np.array([role.unrendered(known.shape) is None for known in table.shapes], dtype=np.bool_)
        if not shapes.all():
            mask &= shapes[result.shape_ids[index]]
    return mask


def _part(result: BranchResult, mask: Mask) -> BranchResult:
    return result if mask.all() else result.take(np.flatnonzero(mask))


def _ordered(results: list[BranchResult], goal: Goal, osl: int, size: int, build: Build) -> Reserve:
    if not results:
        return Reserve((), 0)
    merged = _merge(results, goal)
    if goal.pareto:
        return _front(results, merged, size, build)
    metric = goal.metrics[0]
    keys = [rank_keys(result.points, result.objectives[metric], metric, goal.sla, osl) for result in results]
    return _best(results, merged, [np.concatenate(columns) for columns in zip(*keys, strict=True)], size, build)


def _merge(results: list[BranchResult], goal: Goal) -> _Merged:
    branch = [np.full(len(result.points), index) for index, result in enumerate(results)]
    point = [np.arange(len(result.points)) for result in results]
    scores = [
        np.stack([score(result.objectives[metric], metric) for metric in goal.metrics], axis=1) for result in results
    ]
    return _Merged(np.concatenate(branch), np.concatenate(point), np.concatenate(scores))


def _best(results: list[BranchResult], merged: _Merged, keys: list[Floats], size: int, build: Build) -> Reserve:
    values = merged.scores[:, 0]
    order, tie = rank_order(*keys)

    def candidates() -> Iterator[EvaluatedCandidate]:
        for _, tied in groupby(zip(order.tolist(), tie.tolist(), strict=True), key=lambda entry: entry[1]):
            made = [build(results[merged.branch[i]], int(merged.point[i]), float(values[i])) for i, _ in tied]
            yield from sorted(made, key=_canonical) if len(made) > 1 else made

    return Reserve(tuple(candidate for candidate, _ in zip(candidates(), range(size), strict=False)), 0)


def _front(results: list[BranchResult], merged: _Merged, size: int, build: Build) -> Reserve:
    gpus = np.concatenate([result.points.gpus for result in results])
    fewest_first = np.argsort(gpus, kind="stable")
    positions = fewest_first[pareto.front(merged.scores[fewest_first])]
    unit = pareto.scaled(merged.scores[positions])
    knee = pareto.knee_product(unit)

    @cache
    def made(index: int) -> EvaluatedCandidate:
        at = positions[index]
        return build(results[merged.branch[at]], int(merged.point[at]), float(knee[index]))

    order = pareto.publication_order(unit, lambda index: _canonical(made(index)), size)
    return Reserve(tuple(made(index) for index in order), len(positions))


def _canonical(candidate: EvaluatedCandidate) -> str:
    return canonical_json(candidate.candidate.model_dump(mode="json"))
