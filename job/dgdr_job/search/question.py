"""What a static search asks of every branch alike: load, bounds, limits and objective.

Source: engine.md section 6. Bounds are inclusive. A concurrency C needs as many slots and brings at most
C / (ttft + tpot * (osl - 1)) requests per second; a request rate must be reached and brings no more than itself.

Ours: a concurrency obeys Little's law. What serves X requests per second, fewer than C brings, keeps each of them for
C / X seconds; what that exceeds the latency of its rows by is time that requests wait, and belongs to the TTFT. Strict
bounds hold for the TTFT with the wait, so they bound X from below.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from dgdr_api.shape import Shape
from dgdr_api.terms import Metric

from dgdr_job.matching.arrays import ONE_PRICE, TIE, Floats, Goal, Ints, Prices
from dgdr_job.search.config import Sla, Workload
from dgdr_job.search.points import keeps_bounds, mean_e2e_ms
from dgdr_job.space.limits import Limits

GOAL_OF_METRIC: dict[Metric, Goal] = {
    "throughput": "rate",
    "throughputPerGpu": "rate_per_gpu",
    "throughputPerCost": "rate_per_cost",
    "throughputPerUser": "fewest_gpus",
    "ttft": "fewest_gpus",
    "e2eLatency": "fewest_gpus",
    "minGpus": "fewest_gpus",
}
"""What worker counts are chosen for when nobody waits. The last four depend on the rows alone, or on the GPUs alone."""
MOST_CONCURRENCY = 2**53
"""More requests in flight than any deployment runs, and still a whole number that a double holds exactly."""
DEPENDS_ON_COUNTS: frozenset[Metric] = frozenset({"throughput", "throughputPerGpu", "throughputPerCost", "minGpus"})
HOLDS_THE_WAIT: frozenset[Metric] = frozenset({"ttft", "e2eLatency"})
"""Metrics that fall as the rate grows, under a fixed concurrency."""


@dataclass(frozen=True)
class Load:
    """What a load asks of each row, or pair of rows; rates in requests per second."""

    least_workers: Ints
    """Decode or aggregated workers that hold the requests in flight."""
    offered_rate: Floats
    """Rate that the load brings: nothing serves more. Infinite when saturated."""
    needed_rate: Floats
    """Rate that must be reached; 0 where any will do."""


@dataclass(frozen=True)
class Question:
    """What is asked of every branch alike."""

    workload: Workload
    sla: Sla
    limits: Limits
    metrics: tuple[Metric, ...]
    pareto: bool
    prices: Prices = ONE_PRICE
    kv_load_ratio: float | None = None
    """Concurrency as a share of what the KV cache of each deployment holds."""
    pair_problem: Callable[[Shape, Shape], str | None] = lambda *_: None
    """Why the backend cannot put a prefill shape beside a decode shape, or None."""

    @property
    def goal(self) -> Goal | None:
        """What worker counts are chosen for; None: no one count of a pair is best in every metric."""
        holds = self.workload.concurrency is not None or self.kv_load_ratio is not None
        waits = HOLDS_THE_WAIT if holds else frozenset[Metric]()
        goal_of = {metric: "rate" if metric in waits else self._goal_of(metric) for metric in self.metrics}
        if not self.pareto:
            return goal_of[self.metrics[0]]
        goals = {goal for metric, goal in goal_of.items() if metric in DEPENDS_ON_COUNTS | waits}
        return None if len(goals) > 1 else next(iter(goals), "fewest_gpus")

    def _goal_of(self, metric: Metric) -> Goal:
        goal = GOAL_OF_METRIC[metric]
        return "rate_per_gpu" if goal == "rate_per_cost" and self.prices.one else goal

    def meets(self, ttft_ms: Floats, tpot_ms: Floats) -> npt.NDArray[np.bool_]:
        """Whether each row passes the gate; bounds that are not strict gate nothing."""
        if not self.sla.strict:
            return np.ones(len(ttft_ms), dtype=np.bool_)
        return keeps_bounds(self.sla, ttft_ms, tpot_ms, self.workload.osl)

    def own_concurrency(self, held: Ints, workers: Ints) -> Ints:
        """Requests in flight under the KV load ratio; 0 where the KV cache does not hold one request on average.

        The caches hold floor(tokens / (isl + floor(osl / 2))) requests at once, of which the ratio, rounded down and at
        least 1, is in flight. Source: engine.md section 4.

        Args:
            held: KV tokens of one decode (or aggregated) worker, in whole blocks.
            workers: how many there are.
        """
        at_once = held * workers // self.mean_request_tokens
        share = np.floor((self.kv_load_ratio or 0.0) * at_once * (1 + TIE))
        share = np.minimum(share, MOST_CONCURRENCY).astype(np.int64)
        return np.where(at_once >= 1, np.maximum(share, 1), 0)

    @property
    def mean_request_tokens(self) -> int:
        """KV tokens of a request half way through its output."""
        return self.workload.prompt_tokens + self.workload.osl // 2

    def load(self, ttft_ms: Floats, tpot_ms: Floats, slots: Ints, own_concurrency: Ints | None = None) -> Load:
        """What the load asks of rows that pass the gate.

        Args:
            ttft_ms: time to first token of each row, without a wait.
            tpot_ms: time per output token.
            slots: requests that one worker holds.
            own_concurrency: requests in flight of each, where they differ.
        """
        workload = self.workload
        concurrency = workload.concurrency if own_concurrency is None else own_concurrency
        one, none = np.ones(len(ttft_ms), dtype=np.int64), np.zeros(len(ttft_ms))
        if concurrency is not None:
            offered = 1000.0 * concurrency / mean_e2e_ms(ttft_ms, tpot_ms, workload.osl)
            needed = 1000.0 * concurrency / self._longest_e2e_ms(tpot_ms)
            return Load(-(-concurrency // slots), offered, np.minimum(needed, offered))
        if workload.request_rate is not None:
            rate = np.full(len(ttft_ms), workload.request_rate)
            return Load(one, rate, rate)
        return Load(one, np.full(len(ttft_ms), np.inf), none)

    def wait_ms(self, rate: Floats, ttft_ms: Floats, tpot_ms: Floats, concurrency: Ints) -> Floats:
        """Time that requests of a fixed concurrency wait before the latency of their rows begins; 0 for other loads."""
        e2e_ms = mean_e2e_ms(ttft_ms, tpot_ms, self.workload.osl)
        stay_ms = 1000.0 * concurrency / rate
        return np.where(stay_ms > e2e_ms * (1 + TIE), stay_ms - e2e_ms, 0.0)

    def _longest_e2e_ms(self, tpot_ms: Floats) -> Floats:
        """Longest mean stay of a request that keeps strict bounds; infinite without one."""
        longest = np.full(len(tpot_ms), np.inf)
        if self.sla.strict and self.sla.e2e_ms is not None:
            longest = np.minimum(longest, self.sla.e2e_ms)
        if self.sla.strict and self.sla.ttft_ms is not None:
            at_bound = np.full(len(tpot_ms), self.sla.ttft_ms)
            longest = np.minimum(longest, mean_e2e_ms(at_bound, tpot_ms, self.workload.osl))
        return longest
