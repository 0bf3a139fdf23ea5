"""The programs of a search's pod as processes of this machine: sweeper, publisher or sink, on a workspace of their own.

As in a pod, the publisher's socket is there before the sweeper starts, and the disk cache lies in the workspace, empty.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dgdr_api.base import wire
from dgdr_api.canonical import canonical_json
from dgdr_api.run import DynamoGraphDeploymentRun

BIN = Path(sys.executable).parent
ATTEMPT = "attempt-1"
SAMPLE_S = 0.05
START_S, POLL_S = 60.0, 0.005
_TICKS = os.sysconf("SC_CLK_TCK")
_KIB, _MIB = 1024, 1024**2


@dataclass(frozen=True)
class Search:
    """One search of the sweeper, in seconds from the start of its process."""

    found_s: float
    """Until search.completed stands in the sweeper's journal."""
    acknowledged_s: float
    """Until the process has ended: its end is acknowledged, and with a publisher the cluster holds the final state."""
    helper_cpu_s: float
    """CPU seconds that the publisher, or the sink, spent from the sweeper's start on."""


@dataclass(frozen=True)
class Memory:
    """Peak resident memory of the processes of a pod, MiB."""

    sweeper: float
    engine: float
    publisher: float


class Pod:
    """A workspace, the run's file in it, and whoever listens on the socket."""

    def __init__(self, run: DynamoGraphDeploymentRun, kubeconfig: Path, workspace: Path) -> None:
        self._run, self._kubeconfig, self.workspace = run, kubeconfig, workspace
        self._helper: subprocess.Popen[bytes] | None = None
        self._run_file = workspace / "run.json"
        self._run_file.write_text(canonical_json({key: value for key, value in wire(run).items() if key != "status"}))

    def start_sink(self) -> float:
        """Start what acknowledges everything; returns the seconds until its socket was there."""
        return self._start([sys.executable, "-m", "benchmarks.cluster_sink", str(self.workspace / "publisher.sock")])

    def start_publisher(self) -> float:
        """Start the publisher; returns the seconds until its socket was there."""
        meta = self._run.metadata
        names = ["--run-name", meta.name, "--namespace", meta.namespace]
        return self._start(
            [str(BIN / "dgdr-publisher"), *names, "--workspace", str(self.workspace), "--attempt", ATTEMPT]
        )

    def search(self) -> Search:
        """Run the sweeper to its end.

        Raises:
            RuntimeError: it ends with another code than 0.
        """
        assert self._helper is not None  # noqa: S101 - a mistake of this program, not of a user
        before = _cpu_s(self._helper.pid)
        started = time.time()
        code = self._sweeper().wait()
        ended = time.time()
        self._check(code)
        journalled = (self.workspace / "sweeper" / f"{ATTEMPT}.ndjson").stat().st_mtime
        return Search(journalled - started, ended - started, _cpu_s(self._helper.pid) - before)

    def watched_search(self) -> Memory:
        """Run the sweeper to its end and look at the memory of all processes meanwhile; its time is no measure."""
        assert self._helper is not None  # noqa: S101 - as above
        sweeper = self._sweeper()
        peaks = {"sweeper": 0.0, "engine": 0.0, "publisher": 0.0}
        while sweeper.poll() is None:
            found = {"sweeper": sweeper.pid, "engine": _child_of(sweeper.pid), "publisher": self._helper.pid}
            for name, pid in found.items():
                peaks[name] = max(peaks[name], _mib(pid, "VmHWM"))
            time.sleep(SAMPLE_S)
        self._check(sweeper.wait())
        return Memory(**peaks)

    def engine_alone(self) -> float:
        """Run the engine without its parent, its events to /dev/null; returns the seconds to the end of the process."""
        with Path(os.devnull).open("wb") as nowhere:
            command = [sys.executable, "-m", "dgdr_job.main.child", "--run", str(self._run_file), "--events-fd"]
            started = time.time()
            code = self._run_program([*command, str(nowhere.fileno())], "engine", (nowhere.fileno(),)).wait()
            ended = time.time()
        self._check(code)
        return ended - started

    def stop(self) -> None:
        """End who listens."""
        if self._helper is not None:
            self._helper.terminate()
            self._helper.wait()

    def _start(self, command: Sequence[str]) -> float:
        started = time.time()
        self._helper = self._run_program(command, "helper")
        socket = self.workspace / "publisher.sock"
        while not socket.is_socket():
            self._check(self._helper.poll() or 0)
            if time.time() > started + START_S:
                self._check(-1)
            time.sleep(POLL_S)
        return time.time() - started

    def _sweeper(self) -> subprocess.Popen[bytes]:
        command = ["--run", str(self._run_file), "--workspace", str(self.workspace), "--attempt", ATTEMPT]
        return self._run_program([str(BIN / "dgdr-sweeper"), *command], "sweeper")

    def _run_program(self, command: Sequence[str], name: str, fds: Sequence[int] = ()) -> subprocess.Popen[bytes]:
        environment = {"KUBECONFIG": str(self._kubeconfig), "DGDR_CACHE_DIR": str(self.workspace / "cache")}
        with (self.workspace / f"{name}.out").open("wb") as log:
            return subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment},
                pass_fds=fds,
            )

    def _check(self, code: int) -> None:
        if code:
            logs = "\n".join(path.read_text()[-2000:] for path in sorted(self.workspace.glob("*.out")))
            raise RuntimeError(f"a search ended with {code}:\n{logs}")


@contextmanager
def pod(run: DynamoGraphDeploymentRun, kubeconfig: Path) -> Iterator[Pod]:
    """A workspace with a short path, since a socket's may have 107 characters; its programs end with it."""
    workspace = Path(tempfile.mkdtemp(prefix="dgdr-pod-"))
    made = Pod(run, kubeconfig, workspace)
    try:
        yield made
    finally:
        made.stop()
        shutil.rmtree(workspace, ignore_errors=True)


def resident_mib(pid: int) -> tuple[float, float]:
    """Resident memory of a process and its peak, MiB."""
    return _mib(pid, "VmRSS"), _mib(pid, "VmHWM")


def _mib(pid: int | None, field: str) -> float:
    """A field of /proc/PID/status in MiB; 0 where there is no such process."""
    if pid is None:
        return 0.0
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return next((int(line.split()[1]) * _KIB / _MIB for line in lines if line.startswith(f"{field}:")), 0.0)


def _child_of(pid: int) -> int | None:
    found = Path(f"/proc/{pid}/task").glob("*/children")
    try:
        return next((int(child) for path in found for child in path.read_text().split()), None)
    except (FileNotFoundError, ProcessLookupError):
        return None


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
