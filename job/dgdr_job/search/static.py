"""The static estimate of one branch: every shape, the best rows and worker counts of each, by exact matching.

Source: engine.md section 6.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from dgdr_job.matching.arrays import Floats, Goal, Ints
from dgdr_job.matching.match import Pairs, all_deployments, best_deployments
from dgdr_job.matching.matched import Matched
from dgdr_job.matching.replicas import Rows, all_replicas, best_replicas
from dgdr_job.search import pareto
from dgdr_job.search.points import Points, metrics, objective, score
from dgdr_job.search.question import Question
from dgdr_job.search.refusals import Refusal, agg_refusals, disagg_refusals, invalid_refusals
from dgdr_job.search.role_table import RoleTable, valid_rows


@dataclass(frozen=True)
class Evaluated:
    """What a branch holds: feasible deployments, and shapes without any."""

    points: Points
    refusals: tuple[Refusal, ...]


def evaluate_disagg(prefill: RoleTable, decode: RoleTable, question: Question) -> Evaluated:
    """Deployments of prefill and decode workers.

    Args:
        prefill: rows whose ttft_ms includes queueing.
        decode: rows of decode workers.
        question: load, bounds, limits and objective.
    """
    osl, limits = question.workload.osl, question.limits
    valid_p, valid_d = valid_rows(prefill, osl), valid_rows(decode, osl)
    p, d = (grid.ravel() for grid in np.meshgrid(np.flatnonzero(valid_p), np.flatnonzero(valid_d), indexing="ij"))
    kept = np.flatnonzero(question.meets(prefill.ttft_ms[p], decode.tpot_ms[d]))
    p, d = p[kept], d[kept]
    ttft, tpot = prefill.ttft_ms[p], decode.tpot_ms[d]
    load = question.load(ttft, tpot, decode.slots[d])
    rate_p, rate_d = prefill.rate[p], decode.rate[d]
    pairs = Pairs(
        prefill_rate=rate_p,
        prefill_gpus=prefill.gpus[p],
        # Decoding without an end to its rate never binds: one worker serves what all prefill workers can.
        decode_rate=np.where(np.isfinite(rate_d), rate_d, rate_p * limits.gpu_budget),
        decode_gpus=decode.gpus[d],
        least_decode_workers=load.least_workers,
        offered_rate=load.offered_rate,
        needed_rate=load.needed_rate,
    )
    points = _search(
        question,
        lambda goal: best_deployments(pairs, limits, goal),
        lambda: all_deployments(pairs, limits),
        lambda found: _points(question, found, (p, d), ttft, tpot),
    )
    refusals = disagg_refusals(
        prefill, decode, question, valid=(valid_p, valid_d), pairs=pairs, rows=(p, d), points=points
    )
    return Evaluated(points, (*refusals, *invalid_refusals(prefill, valid_p), *invalid_refusals(decode, valid_d)))


def evaluate_agg(table: RoleTable, question: Question) -> Evaluated:
    """Deployments of workers that do both.

    Args:
        table: rows of aggregated workers.
        question: load, bounds, limits and objective.
    """
    valid = valid_rows(table, question.workload.osl)
    kept = np.flatnonzero(valid)
    kept = kept[question.meets(table.ttft_ms[kept], table.tpot_ms[kept])]
    ttft, tpot = table.ttft_ms[kept], table.tpot_ms[kept]
    load = question.load(ttft, tpot, table.slots[kept])
    rows = Rows(table.rate[kept], table.gpus[kept], load.least_workers, load.offered_rate, load.needed_rate)
    points = _search(
        question,
        lambda goal: best_replicas(rows, question.limits, goal),
        lambda: all_replicas(rows, question.limits),
        lambda found: _points(question, found, (np.full(len(kept), -1), kept), ttft, tpot),
    )
    refusals = agg_refusals(table, question, valid=valid, kept=kept, points=points)
    return Evaluated(points, (*refusals, *invalid_refusals(table, valid)))


def best_row_of_each_deployment(points: Points, shape_ids: list[Ints], order: Ints) -> Ints:
    """Of the points with equal shapes and worker counts only the first in ``order``; positions in that order.

    Args:
        points: deployments of one branch.
        shape_ids: index of the shape of each role, per point.
        order: positions of the points, best first.
    """
    key = np.stack([*shape_ids, points.prefill_workers, points.decode_workers], axis=1)[order]
    _, first = np.unique(key, axis=0, return_index=True)
    return order[np.sort(first)]


def _search(
    question: Question,
    best: Callable[[Goal], Matched],
    every: Callable[[], Iterator[Matched]],
    points_of: Callable[[Matched], Points],
) -> Points:
    """The best counts of each pair of rows; where there is no one best, the most per GPU and the whole front."""
    goal = question.goal
    if goal is not None:
        return points_of(best(goal))
    points = points_of(best("rate_per_gpu"))
    front = points
    for found in every():
        front = _front(front.followed_by(points_of(found)), question)
    points = points.followed_by(front)
    key = np.stack([points.prefill_row, points.decode_row, points.prefill_workers, points.decode_workers], axis=1)
    _, first = np.unique(key, axis=0, return_index=True)
    return points.take(np.sort(first))


def _front(points: Points, question: Question) -> Points:
    """The points that no other beats in every metric; of equal ones that with the fewest GPUs. Bounds memory."""
    columns = metrics(points, question.workload.osl)
    price = 1.0  # the same for every point
    scores = [score(objective(points, columns, metric, price), metric) for metric in question.metrics]
    fewest_first = np.argsort(points.gpus, kind="stable")
    return points.take(fewest_first[pareto.front(np.stack(scores, axis=1)[fewest_first])])


def _points(question: Question, found: Matched, rows: tuple[Ints, Ints], ttft_ms: Floats, tpot_ms: Floats) -> Points:
    """What was matched, with the rows of each role and the wait in the time to first token."""
    ttft, tpot = ttft_ms[found.pair], tpot_ms[found.pair]
    return Points(
        prefill_row=rows[0][found.pair],
        decode_row=rows[1][found.pair],
        prefill_workers=found.prefill_workers,
        decode_workers=found.decode_workers,
        gpus=found.gpus,
        rate=found.rate,
        ttft_ms=ttft + question.wait_ms(found.rate, ttft, tpot),
        tpot_ms=tpot,
    )
