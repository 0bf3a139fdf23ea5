"""The best candidates of both searches, each by both rule sets, in output tokens per second and GPU."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from dgdr_job.catalog.catalog import Catalog

from benchmarks.as_rendered import shape_of, timed
from benchmarks.peer import peer_rows
from benchmarks.works import Work

RULES = """\
Our rules: GPUs that the deployment uses, any worker counts within one hard budget, inclusive bounds, osl tokens of
each request, latencies that obey Little's law, and the times of the kernels that the manifests start. The peer's
rules: all GPUs of the cluster, strict bounds, a budget for each pool of encode workers, and osl - 1 tokens of an
aggregated request.
"""
HEADER = "| topology | rules | peer's best | ours |\n| --- | --- | --- | --- |\n"


@dataclass(frozen=True)
class Best:
    """The best deployment of one side by one rule set."""

    value: float
    """Output tokens per second and GPU."""
    summary: str
    misses: str = ""
    """Bound of the rule set that it misses; empty when it keeps all."""

    @property
    def text(self) -> str:
        """What a table shows."""
        return f"{self.value:.2f}{f', but {self.misses}' if self.misses else ''}<br>{self.summary}"


def whole_cluster(work: Work, folder: Path) -> Path:
    """The request by throughput of all GPUs, which is how the peer ranks what it has repeated."""
    document: dict[str, Any] = yaml.safe_load(work.request.read_text())
    document["spec"]["objective"]["metric"] = "throughput"
    path = folder / f"{work.name}-cluster.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def optima(work: Work, save: Path, per_gpu: Path, cluster: Path, catalog: Catalog) -> str:
    """The table of one request.

    Args:
        work: the request.
        save: the peer's results.
        per_gpu: our results per used GPU.
        cluster: our results of `whole_cluster`.
        catalog: what our engine times with.
    """
    text = HEADER
    for topology in ("disagg", "agg"):
        row = peer_rows(save, topology)[0]
        mine, all_gpus = ours(per_gpu, topology), ours_by_their_rules(work, cluster, topology)
        text += f"| {topology} | ours | {theirs_by_our_rules(work, row, topology, catalog).text} | {shown(mine)} |\n"
        text += f"| {topology} | the peer's | {theirs(row, topology).text} | {shown(all_gpus)} |\n"
    return text


def shown(best: Best | None) -> str:
    """A cell of the table."""
    return "none" if best is None else best.text


def ours(out: Path, topology: str) -> Best | None:
    """Our best by our rules."""
    points = feasible(out, topology)
    return _best(points, {i: point["metrics.outputThroughputTokensPerSPerGpu"] for i, point in enumerate(points)})


def ours_by_their_rules(work: Work, out: Path, topology: str) -> Best | None:
    """Our best by the peer's rules: strict bounds, all GPUs of the cluster."""
    points = feasible(out, topology)
    values = {
        i: point["metrics.outputThroughputTokensPerS"] / work.gpus
        for i, point in enumerate(points)
        if point["metrics.ttftMs"] < work.ttft_ms and point["metrics.tpotMs"] < work.tpot_ms
    }
    return _best(points, values)


def _best(points: list[dict[str, Any]], values: Mapping[int, float]) -> Best | None:
    if not values:
        return None
    place = max(values, key=lambda i: values[i])
    return Best(values[place], points[place]["summary"])


def feasible(out: Path, topology: str) -> list[dict[str, Any]]:
    """The feasible points of a search, of one topology, with and without encode workers."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - a child's peak memory starts from that of the process that forks it

    points = pq.read_table(out / "points.parquet").to_pylist()
    branches = {topology, f"{topology}+epd"}
    return [each for each in points if each["status"] == "feasible" and each["branch"].split("/")[1] in branches]


def theirs(row: Mapping[str, str], topology: str) -> Best:
    """The peer's best as it says."""
    return Best(float(row["tokens/s/gpu_cluster"]), summary(row, topology))


def theirs_by_our_rules(work: Work, row: Mapping[str, str], topology: str, catalog: Catalog) -> Best:
    """The peer's best by our times, formulas and bounds."""
    served, gpus = timed(work, row, topology, catalog), used_gpus(row, topology)
    misses = [
        f"{name} {value:.0f} ms > {bound:g} ms"
        for name, value, bound in (
            ("TTFT", served.ttft_ms, work.ttft_ms),
            ("TPOT", served.tpot_ms, work.tpot_ms),
        )
        if value > bound
    ]
    if gpus > work.gpus:
        misses.append(f"{gpus} GPUs > {work.gpus}")
    return Best(served.requests_per_s * work.osl / gpus, summary(row, topology), "; ".join(misses))


def used_gpus(row: Mapping[str, str], topology: str) -> int:
    """GPUs of all workers of a row of the peer."""
    return sum(workers * gpus for _, workers, gpus, _ in pools(row, topology))


def summary(row: Mapping[str, str], topology: str) -> str:
    """A row of the peer in the words of our summaries."""
    return ", ".join(f"{workers} x {kind} {label}" for kind, workers, _, label in pools(row, topology))


def pools(row: Mapping[str, str], topology: str) -> list[tuple[str, int, int, str]]:
    """Kind, workers, GPUs of a worker, and shape with batch, of each pool of a row of the peer."""
    marks = {"agg": ""} if topology == "agg" else {"prefill": "(p)", "decode": "(d)"}
    found = []
    for kind, mark in {**marks, "encode": "(e)"}.items():
        counted = row.get("(a)workers" if kind == "agg" else f"{mark}workers")
        workers = int(float(counted or (0 if kind == "encode" else 1)))
        if workers:
            shape = shape_of(row, mark)
            found.append((kind, workers, shape.gpus, f"{shape.label} b{int(float(row[f'{mark}bs']))}"))
    return found
