"""Evaluated deployments as columns, and their metrics.

Source of the formulas: engine.md section 6 ("Row") and section 8. Latencies are milliseconds, rates requests per
second.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from dgdr_api.terms import LOWER_IS_BETTER, Metric, RoleKind

from dgdr_job.matching.arrays import TIE, Floats, Ints
from dgdr_job.search.config import Sla

COLUMN_OF_METRIC: dict[Metric, str] = {
    "throughput": "outputThroughputTokensPerS",
    "throughputPerGpu": "outputThroughputTokensPerSPerGpu",
    "throughputPerUser": "throughputPerUserTokensPerS",
    "ttft": "ttftMs",
    "e2eLatency": "e2eMs",
}
"""Objectives that are a metric as it stands."""


@dataclass(frozen=True)
class Points:
    """One entry per deployment of one branch. A role that a deployment does not have has row -1 and no workers."""

    prefill_row: Ints
    """Row of the branch's prefill table."""
    decode_row: Ints
    """Row of the branch's decode (or aggregated) table."""
    prefill_workers: Ints
    decode_workers: Ints
    """Decode (or aggregated) workers."""
    encode_row: Ints
    """Row of the branch's encode table."""
    encode_workers: Ints
    gpus: Ints
    cost: Floats
    """Price of an hour of all GPUs."""
    rate: Floats
    """Requests per second that are served."""
    ttft_ms: Floats
    tpot_ms: Floats
    concurrency: Ints
    """Requests in flight; 0 where the load is none."""

    def __len__(self) -> int:
        return len(self.gpus)

    def row_of(self, kind: RoleKind) -> Ints:
        """Row of each point in the table of a role; aggregated workers stand in the place of decode."""
        rows = {"prefill": self.prefill_row, "encode": self.encode_row}
        return rows.get(kind, self.decode_row)

    def workers_of(self, kind: RoleKind) -> Ints:
        """Workers of a role."""
        workers = {"prefill": self.prefill_workers, "encode": self.encode_workers}
        return workers.get(kind, self.decode_workers)

    def take(self, rows: Ints) -> "Points":
        """The points at these positions."""
        return Points(**{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})

    def followed_by(self, others: "Points") -> "Points":
        """These points, then the others."""
        return Points(
            **{name: np.concatenate([getattr(self, name), getattr(others, name)]) for name in self.__dataclass_fields__}
        )


def metrics(points: Points, osl: int) -> dict[str, Floats]:
    """Every metric of the points, by the names of the replay report.

    throughputPerUser is infinite where no token follows the first (osl 1); it is left out there.
    """
    tokens = points.rate * osl
    result = {
        "ttftMs": points.ttft_ms,
        "tpotMs": points.tpot_ms,
        "e2eMs": mean_e2e_ms(points.ttft_ms, points.tpot_ms, osl),
        "requestThroughputPerS": points.rate,
        "outputThroughputTokensPerS": tokens,
        "outputThroughputTokensPerSPerGpu": tokens / points.gpus,
    }
    if osl > 1:
        result["throughputPerUserTokensPerS"] = 1000.0 / points.tpot_ms
    return result


def objective(points: Points, columns: dict[str, Floats], metric: Metric) -> Floats:
    """The metric in its natural direction.

    Args:
        points: what is measured.
        columns: `metrics` of the same points.
        metric: name of the objective.

    Raises:
        KeyError: the metric needs a replay (goodput).
    """
    if metric == "minGpus":
        return points.gpus.astype(np.float64)
    if metric == "throughputPerCost":
        return columns["outputThroughputTokensPerS"] * 3600.0 / points.cost
    return columns[COLUMN_OF_METRIC[metric]]


def score(values: Floats, metric: Metric) -> Floats:
    """Higher is better: the value, negated for latencies and GPU counts."""
    return -values if metric in LOWER_IS_BETTER else values


def keeps_bounds(sla: Sla, ttft_ms: Floats, tpot_ms: Floats, osl: int) -> npt.NDArray[np.bool_]:
    """Whether each mean keeps every bound, inclusively; a missing number keeps none."""
    e2e_ms = mean_e2e_ms(ttft_ms, tpot_ms, osl)
    return within(ttft_ms, sla.ttft_ms) & within(tpot_ms, sla.itl_ms) & within(e2e_ms, sla.e2e_ms)


def within(values_ms: Floats, bound_ms: float | None) -> npt.NDArray[np.bool_]:
    """Whether each value keeps an inclusive bound; None bounds nothing.

    A mean is equal to its bound within 1e-12 relative, as means are to each other (engine.md section 6): 1.8 times 1.1
    times 25 ms is 49.5 ms, and no rounding of the product may miss that bound.
    """
    if bound_ms is None:
        return np.ones(len(values_ms), dtype=np.bool_)
    return np.asarray(values_ms <= bound_ms * (1 + TIE))


def mean_e2e_ms(ttft_ms: Floats, tpot_ms: Floats, osl: int) -> Floats:
    """Mean request latency: ttft + tpot * max(osl - 1, 0)."""
    return ttft_ms + tpot_ms * max(osl - 1, 0)


def rank_keys(points: Points, values: Floats, metric: Metric, sla: Sla, osl: int) -> list[Floats]:
    """Columns that rank points by one metric, lower first: score, GPUs, throughput.

    For minGpus goodput stands for throughput (bounds that are not strict shape it: a point that misses one has
    none), and then the lower latency decides (engine.md section 8).

    Args:
        points: what is ranked.
        values: the metric of each, in its natural direction.
        metric: the metric.
        sla: the bounds.
        osl: output tokens of a request.
    """
    keys = [-score(values, metric), points.gpus.astype(np.float64)]
    if metric != "minGpus":
        return [*keys, -points.rate]
    goodput = np.where(keeps_bounds(sla, points.ttft_ms, points.tpot_ms, osl), points.rate, 0.0)
    return [*keys, -goodput, mean_e2e_ms(points.ttft_ms, points.tpot_ms, osl)]


def rank_order(*keys: Floats | Ints) -> tuple[Ints, Ints]:
    """Positions best first, and for each of them the number of its tie.

    Args:
        keys: columns that decide one after another, lower first; neighbours within 1e-12 relative are equal. Points
            that are equal in all share a tie number, and keep their order.
    """
    group = np.zeros(len(keys[0]), dtype=np.int64)
    for key in keys:
        order = np.lexsort((key, group))
        grows = (np.diff(group[order]) > 0) | differs(key[order])
        group[order] = np.concatenate([[0], np.cumsum(grows)])[: len(order)]
    order = np.argsort(group, kind="stable")
    return order, group[order]


def differs(values: Floats | Ints) -> npt.NDArray[np.bool_]:
    """Whether each value but the first differs from the one before it by more than the tie."""
    return np.abs(np.diff(values)) > TIE * np.maximum(np.abs(values[1:]), np.abs(values[:-1]))
