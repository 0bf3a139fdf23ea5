"""What Prometheus reads: states from the store at the moment of the scrape, times and errors as they happen."""

from collections import Counter
from collections.abc import Iterator

from dgdr_api.reasons import COMPLETED
from dgdr_kube.errors import KubeError
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client import Counter as CounterMetric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from dgdr_operator.kinds import RUN, condition_of
from dgdr_operator.queue import WorkQueue
from dgdr_operator.store import Store

_BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30)


class Metrics:
    """All metrics of one operator, in a registry of their own."""

    def __init__(self, store: Store, queue: WorkQueue) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_State(store, queue))
        self.reconcile_seconds = Histogram(
            "dgdr_reconcile_seconds", "Time of one look at a request", buckets=_BUCKETS, registry=self._registry
        )
        self._errors = CounterMetric(
            "dgdr_api_errors", "Requests that the API server did not do", ["kind"], registry=self._registry
        )

    def failed(self, error: KubeError) -> None:
        """Count a request that the API server did not do."""
        self._errors.labels(kind=type(error).__name__).inc()

    def text(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return generate_latest(self._registry)


class _State(Collector):
    def __init__(self, store: Store, queue: WorkQueue) -> None:
        self._store, self._queue = store, queue

    def collect(self) -> Iterator[GaugeMetricFamily]:
        runs = GaugeMetricFamily("dgdr_runs", "Runs by phase and reason of Completed", labels=["phase", "reason"])
        evaluations = GaugeMetricFamily(
            "dgdr_run_evaluations", "Evaluations of all runs that are kept, by state", labels=["state"]
        )
        by_phase: Counter[tuple[str, str]] = Counter()
        by_state: Counter[str] = Counter()
        for run in self._store.all(RUN):
            status = run.get("status") or {}
            said = condition_of(run, COMPLETED) or {}
            by_phase[status.get("phase", "Pending"), said.get("reason", "")] += 1
            by_state.update((status.get("progress") or {}).get("evaluations") or {})
        for (phase, reason), count in sorted(by_phase.items()):
            runs.add_metric([phase, reason], count)
        for state, count in sorted(by_state.items()):
            evaluations.add_metric([state], count)
        yield runs
        yield evaluations
        yield GaugeMetricFamily("dgdr_queue_length", "Requests that wait to be looked at", value=len(self._queue))
