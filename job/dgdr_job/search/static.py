"""The static estimate of one branch: every shape, the best rows and worker counts of each, by exact matching.

Source: engine.md section 6. Bounds are inclusive. A concurrency needs as many slots and brings at most
C / (ttft + tpot * (osl - 1)) requests per second; a request rate must be reached and brings no more than itself.
"""

from dataclasses import dataclass

import numpy as np
from dgdr_api.shape import Shape
from dgdr_api.terms import Metric

from dgdr_job.matching.arrays import TIE, Floats, Goal, Ints
from dgdr_job.matching.match import Matched, Pairs, all_deployments, best_deployments, best_of_each, replicas
from dgdr_job.search.config import Sla, Workload
from dgdr_job.search.points import Points
from dgdr_job.search.role_table import RoleTable
from dgdr_job.space.limits import Limits

GOAL_OF_METRIC: dict[Metric, Goal] = {
    "throughput": "rate",
    "throughputPerGpu": "rate_per_gpu",
    "throughputPerCost": "rate_per_gpu",
    "throughputPerUser": "fewest_gpus",
    "ttft": "fewest_gpus",
    "e2eLatency": "fewest_gpus",
    "minGpus": "fewest_gpus",
}


@dataclass(frozen=True)
class Refusal:
    """Deployments of one shape, or pair of shapes, of which none is feasible."""

    shapes: tuple[Shape, ...]
    """Shape of each role, in the order of the topology."""
    reason: str
    """``sla_constraint``, ``load_constraint`` or ``gpu_budget``."""
    detail: str
    """The numbers."""


@dataclass(frozen=True)
class Evaluated:
    """What a branch holds: feasible deployments, and shapes without any."""

    points: Points
    refusals: tuple[Refusal, ...]


@dataclass(frozen=True)
class Question:
    """What is asked of every branch alike."""

    workload: Workload
    sla: Sla
    limits: Limits
    metrics: tuple[Metric, ...]
    pareto: bool

    @property
    def goal(self) -> Goal | None:
        """What worker counts are chosen for; None: every count on the frontier of rate and GPUs is wanted."""
        if not self.pareto:
            return GOAL_OF_METRIC[self.metrics[0]]
        return None if {"throughput", "minGpus"} & set(self.metrics) else "rate_per_gpu"

    def e2e_ms(self, ttft_ms: Floats, tpot_ms: Floats) -> Floats:
        """Mean request latency in milliseconds."""
        return ttft_ms + tpot_ms * max(self.workload.osl - 1, 0)


def evaluate_disagg(prefill: RoleTable, decode: RoleTable, question: Question) -> Evaluated:
    """Deployments of prefill and decode workers.

    Args:
        prefill: rows whose ttft_ms includes queueing.
        decode: rows of decode workers.
        question: load, bounds, limits and objective.
    """
    sla = question.sla
    p, d = (grid.ravel() for grid in np.meshgrid(np.arange(len(prefill)), np.arange(len(decode)), indexing="ij"))
    ttft, tpot = prefill.ttft_ms[p], decode.tpot_ms[d]
    meets = _meets(sla, question, ttft, tpot)
    kept = np.flatnonzero(meets)
    p, d, ttft, tpot = p[kept], d[kept], ttft[kept], tpot[kept]
    slots = decode.slots[d]
    least, offered, needed = _load(question, ttft, tpot, slots)
    pairs = Pairs(
        prefill_rate=prefill.rate[p],
        prefill_gpus=prefill.gpus[p],
        decode_rate=np.minimum(decode.rate[d], np.finfo(np.float64).max / 65_536),
        decode_gpus=decode.gpus[d],
        least_decode_workers=least,
        offered_rate=offered,
        needed_rate=needed,
    )
    goal = question.goal
    found = all_deployments(pairs, question.limits) if goal is None else best_deployments(
        pairs, question.limits, goal
    )
    points = _points(found, p, d, ttft, tpot)
    served = set(zip(prefill.shape[points.prefill_row].tolist(), decode.shape[points.decode_row].tolist(), strict=True))
    meeting = set(zip(prefill.shape[p].tolist(), decode.shape[d].tolist(), strict=True))
    refusals = tuple(
        Refusal(
            (a.shape, b.shape),
            *_why_not(
                question,
                (i, j) in meeting,
                prefill.ttft_ms[prefill.shape == i],
                decode.tpot_ms[decode.shape == j],
                a.shape.gpus + b.shape.gpus,
            ),
        )
        for i, a in enumerate(prefill.shapes)
        for j, b in enumerate(decode.shapes)
        if (i, j) not in served
    )
    return Evaluated(points, refusals)


def evaluate_agg(table: RoleTable, question: Question) -> Evaluated:
    """Deployments of workers that do both.

    Args:
        table: rows of aggregated workers.
        question: load, bounds, limits and objective.
    """
    rows = np.flatnonzero(_meets(question.sla, question, table.ttft_ms, table.tpot_ms))
    ttft, tpot = table.ttft_ms[rows], table.tpot_ms[rows]
    limits = question.limits
    least, offered, needed = _load(question, ttft, tpot, table.slots[rows])
    found = replicas(table.rate[rows], table.gpus[rows], limits.gpu_budget // table.gpus[rows])
    fits = (
        (found.decode_workers >= least[found.pair])
        & (found.gpus >= limits.min_gpu_budget)
        & (found.rate >= needed[found.pair] * (1 - TIE))
    )
    found = found.take(np.flatnonzero(fits))
    found = Matched(
        found.pair,
        found.prefill_workers,
        found.decode_workers,
        found.gpus,
        np.minimum(found.rate, offered[found.pair]),
    )
    if question.goal is not None:
        found = best_of_each(found, question.goal)
    points = _points(found, np.full(len(rows), -1), rows, ttft, tpot)
    served = set(table.shape[points.decode_row].tolist())
    meeting = set(table.shape[rows].tolist())
    refusals = tuple(
        Refusal(
            (data.shape,),
            *_why_not(
                question,
                i in meeting,
                table.ttft_ms[table.shape == i],
                table.tpot_ms[table.shape == i],
                data.shape.gpus,
            ),
        )
        for i, data in enumerate(table.shapes)
        if i not in served
    )
    return Evaluated(points, refusals)


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


def _points(found: Matched, p: Ints, d: Ints, ttft: Floats, tpot: Floats) -> Points:
    return Points(
        prefill_row=p[found.pair],
        decode_row=d[found.pair],
        prefill_workers=found.prefill_workers,
        decode_workers=found.decode_workers,
        gpus=found.gpus,
        rate=found.rate,
        ttft_ms=ttft[found.pair],
        tpot_ms=tpot[found.pair],
    )


def _meets(sla: Sla, question: Question, ttft: Floats, tpot: Floats) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Whether each row keeps every bound, inclusively; bounds that are not strict gate nothing."""
    meets = np.ones(len(ttft), dtype=np.bool_)
    if sla.strict:
        if sla.ttft_ms is not None:
            meets &= ttft <= sla.ttft_ms
        if sla.itl_ms is not None:
            meets &= tpot <= sla.itl_ms
        if sla.e2e_ms is not None:
            meets &= question.e2e_ms(ttft, tpot) <= sla.e2e_ms
    return meets


def _load(question: Question, ttft: Floats, tpot: Floats, slots: Ints) -> tuple[Ints, Floats, Floats]:
    """Least workers that hold the load, the rate it brings, and the rate that must be reached."""
    workload = question.workload
    none = np.zeros(len(ttft))
    if workload.concurrency is not None:
        offered = 1000.0 * workload.concurrency / question.e2e_ms(ttft, tpot)
        return -(-workload.concurrency // slots), offered, none
    one = np.ones(len(ttft), dtype=np.int64)
    if workload.request_rate is not None:
        rate = np.full(len(ttft), workload.request_rate)
        return one, rate, rate
    return one, np.full(len(ttft), np.inf), none


def _why_not(question: Question, meets: bool, ttft: Floats, tpot: Floats, gpus: int) -> tuple[str, str]:  # noqa: FBT001
    """Reason category and numbers of a shape without a feasible deployment."""
    sla, limits, workload = question.sla, question.limits, question.workload
    if not meets:
        least_ttft, least_tpot = float(ttft.min(initial=np.inf)), float(tpot.min(initial=np.inf))
        broken = [
            f"{name} {least:.1f} ms > {bound:g} ms"
            for name, least, bound in (
                ("least TTFT", least_ttft, sla.ttft_ms),
                ("least TPOT", least_tpot, sla.itl_ms),
                ("least e2e", least_ttft + least_tpot * max(workload.osl - 1, 0), sla.e2e_ms),
            )
            if bound is not None and least > bound
        ]
        return "sla_constraint", ", ".join(broken) or "no row meets both bounds at once"
    if gpus > limits.gpu_budget:
        return "gpu_budget", f"one worker of each role takes {gpus} GPUs, the budget is {limits.gpu_budget}"
    if workload.concurrency is not None:
        return "load_constraint", f"no worker count within {limits.gpu_budget} GPUs holds {workload.concurrency} requests"
    if workload.request_rate is not None:
        return "load_constraint", (
            f"no worker count within {limits.gpu_budget} GPUs serves {workload.request_rate:g} requests/s"
        )
    return "gpu_budget", (
        f"no worker count takes {limits.min_gpu_budget} to {limits.gpu_budget} GPUs within the caps of the roles"
    )
