"""What a static search asks of every branch alike: load, bounds, limits and objective.

Source: engine.md section 6. Bounds are inclusive. A concurrency needs as many slots and brings at most
C / (ttft + tpot * (osl - 1)) requests per second; a request rate must be reached and brings no more than itself.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from dgdr_api.terms import Metric

from dgdr_job.matching.arrays import Floats, Goal, Ints
from dgdr_job.search.config import Sla, Workload
from dgdr_job.search.points import keeps_bounds, mean_e2e_ms
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
"""What worker counts are chosen for. The last four depend on the rows alone, or on the GPUs alone."""
DEPENDS_ON_COUNTS: frozenset[Metric] = frozenset({"throughput", "throughputPerGpu", "throughputPerCost", "minGpus"})


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
        """What worker counts are chosen for; None: no one count of a pair is best in every metric."""
        if not self.pareto:
            return GOAL_OF_METRIC[self.metrics[0]]
        goals = {GOAL_OF_METRIC[metric] for metric in self.metrics if metric in DEPENDS_ON_COUNTS}
        return None if len(goals) > 1 else next(iter(goals), "fewest_gpus")

    def meets(self, ttft_ms: Floats, tpot_ms: Floats) -> npt.NDArray[np.bool_]:
        """Whether each row passes the gate; bounds that are not strict gate nothing."""
        if not self.sla.strict:
            return np.ones(len(ttft_ms), dtype=np.bool_)
        return keeps_bounds(self.sla, ttft_ms, tpot_ms, self.workload.osl)

    def load(self, ttft_ms: Floats, tpot_ms: Floats, slots: Ints) -> tuple[Ints, Floats, Floats]:
        """Least workers that hold the load, the rate that it brings, and the rate that must be reached."""
        workload = self.workload
        none = np.zeros(len(ttft_ms))
        if workload.concurrency is not None:
            e2e_ms = mean_e2e_ms(ttft_ms, tpot_ms, workload.osl)
            return -(-workload.concurrency // slots), 1000.0 * workload.concurrency / e2e_ms, none
        one = np.ones(len(ttft_ms), dtype=np.int64)
        if workload.request_rate is not None:
            rate = np.full(len(ttft_ms), workload.request_rate)
            return one, rate, rate
        return one, np.full(len(ttft_ms), np.inf), none
