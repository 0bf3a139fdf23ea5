"""Which deployments are worth their GPUs: by one metric, those that no smaller deployment of the same shapes equals.

A worker that adds nothing is no candidate, and by throughput per GPU twice the same unit is none either. What is kept
of each pair of shapes is a staircase: one deployment for a number of GPUs, more GPUs only for a better score. Each step
has the best engine limits that its worker counts can have: were there better ones in which a worker is idle, the
same limits without that worker would stand on the staircase before it.
"""

import numpy as np

from dgdr_job.matching.arrays import TIE, Floats, Ints
from dgdr_job.search.points import Points, mean_e2e_ms, metrics, objective, rank_keys, rank_order, score
from dgdr_job.search.question import Question


def frugal(points: Points, shapes: list[Ints], question: Question) -> Ints:
    """Positions of the points that are worth their GPUs, best first.

    Equally good deployments of as many GPUs: the lower latency, then fewer decode, prefill and encode workers, in this
    order, then the row that comes first, which has the smaller batch.

    Args:
        points: deployments of one branch, several rows of each.
        shapes: per role the index of each point's shape.
        question: the metric is its first.
    """
    metric, osl = question.metrics[0], question.workload.osl
    values = objective(points, metrics(points, osl), metric)
    worth = np.flatnonzero(_on_the_staircase(_numbered(shapes), points.gpus, score(values, metric)))
    kept = points.take(worth)
    keys = rank_keys(kept, values[worth], metric, question.sla, osl)
    latency = mean_e2e_ms(kept.ttft_ms, kept.tpot_ms, osl)
    order, _ = rank_order(*keys, latency, kept.decode_workers, kept.prefill_workers, kept.encode_workers)
    step = _numbered([*(each[worth] for each in shapes), kept.gpus])
    _, first = np.unique(step[order], return_index=True)
    return worth[order[np.sort(first)]]


def _numbered(columns: list[Ints]) -> Ints:
    """A number for each different row of the columns, by place value.

    Shapes of three roles and the GPUs of a budget are at most 1e14 rows: the number never overflows.
    """
    number = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        if column.size:
            least = column.min()
            number = number * (column.max() - least + 1) + (column - least)
    return number


def _on_the_staircase(group: Ints, gpus: Ints, scores: Floats) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Whether each point scores more (beyond the tie) than every point of its group with fewer GPUs."""
    order = np.lexsort((-scores, gpus, group))
    level = np.flatnonzero(np.diff(group[order], prepend=-1) | np.diff(gpus[order], prepend=-1))
    best, of_group = scores[order][level], group[order][level]
    bar = np.full(len(level), -np.inf)
    for start, stop in zip(*_spans(of_group), strict=True):
        bar[start + 1 : stop] = np.maximum.accumulate(best[start : stop - 1])
    bars = np.repeat(bar, np.diff(np.append(level, len(order))))
    kept = np.empty(len(order), dtype=np.bool_)
    kept[order] = np.isneginf(bars) | (scores[order] > bars + TIE * np.abs(np.where(np.isfinite(bars), bars, 0.0)))
    return kept


def _spans(sorted_values: Ints) -> tuple[list[int], list[int]]:
    """Start and stop of each run of equal values."""
    start = np.flatnonzero(np.diff(sorted_values, prepend=-1))
    return start.tolist(), np.append(start, len(sorted_values))[1:].tolist()
