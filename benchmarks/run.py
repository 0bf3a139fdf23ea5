"""Speed and memory of the command, beside aiconfigurator 0.12 on the same request in the same run.

Every figure is a whole process: interpreter, imports, work, results. Cold means an empty disk cache of ours; the
peer has none. Runs of ours and the peer's take turns. Wall and CPU are the least of the runs, memory the largest. The
tables are printed and written to benchmarks/results.md.
"""

import argparse
import os
import platform
import sys
import tempfile
from pathlib import Path

from benchmarks.peer import peer_arguments, peer_best, peer_command
from benchmarks.process import Run, Runs, measure

ROOT = Path(__file__).parent.parent
DGDR = Path(sys.executable).parent / "dgdr"
REQUEST = Path(__file__).parent / "qwen3-32b-per-gpu.yaml"
WHOLE_CLUSTER = ROOT / "examples" / "qwen3-32b.yaml"
"""The same by throughput of all GPUs, which is how the peer ranks what it has repeated."""
RESULTS = Path(__file__).parent / "results.md"
GPUS, OSL = 16, 300
PREFILL_RATE, DECODE_RATE = 0.9, 0.92


def main() -> None:
    """Measure, print and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="runs of each command (default 5)")
    parser.add_argument("--without-peer", action="store_true", help="leave the peer out: nothing is installed")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tables = measured(Path(folder), arguments.runs, with_peer=not arguments.without_peer)
    sys.stdout.write(tables)
    if not arguments.without_peer:
        RESULTS.write_text(tables)


def measured(folder: Path, runs: int, *, with_peer: bool) -> str:
    """The tables of one measurement."""
    log = folder / "log"
    help_runs = Runs(tuple(measure([DGDR, "--help"], log) for _ in range(runs)))
    cold: list[Run] = []
    peer: list[Run] = []
    for number in range(runs):
        say(f"search, run {number + 1} of {runs}")
        cold.append(search(folder, number, log, cache=folder / f"cache-{number}"))
        if with_peer:
            peer.append(measure([peer_command(), *peer_arguments(folder / f"peer-{number}")], log))
    warm = [search(folder, f"warm-{number}", log, cache=folder / "cache-0") for number in range(runs)]
    rows = [
        ("`dgdr --help`", help_runs),
        ("search, cold", Runs(tuple(cold))),
        ("search, warm", Runs(tuple(warm))),
    ]
    if with_peer:
        rows.append(("aiconfigurator 0.12.0", Runs(tuple(peer))))
    text = heading(runs) + speed_table(rows, Runs(tuple(peer)) if peer else None)
    return text + (optimum_table(folder) if with_peer else "")


def search(folder: Path, name: object, log: Path, cache: Path) -> Run:
    """One search of the benchmark's request."""
    command: list[str | Path] = [DGDR, "search", REQUEST, "--out", folder / f"out-{name}"]
    return measure(command, log, {"DGDR_CACHE_DIR": str(cache)})


def say(text: str) -> None:
    """Tell a person how far it is."""
    sys.stderr.write(f"{text}\n")


def heading(runs: int) -> str:
    """What was measured and how."""
    return (
        f"`make bench`: {runs} runs each, in turn, whole processes, Python {platform.python_version()} on "
        f"{os.cpu_count()} cores ({platform.machine()}). Qwen3-32B, vLLM 0.24.0 data, 16 H200, isl 3000, osl 300, "
        "TTFT 1000 ms, TPOT 40 ms, aggregated and disaggregated.\n\n"
    )


def speed_table(rows: list[tuple[str, Runs]], peer: Runs | None) -> str:
    """Wall, CPU and memory; and how many times the peer takes."""
    text = (
        "| command | wall, s | median wall, s | CPU, s | peak memory, MB | peer / ours, wall | peer / ours, memory |\n"
    )
    text += "| --- | --- | --- | --- | --- | --- | --- |\n"
    for name, runs in rows:
        compared = peer is not None and runs is not peer and name.startswith("search")
        ratios = (
            (f"{peer.wall_s / runs.wall_s:.1f}", f"{peer.peak_mb / runs.peak_mb:.1f}")
            if compared and peer
            else ("", "")
        )
        text += (
            f"| {name} | {runs.wall_s:.2f} | {runs.median_wall_s:.2f} | {runs.cpu_s:.2f} | {runs.peak_mb:.0f} | "
            f"{ratios[0]} | {ratios[1]} |\n"
        )
    return text + "\n"


def optimum_table(folder: Path) -> str:
    """Both optima under both rule sets, output tokens per second and GPU.

    Ours: GPUs that the deployment uses, any worker counts within the budget. The peer's: all GPUs of the cluster, a
    found unit repeated as often as it fits.
    """
    measure([DGDR, "search", WHOLE_CLUSTER, "--out", folder / "cluster"], folder / "log")
    per_gpu, cluster = feasible(folder / "out-0"), feasible(folder / "cluster")
    text = "| topology | rules | peer's best | ours |\n| --- | --- | --- | --- |\n"
    for topology in ("disagg", "agg"):
        peer = peer_best(folder / "peer-0", topology)
        own_rules = max(point["metrics.outputThroughputTokensPerSPerGpu"] for point in per_gpu[topology])
        their_rules = max(point["metrics.outputThroughputTokensPerS"] / GPUS for point in cluster[topology])
        text += f"| {topology} | per used GPU (ours) | {under_our_rules(peer.row, topology):.2f} | {own_rules:.2f} |\n"
        found = f"{peer.tokens_per_s_per_gpu:.2f} | {their_rules:.2f}"
        text += f"| {topology} | per GPU of the cluster (the peer's) | {found} |\n"
    return text + "\n"


def feasible(out: Path) -> dict[str, list[dict[str, float]]]:
    """The feasible points of a search by topology."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - a child's peak memory starts from that of the process that forks it

    points = pq.read_table(out / "points.parquet").to_pylist()
    found: dict[str, list[dict[str, float]]] = {"agg": [], "disagg": []}
    for point in points:
        if point["status"] == "feasible":
            found[point["branch"].split("/")[1]].append(point)
    return found


def under_our_rules(row: dict[str, str], topology: str) -> float:
    """The peer's row by our formulas: it counts osl - 1 tokens of an aggregated request, we count osl."""
    if topology == "agg":
        return float(row["seq/s"]) * OSL / float(row["num_total_gpus"])
    prefill = float(row["(p)seq/s/worker"]) * int(row["(p)workers"]) * PREFILL_RATE
    decode = float(row["(d)seq/s/worker"]) * int(row["(d)workers"]) * DECODE_RATE
    return min(prefill, decode) * OSL / float(row["num_total_gpus"])


if __name__ == "__main__":
    main()
