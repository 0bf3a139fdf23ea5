"""The operator as a process on a real API server: how soon it answers a request, and how much memory it holds."""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dgdr_kube.client import KubeClient, configuration
from dgdr_kube.resource import JOB
from dgdr_operator.kinds import REQUEST, RUN, condition_of, controller_name

from benchmarks.cluster_pod import resident_mib
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Process
from tests.operator.hands import OperatorProcess, eventually

NAMESPACE = "benchmark"
ASK_S, LOOK_S = 0.005, 2.0
IDLE_S = 5.0
"""From readiness until an operator counts as idle."""
DEADLINE_S = 900.0


@dataclass(frozen=True)
class FirstStatus:
    """Seconds from the moment that a request is sent to the API server until each can be read from it."""

    accepted_s: float
    run_s: float
    run_status_s: float
    job_s: float


@dataclass(frozen=True)
class Load:
    """An operator that was started anew beside many requests."""

    created_s: float
    """Until the operator before it had made a run and a Job of each request, the last one included."""
    ready_s: float
    """From the start of the process until everything was listed."""
    resident_mib: float
    peak_mib: float


@contextmanager
def operator(plane: ControlPlane) -> Iterator[OperatorProcess]:
    """An operator that is ready."""
    settings = {
        "KUBECONFIG": plane.kubeconfig,
        "DGDR_SWEEPER_IMAGE": "example.org/sweeper:1",
        "DGDR_PUBLISHER_IMAGE": "example.org/publisher:1",
        "DGDR_HTTP_PORT": "0",
        "DGDR_LEADER_ELECTION": "false",
        "PATH": os.environ["PATH"],
    }
    given = [f"{name}={value}" for name, value in settings.items()]
    with tempfile.TemporaryDirectory() as folder:
        command = ["/usr/bin/env", "-i", *given, sys.executable, "-m", "dgdr_operator"]
        found = OperatorProcess(Process("operator", command, Path(folder) / "log"))
        found.process.start()
        try:
            found.wait_until_ready()
            yield found
        finally:
            found.process.stop()


def idle(found: OperatorProcess) -> float:
    """Resident memory of an operator that has nothing to do, MiB."""
    time.sleep(IDLE_S)
    return resident_mib(found.process.pid)[0]


def first_statuses(plane: ControlPlane, request: Mapping[str, Any], repetitions: int) -> list[FirstStatus]:
    """Apply a request under ever new names, one after the other."""
    user = KubeClient(configuration(plane.kubeconfig), "kubectl")
    return [_first_status(user, _named(request, f"first-{number}")) for number in range(repetitions)]


def under_load(plane: ControlPlane, request: Mapping[str, Any], requests: int) -> Load:
    """Make many requests and let one operator make their runs and Jobs; then start another one and look at it."""
    user = KubeClient(configuration(plane.kubeconfig), "kubectl")
    with operator(plane):
        before = len(user.list(JOB, NAMESPACE).items)
        started = time.monotonic()
        for number in range(requests):
            user.create(REQUEST, _named(request, f"many-{number}"))
        _wait(lambda: len(user.list(JOB, NAMESPACE).items) == before + requests)
        created_s = time.monotonic() - started
    started = time.monotonic()
    with operator(plane) as found:
        ready_s = time.monotonic() - started
        time.sleep(LOOK_S)
        _wait(lambda: found.metric("dgdr_reconcile_seconds_count") >= before + requests)
        time.sleep(IDLE_S)
        return Load(created_s, ready_s, *resident_mib(found.process.pid))


def _first_status(user: KubeClient, request: dict[str, Any]) -> FirstStatus:
    name = request["metadata"]["name"]
    started = time.perf_counter()
    user.apply(REQUEST, request)
    seen: dict[str, float] = {}
    while len(seen) < 4:  # noqa: PLR2004 - accepted, run, status and Job
        runs = [run for run in user.list(RUN, NAMESPACE).items if controller_name(run) == name]
        names = {run["metadata"]["name"] for run in runs}
        facts = {
            "accepted_s": (condition_of(user.get(REQUEST, NAMESPACE, name), "Accepted") or {}).get("status") == "True",
            "run_s": bool(runs),
            "run_status_s": any(condition_of(run, "Completed") for run in runs),
            "job_s": any(controller_name(job) in names for job in user.list(JOB, NAMESPACE).items),
        }
        now = time.perf_counter() - started
        seen |= {fact: now for fact, holds in facts.items() if holds and fact not in seen}
        if now > DEADLINE_S:
            raise RuntimeError(f"request {name} has only {sorted(seen)} after {now:.0f} s")
        time.sleep(ASK_S)
    return FirstStatus(**seen)


def _named(request: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {**request, "metadata": {"name": name, "namespace": NAMESPACE}}


def _wait(holds: Callable[[], bool]) -> None:
    def found() -> bool | None:
        time.sleep(LOOK_S)
        return holds() or None

    eventually(found, DEADLINE_S)
