"""The cluster path on a real API server of this machine: operator, sweeper and publisher as the processes they are.

etcd and kube-apiserver are those of the tests (tests/controlplane); there is no node, so the two programs of a search's
pod run side by side on this machine, beside the API server. Ways that are compared take turns. The tables are printed
and written to benchmarks/cluster-results.md.
"""

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import yaml
from dgdr_api.canonical import canonical_json

from benchmarks.cluster_operator import NAMESPACE, FirstStatus, Load, first_statuses, idle, operator, under_load
from benchmarks.cluster_search import Searches, Ways
from benchmarks.run import ROOT, say
from tests.api.test_worst_case_status import worst_run_status
from tests.controlplane.build import ensure_binaries
from tests.controlplane.kubectl import Kubectl, find_kubectl
from tests.controlplane.plane import BINARIES, ControlPlane, start_control_plane

RESULTS = Path(__file__).parent / "cluster-results.md"
LONG_BUDGET = 512
"""GPUs of the long search: gpt-oss-120b with many more worker counts than its example has."""
AIM_STATUS_S, AIM_IDLE_MIB, AIM_OVERHEAD, AIM_LAPTOP, AIM_BYTES = 2, 120, 1.05, 1.3, 32 * 1024
ROW = "| {} | {:.2f} | {:.2f} | {:.2f} | {} |\n"


def main() -> None:
    """Measure, print and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=20, help="requests whose first status is timed (default 20)")
    parser.add_argument("--requests", type=int, default=1000, help="requests beside a cold restart (default 1000)")
    parser.add_argument("--runs", type=int, default=10, help="runs of each way of the short search (default 10)")
    parser.add_argument("--long-runs", type=int, default=5, help="runs of each way of the long search (default 5)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        text = measured(Path(name), given)
    sys.stdout.write(text)
    RESULTS.write_text(text)


def measured(folder: Path, given: argparse.Namespace) -> str:
    """The tables of one measurement."""
    short, long = example("qwen3-32b"), example("gpt-oss-120b", LONG_BUDGET)
    text = heading(given)
    with cluster(folder / "searches") as (plane, kubectl):
        short_ways = Searches(plane, kubectl, folder, short).measured(given.runs, say)
        long_ways = Searches(plane, kubectl, folder, long).measured(given.long_runs, say)
    with cluster(folder / "operator") as (plane, kubectl):
        kubectl("create", "namespace", NAMESPACE)
        say("operator")
        with operator(plane) as found:
            idle_mib = idle(found)
            firsts = first_statuses(plane, short, given.repetitions)
        load = under_load(plane, short, given.requests)
    text += first_status_table(firsts)
    text += memory_table(idle_mib, load, given.requests, (short_ways, long_ways))
    text += search_table(f"qwen3-32b, 16 GPUs, {given.runs} runs", short_ways)
    text += search_table(f"gpt-oss-120b, {LONG_BUDGET} GPUs, {given.long_runs} runs", long_ways)
    size = len(canonical_json(worst_run_status()).encode())
    return text + f"Status of a run with every bound at its limit: {size:,} bytes (aim < {AIM_BYTES:,}).\n"


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[ControlPlane, Kubectl]]:
    """An API server with our kinds."""
    with start_control_plane(ensure_binaries(BINARIES)) as plane:
        kubectl = Kubectl(find_kubectl(), plane.kubeconfig, folder)
        for file in sorted((ROOT / "crds").glob("*.yaml")):
            kubectl.install_crds(file)
        yield plane, kubectl


def example(name: str, budget: int | None = None) -> dict[str, Any]:
    """A request of examples/, with another budget of GPUs if one is given."""
    document: dict[str, Any] = yaml.safe_load((ROOT / "examples" / f"{name}.yaml").read_text())
    if budget is not None:
        document["spec"]["hardware"]["gpu"]["budget"] = budget
    return document


def heading(given: argparse.Namespace) -> str:
    """What was measured and how."""
    return (
        f"`python -m benchmarks.cluster --repetitions {given.repetitions} --requests {given.requests} "
        f"--runs {given.runs} --long-runs {given.long_runs}`: Python {platform.python_version()} on {os.cpu_count()} "
        f"cores ({platform.machine()}), load average {os.getloadavg()[0]:.1f} at the start. etcd, kube-apiserver and "
        "all programs share these cores.\n\n"
    )


def first_status_table(firsts: Sequence[FirstStatus]) -> str:
    """Seconds from apply to each first answer."""
    text = f"From apply to the first answer, seconds, {len(firsts)} requests one after the other (examples/"
    text += "qwen3-32b.yaml), operator idle:\n\n| until the API server shows | min | median | max | aim |\n"
    text += "| --- | --- | --- | --- | --- |\n"
    for name, field in (
        ("the request accepted", "accepted_s"),
        ("its run", "run_s"),
        ("the run's first status", "run_status_s"),
        ("its Job", "job_s"),
    ):
        values = [getattr(each, field) for each in firsts]
        text += ROW.format(name, min(values), median(values), max(values), f"< {AIM_STATUS_S}")
    return text + "\n"


def memory_table(idle_mib: float, load: Load, requests: int, ways: tuple[Ways, Ways]) -> str:
    """Resident memory of every program."""
    text = "Resident memory, MiB:\n\n| program | MiB | aim or limit |\n| --- | --- | --- |\n"
    text += f"| operator, idle | {idle_mib:.0f} | < {AIM_IDLE_MIB} |\n"
    beside = f"{requests} requests, runs and Jobs"
    text += f"| operator, cold start beside {beside} | {load.resident_mib:.0f} |  |\n"
    text += f"| the same, peak | {load.peak_mib:.0f} |  |\n"
    for kind, found in zip(("short", "long"), (each.memory for each in ways), strict=True):
        if found is not None:
            text += f"| sweeper, {kind} search, peak: parent + engine | {found.sweeper:.0f} + {found.engine:.0f} | "
            text += f"4096 |\n| publisher, {kind} search, peak | {found.publisher:.0f} | 512 |\n"
    text += f"\nThe cold start had listed everything after {load.ready_s:.1f} s. The operator before it took "
    return text + f"{load.created_s:.0f} s from the first of these requests to the last Job.\n\n"


def search_table(title: str, ways: Ways) -> str:
    """The four ways of one search, and what the publisher adds."""
    rows = [
        ("engine alone, events to /dev/null: end of the process", ways.alone_s),
        ("sweeper with a sink that acknowledges at once: search.completed", [each.found_s for each in ways.sink]),
        ("sweeper with the publisher: search.completed", [each.found_s for each in ways.publisher]),
        ("sweeper with a sink: acknowledged end", [each.acknowledged_s for each in ways.sink]),
        ("sweeper with the publisher: acknowledged end", [each.acknowledged_s for each in ways.publisher]),
        ("`dgdr search`: end of the process", [each.wall_s for each in ways.laptop]),
        ("publisher: CPU from the sweeper's start on", [each.helper_cpu_s for each in ways.publisher]),
        ("publisher: its start to its socket, before the sweeper", ways.ready_s),
    ]
    text = f"Search of {title} in each way, in turn, cold disk cache, seconds from the start of the process:\n\n"
    text += "| | min | median |\n| --- | --- | --- |\n"
    text += "".join(f"| {name} | {min(values):.2f} | {median(values):.2f} |\n" for name, values in rows)
    text += "\n| compared, minima | ratio | aim |\n| --- | --- | --- |\n"
    (_, _), (_, sink), (_, found), (_, sink_end), (_, end), (_, laptop), *_ = rows
    compared = (
        ("search.completed, publisher / sink", found, sink, f"< {AIM_OVERHEAD}"),
        ("acknowledged end, publisher / sink", end, sink_end, ""),
        ("acknowledged end with publisher / `dgdr search`", end, laptop, f"<= {AIM_LAPTOP}"),
    )
    for name, one, other, aim in compared:
        text += f"| {name} | {min(one) / min(other):.3f} | {aim} |\n"
    return text + "\n"


if __name__ == "__main__":
    main()
