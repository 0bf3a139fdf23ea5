"""Speed and memory of the command, beside aiconfigurator 0.12 on the same requests in the same run; and both optima.

Every figure is a whole process: interpreter, imports, work, results. Cold means an empty disk cache of ours; the
peer has none. Runs of ours and the peer's take turns. Wall and CPU are the least of the runs, memory the largest.
Results are kept in benchmarks/results.json by request, so that some can be measured again (``--only``), and written to
benchmarks/results.md (speed) and benchmarks/optima.md (both optima). All of it takes about half an hour.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from dgdr_job.catalog.cache import DiskCache
from dgdr_job.catalog.catalog import Catalog

from benchmarks.optima import RULES, feasible, optima, whole_cluster
from benchmarks.peer import NAME, peer_arguments, peer_command
from benchmarks.process import Run, Runs, measure
from benchmarks.works import WORKS, Work

HERE = Path(__file__).parent
ROOT = HERE.parent
DGDR = Path(sys.executable).parent / "dgdr"
RESULTS = HERE / "results.json"
NOT_RENDERED = 3
"""Exit code of a search that publishes nothing: no template renders TensorRT-LLM yet."""


@dataclass(frozen=True)
class Figure:
    """Least wall and CPU seconds, and largest memory, of the runs of one command."""

    wall_s: float
    cpu_s: float
    peak_mb: float

    @classmethod
    def of(cls, runs: Runs) -> "Figure":
        """The figure of some runs."""
        return cls(round(runs.wall_s, 2), round(runs.cpu_s, 2), round(runs.peak_mb))


def main() -> None:
    """Measure, write the tables and print them."""
    names = [work.name for work in WORKS]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="runs of our commands (default 5)")
    parser.add_argument("--peer-runs", type=int, default=2, help="runs of the peer, in turn with ours (default 2)")
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="REQUEST", help=", ".join(names))
    parser.add_argument("--without-peer", action="store_true", help="print ours alone; nothing is installed or written")
    given = parser.parse_args()
    if len(given.only) > 1:
        for name in given.only:
            each_apart(name, sys.argv[1:])
        return
    measured = json.loads(RESULTS.read_text()) if RESULTS.exists() and not given.without_peer else {}
    (work,) = (work for work in WORKS if work.name in given.only)
    with tempfile.TemporaryDirectory() as folder:
        measured[work.name] = measured_work(
            work, Path(folder), given.runs, 0 if given.without_peer else given.peer_runs
        )
    if given.without_peer:
        sys.stdout.write(speed_page(measured))
        return
    RESULTS.write_text(json.dumps(measured, indent=1) + "\n")
    for file, text in (("results.md", speed_page(measured)), ("optima.md", optima_page(measured))):
        (HERE / file).write_text(text)
    sys.stdout.write(speed_page({work.name: measured[work.name]}))


def each_apart(name: str, words: Sequence[str]) -> None:
    """Measure one request in a process of its own: a child's peak memory begins with that of its parent."""
    others = [word for word in words if word not in {"--only", *(work.name for work in WORKS)}]
    subprocess.run([sys.executable, "-m", "benchmarks.run", *others, "--only", name], check=True, cwd=ROOT)


def measured_work(work: Work, folder: Path, runs: int, peer_runs: int) -> dict[str, object]:
    """Every figure of one request, and the table of its optima."""
    log = folder / "log"
    cold: list[Run] = []
    peer: list[Run] = []
    for number in range(max(runs, peer_runs)):
        say(f"{work.name}, run {number + 1} of {runs}")
        if number < runs:
            cold.append(search(work.request, folder, number, cache=folder / f"cache-{number}"))
        if number < peer_runs:
            peer.append(measure([peer_command(), *peer_arguments(work.peer, folder / f"peer-{number}")], log))
    warm = [search(work.request, folder, f"warm-{number}", cache=folder / "cache-0") for number in range(runs)]
    found: dict[str, object] = {"runs": runs, "peer_runs": peer_runs}
    if not any(feasible(folder / "out-0", topology) for topology in ("agg", "disagg")):
        say(f"{work.name}: ours found nothing: see {log}")
        cold, warm = [], []
    for name, some in (("cold", cold), ("warm", warm), ("peer", peer)):
        found[name] = asdict(Figure.of(Runs(tuple(some)))) if some else None
    if peer and cold:
        search(whole_cluster(work, folder), folder, "cluster", cache=folder / "cache-0")
        catalog = Catalog(DiskCache(folder / "cache-0"))
        found["optima"] = optima(work, folder / "peer-0", folder / "out-0", folder / "out-cluster", catalog)
    return found


def search(request: Path, folder: Path, name: object, cache: Path) -> Run:
    """One search; one that finds what no template renders counts too."""
    command: list[str | Path] = [DGDR, "search", request, "--out", folder / f"out-{name}"]
    return measure(command, folder / "log", {"DGDR_CACHE_DIR": str(cache)}, allowed=(0, NOT_RENDERED))


def say(text: str) -> None:
    """Tell a person how far it is."""
    sys.stderr.write(f"{text}\n")


def speed_page(measured: dict[str, dict[str, object]]) -> str:
    """Wall, CPU and memory; and how many times the peer takes."""
    text = (
        f"`make bench`: whole processes on {os.cpu_count()} cores ({platform.machine()}), Python "
        f"{platform.python_version()}, least of the runs of ours and of {NAME}, in turn; ours use one core.\n\n"
        "| request | | wall, s | CPU, s | peak memory, MB | peer / ours: wall | CPU | memory | aim |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
    )
    for work in WORKS:
        found = measured.get(work.name)
        if found is None:
            continue
        peer = _figure(found["peer"])
        for name, aim in (("cold", work.cold_aim), ("warm", work.warm_aim)):
            text += _row(work.title, f"{name}, {found['runs']} runs", _figure(found[name]), peer, aim)
        if peer:
            text += f"| {work.title} | peer, {found['peer_runs']} | {peer.wall_s:.2f} | {peer.cpu_s:.2f} | "
            text += f"{peer.peak_mb:.0f} | | | | |\n"
    return text + "\n"


def _figure(found: object) -> Figure | None:
    return Figure(**found) if isinstance(found, dict) else None


def _row(title: str, name: str, mine: Figure | None, peer: Figure | None, aim: float | None) -> str:
    if mine is None:
        return f"| {title} | {name} | not searched yet | | | | | | |\n"
    text = f"| {title} | {name} | {mine.wall_s:.2f} | {mine.cpu_s:.2f} | {mine.peak_mb:.0f} | "
    if peer is None:
        return text + "| | | |\n"
    ratios = (peer.wall_s / mine.wall_s, peer.cpu_s / mine.cpu_s, peer.peak_mb / mine.peak_mb)
    return text + " | ".join(f"{ratio:.1f}" for ratio in ratios) + f" | {f'≥ {aim:g}' if aim else ''} |\n"


def optima_page(measured: dict[str, dict[str, object]]) -> str:
    """Both optima of every request by both rule sets, and why they differ."""
    text = f"# The optima beside those of {NAME}\n\nWritten by `make bench`. Output tokens per second and GPU.\n\n"
    text += RULES
    for work in WORKS:
        found = measured.get(work.name, {})
        if isinstance(found.get("optima"), str):
            text += f"\n## {work.title}\n\n{found['optima']}\n" + "".join(f"- {why}\n" for why in work.why)
    return text


if __name__ == "__main__":
    main()
