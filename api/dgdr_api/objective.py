"""What "best" means."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from dgdr_api.bounds import Positive, Price
from dgdr_api.hardware import MAX_SKUS
from dgdr_api.rules import Distinct, Rule, RuledModel, given, values
from dgdr_api.terms import Metric

DEFAULT_PARETO_METRICS: tuple[Metric, Metric] = ("throughputPerGpu", "throughputPerUser")
NEED_SLA: frozenset[Metric] = frozenset({"goodput", "goodputPerGpu", "minGpus"})
"""Metrics that are defined only with a latency target."""


class Sla(RuledModel):
    """Latency targets in milliseconds, inclusive: e2eMs alone, or ttftMs and itlMs together."""

    rules: ClassVar = (
        Rule(
            id="sla-bounds",
            cel="has(self.e2eMs) ? !has(self.ttftMs) && !has(self.itlMs) : has(self.ttftMs) && has(self.itlMs)",
            message="give either e2eMs alone, or ttftMs and itlMs together",
            holds=lambda sla: (
                (sla.ttft_ms is None and sla.itl_ms is None)
                if sla.e2e_ms is not None
                else (sla.ttft_ms is not None and sla.itl_ms is not None)
            ),
            found=given("ttftMs", "itlMs", "e2eMs"),
        ),
    )

    ttft_ms: Positive | None = None
    """Time to first token."""
    itl_ms: Positive | None = None
    """Time between tokens: the mean over requests of each request's own mean."""
    e2e_ms: Positive | None = None
    """Time from arrival to last token."""
    strict: bool = True
    """true (default): a hard gate on means. false: the targets shape goodput only."""


class Objective(RuledModel):
    """What is optimised: one metric, or the trade-off between several."""

    rules: ClassVar = (
        Rule(
            id="optimize-metric",
            cel="self.mode != 'optimize' || has(self.metric)",
            message="mode optimize needs metric",
            holds=lambda objective: objective.mode != "optimize" or objective.metric is not None,
            field=".metric",
        ),
        Rule(
            id="pareto-no-metric",
            cel="self.mode != 'pareto' || !has(self.metric)",
            message="mode pareto takes metrics, not metric",
            holds=lambda objective: objective.mode != "pareto" or objective.metric is None,
            field=".metric",
            found=values("metric"),
        ),
        Rule(
            id="metrics-pareto",
            cel="self.mode == 'pareto' || !has(self.metrics)",
            message="metrics needs mode pareto; mode optimize takes metric",
            holds=lambda objective: objective.mode == "pareto" or objective.metrics is None,
            field=".metrics",
        ),
        Rule(
            id="metric-sla",
            cel="has(self.sla) || ((!has(self.metric) || !(self.metric in ['goodput', 'goodputPerGpu', 'minGpus'])) && "
            "(!has(self.metrics) || !self.metrics.exists(m, m in ['goodput', 'goodputPerGpu', 'minGpus'])))",
            message="goodput, goodputPerGpu and minGpus need sla",
            holds=lambda objective: objective.sla is not None or NEED_SLA.isdisjoint(objective.named_metrics),
            field=".sla",
        ),
        Rule(
            id="metric-cost",
            cel="has(self.gpuHourCost) || ((!has(self.metric) || self.metric != 'throughputPerCost') && "
            "(!has(self.metrics) || !self.metrics.exists(m, m == 'throughputPerCost')))",
            message="throughputPerCost needs gpuHourCost",
            holds=lambda objective: bool(objective.gpu_hour_cost) or "throughputPerCost" not in objective.named_metrics,
            field=".gpuHourCost",
        ),
    )

    mode: Literal["optimize", "pareto"]
    """optimize: the best by one metric. pareto: the points that no other beats in every metric."""
    metric: Metric | None = None
    """The metric of mode optimize."""
    metrics: Annotated[tuple[Metric, ...], Field(min_length=2, max_length=4), Distinct()] | None = None
    """Two to four metrics of mode pareto; throughputPerGpu and throughputPerUser by default."""
    gpu_hour_cost: Annotated[dict[str, Price], Field(min_length=1, max_length=MAX_SKUS)] | None = None
    """Price of a GPU hour by GPU type, for throughputPerCost."""
    sla: Sla | None = None
    """Latency targets."""

    @property
    def named_metrics(self) -> tuple[Metric, ...]:
        """The metrics that this objective names, whatever its mode; empty when it relies on the default."""
        return (() if self.metric is None else (self.metric,)) + (self.metrics or ())

    @property
    def all_metrics(self) -> tuple[Metric, ...]:
        """The metrics that are optimised, the default of pareto included."""
        return self.named_metrics or DEFAULT_PARETO_METRICS
