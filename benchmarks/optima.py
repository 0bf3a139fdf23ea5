"""The best candidates of both searches, each by both rule sets, in output tokens per second and GPU."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.peer import peer_rows
from benchmarks.works import Work

RATE_DIGITS = 0.0005
"""The peer's rates are rounded to three digits: what they imply is uncertain by so much."""
RULES = """\
Our rules: GPUs that the deployment uses, any worker counts within one hard budget, inclusive bounds, osl tokens of
each request, and latencies that obey Little's law. The peer's rules: all GPUs of the cluster, strict bounds, a budget
for each pool of encode workers, and osl - 1 tokens of an aggregated request.
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


def optima(work: Work, save: Path, per_gpu: Path, cluster: Path) -> str:
    """The table of one request.

    Args:
        work: the request.
        save: the peer's results.
        per_gpu: our results per used GPU.
        cluster: our results of `whole_cluster`.
    """
    text = HEADER
    for topology in ("disagg", "agg"):
        row = peer_rows(save, topology)[0]
        mine, all_gpus = ours(per_gpu, topology), ours_by_their_rules(work, cluster, topology)
        text += f"| {topology} | ours | {theirs_by_our_rules(work, row, topology).text} | {shown(mine)} |\n"
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
    """The feasible points of a search, of one topology."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - a child's peak memory starts from that of the process that forks it

    points = pq.read_table(out / "points.parquet").to_pylist()
    return [point for point in points if point["status"] == "feasible" and point["branch"].split("/")[1] == topology]


def theirs(row: Mapping[str, str], topology: str) -> Best:
    """The peer's best as it says."""
    return Best(float(row["tokens/s/gpu_cluster"]), summary(row, topology))


def theirs_by_our_rules(work: Work, row: Mapping[str, str], topology: str) -> Best:
    """The peer's best by our formulas and bounds."""
    rate, ttft, tpot = float(row["seq/s"]), float(row["ttft"]), float(row["tpot"])
    waiting = 0.0
    if topology == "agg":
        served = 1000 * float(row["concurrency"]) / (rate + RATE_DIGITS)
        waiting = max(0.0, served - (ttft + tpot * (work.osl - 1)))
    gpus = used_gpus(row, topology)
    misses = "; ".join(
        f"{name} {value:.0f} ms > {bound:g} ms"
        for name, value, bound in (("TTFT", ttft + waiting, work.ttft_ms), ("TPOT", tpot, work.tpot_ms))
        if value > bound
    )
    if gpus > work.gpus:
        misses = f"{gpus} GPUs > {work.gpus}"
    return Best(rate * work.osl / gpus, summary(row, topology), misses)


def used_gpus(row: Mapping[str, str], topology: str) -> int:
    """GPUs of all workers of a row of the peer."""
    return sum(workers * gpus for _, workers, gpus, _ in pools(row, topology))


def summary(row: Mapping[str, str], topology: str) -> str:
    """A row of the peer in the words of our summaries."""
    return ", ".join(f"{workers} x {kind} {label}" for kind, workers, _, label in pools(row, topology))


def pools(row: Mapping[str, str], topology: str) -> list[tuple[str, int, int, str]]:
    """Kind, workers, GPUs of a worker, and shape of each pool of a row of the peer."""
    found = []
    kinds = (
        (("agg", "(a)" if row.get("(a)workers") else ""),)
        if topology == "agg"
        else (
            ("prefill", "(p)"),
            ("decode", "(d)"),
        )
    )
    for kind, mark in (*kinds, ("encode", "(e)")):
        workers = int(float(row.get(f"{mark}workers") or (0 if kind == "encode" else 1)))
        if workers:
            plain = mark if f"{mark}tp" in row else ""
            found.append((kind, workers, *_shape(row, plain)))
    return found


def _shape(row: Mapping[str, str], mark: str) -> tuple[int, str]:
    """GPUs and label of one worker."""

    def size(name: str) -> int:
        return int(float(row.get(f"{mark}{name}") or 1))

    tp, pp, dp, cp = size("tp"), max(size("pp"), 1), size("dp"), size("cp")
    sizes = {"tp": tp, "pp": pp, "dp": dp, "cp": cp, "moetp": size("moe_tp"), "ep": size("moe_ep")}
    label = "-".join(f"{name}{value}" for name, value in sizes.items() if value > 1) or "tp1"
    return tp * pp * dp * cp, f"{label} b{size('bs')}"
