"""Evaluated deployments as columns, and their metrics.

Source of the formulas: engine.md section 6 ("Row") and section 8. Latencies are milliseconds, rates requests per second.
"""

from dataclasses import dataclass

import numpy as np
from dgdr_api.terms import LOWER_IS_BETTER, Metric

from dgdr_job.matching.arrays import TIE, Floats, Ints


@dataclass(frozen=True)
class Points:
    """One entry per deployment of one branch. ``prefill_row`` is -1 for an aggregated deployment."""

    prefill_row: Ints
    """Row of the branch's prefill table."""
    decode_row: Ints
    """Row of the branch's decode (or aggregated) table."""
    prefill_workers: Ints
    decode_workers: Ints
    """Decode (or aggregated) workers."""
    gpus: Ints
    rate: Floats
    """Requests per second that are served."""
    ttft_ms: Floats
    tpot_ms: Floats

    def __len__(self) -> int:
        return len(self.gpus)

    def take(self, rows: Ints) -> "Points":
        """The points at these positions."""
        return Points(**{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})


def metrics(points: Points, osl: int) -> dict[str, Floats]:
    """Every metric of the points, by the names of the replay report.

    throughputPerUser is infinite where no token follows the first (osl 1); it is left out there.
    """
    tokens = points.rate * osl
    result = {
        "ttftMs": points.ttft_ms,
        "tpotMs": points.tpot_ms,
        "e2eMs": points.ttft_ms + points.tpot_ms * max(osl - 1, 0),
        "requestThroughputPerS": points.rate,
        "outputThroughputTokensPerS": tokens,
        "outputThroughputTokensPerSPerGpu": tokens / points.gpus,
    }
    if osl > 1:
        result["throughputPerUserTokensPerS"] = 1000.0 / points.tpot_ms
    return result


def objective(points: Points, columns: dict[str, Floats], metric: Metric, gpu_cost_per_hour: float) -> Floats:
    """The metric in its natural direction.

    Args:
        points: what is measured.
        columns: `metrics` of the same points.
        metric: name of the objective.
        gpu_cost_per_hour: price of one GPU, used by throughputPerCost alone.

    Raises:
        KeyError: the metric needs a replay (goodput).
    """
    match metric:
        case "throughput":
            return columns["outputThroughputTokensPerS"]
        case "throughputPerGpu":
            return columns["outputThroughputTokensPerSPerGpu"]
        case "throughputPerUser":
            return columns["throughputPerUserTokensPerS"]
        case "throughputPerCost":
            return columns["outputThroughputTokensPerS"] * 3600.0 / (points.gpus * gpu_cost_per_hour)
        case "ttft":
            return columns["ttftMs"]
        case "e2eLatency":
            return columns["e2eMs"]
        case "minGpus":
            return points.gpus.astype(np.float64)
        case _:
            raise KeyError(metric)


def score(values: Floats, metric: Metric) -> Floats:
    """Higher is better: the value, negated for latencies and GPU counts."""
    return -values if metric in LOWER_IS_BETTER else values


def rank_order(scores: Floats, gpus: Ints, rate: Floats) -> tuple[Ints, Ints]:
    """Positions best first, and for each of them the number of its tie.

    Higher score first (equal within 1e-12 relative), then fewer GPUs, then the higher rate. Points that are equal in
    all three share a tie number; the caller orders them by canonical JSON.
    """
    by_score = np.argsort(-scores, kind="stable")
    in_order = scores[by_score]
    group = np.empty(len(scores), dtype=np.int64)
    group[by_score] = _steps(in_order)
    order = np.lexsort((-rate, gpus, group))
    same = (group[order][1:] == group[order][:-1]) & (gpus[order][1:] == gpus[order][:-1])
    same &= _steps(rate[order])[1:] == _steps(rate[order])[:-1]
    return order, np.concatenate([[0], np.cumsum(~same)]).astype(np.int64)[: len(order)]


def _steps(values: Floats) -> Ints:
    """Running number that grows where neighbours differ by more than the tie."""
    gap = np.abs(np.diff(values)) > TIE * np.maximum(np.abs(values[1:]), np.abs(values[:-1]))
    return np.concatenate([[0], np.cumsum(gap)]).astype(np.int64)[: len(values)]
