"""Publisher and sweeper as the programs that they are, on a run in a real API server."""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from dgdr_api.base import wire
from dgdr_api.canonical import canonical_json
from dgdr_api.group import LABEL_RUN_UID
from dgdr_api.run import DynamoGraphDeploymentRun
from dgdr_api.run_object import run_of
from dgdr_cli.requests import admitted
from dgdr_kube.client import KubeClient
from dgdr_publisher.cluster.kinds import CANDIDATE, RUN

from tests.conftest import ROOT
from tests.controlplane.process import Process
from tests.publisher.waiting import DEADLINE_S, until


class Program(Process):
    """A process with its exit code."""

    def end(self, deadline_s: float = DEADLINE_S) -> int:
        """Wait for its end and return the exit code."""
        assert self._child is not None
        return self._child.wait(deadline_s)

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)


@dataclass
class Pod:
    """What shares a workspace: the two programs of one attempt."""

    kube: KubeClient
    run: DynamoGraphDeploymentRun
    workspace: Path
    kubeconfig: Path
    attempt: str = "attempt-1"
    programs: list[Program] = field(default_factory=list)

    def publisher(self) -> Program:
        meta = self.run.metadata
        return self._program(
            "publisher",
            *("-m", "dgdr_publisher.service.main", "--run-name", meta.name, "--namespace", meta.namespace),
            *("--workspace", str(self.workspace), "--attempt", self.attempt),
        )

    def sweeper(self, *, spec_alone: bool = False, **environment: str) -> Program:
        path = self.workspace / "run.json"
        run = wire(self.run)
        run.pop("status", None)
        path.write_text(canonical_json(run["spec"] if spec_alone else run))
        arguments = ("--run", str(path), "--workspace", str(self.workspace), "--attempt", self.attempt)
        return self._program("sweeper", "-m", "dgdr_job.main.process", *arguments, **environment)

    def _program(self, name: str, *command: str, **environment: str) -> Program:
        settings = {"KUBECONFIG": str(self.kubeconfig), **environment}
        values = [f"{key}={value}" for key, value in settings.items()]
        program = Program(name, ["/usr/bin/env", *values, sys.executable, *command], self.workspace / f"{name}.out")
        program.start()
        self.programs.append(program)
        return program

    def await_socket(self) -> None:
        def there() -> bool:
            assert self.programs[0].running, self.log("publisher")
            return (self.workspace / "publisher.sock").is_socket()

        until(there, "the publisher's socket")

    @property
    def status(self) -> dict[str, Any]:
        meta = self.run.metadata
        return dict(self.kube.get(RUN, meta.namespace, meta.name).get("status") or {})

    @property
    def candidates(self) -> dict[str, dict[str, Any]]:
        meta = self.run.metadata
        found = self.kube.list(CANDIDATE, meta.namespace, label_selector=f"{LABEL_RUN_UID}={meta.uid}").items
        return {item["metadata"]["name"]: item for item in found}

    @property
    def versions(self) -> dict[str, str]:
        """Resource version of the run and of each candidate: nobody wrote them in between when they are equal."""
        meta = self.run.metadata
        items = [self.kube.get(RUN, meta.namespace, meta.name), *self.candidates.values()]
        return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in items}

    @property
    def journal(self) -> bytes:
        """What the publisher journalled."""
        return _bytes(self.workspace / "publisher" / "events.ndjson")

    @property
    def sweeper_journal(self) -> bytes:
        """What the sweeper journalled."""
        return _bytes(self.workspace / "sweeper" / f"{self.attempt}.ndjson")

    def log(self, name: str) -> str:
        return (self.workspace / f"{name}.out").read_text()


def request_file(folder: Path, namespace: str, example: str = "qwen3-32b") -> Path:
    """An example as a request in a namespace."""
    document = yaml.safe_load((ROOT / "examples" / f"{example}.yaml").read_text())
    document["metadata"]["namespace"] = namespace
    path = folder / "request.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def create(operator: KubeClient, request: Path) -> DynamoGraphDeploymentRun:
    """The run of a request in the cluster, as the operator makes it."""
    asked = admitted(request)
    body = wire(run_of(asked.request, asked.spec))
    body["metadata"].pop("uid")
    return DynamoGraphDeploymentRun.model_validate(operator.create(RUN, body))


@contextmanager
def pod(kube: KubeClient, run: DynamoGraphDeploymentRun, kubeconfig: Path, attempt: str = "attempt-1") -> Iterator[Pod]:
    """A workspace with a short path, since a socket's may have 107 characters; its programs end with it."""
    workspace = Path(tempfile.mkdtemp(prefix="dgdr-pod-"))
    made = Pod(kube, run, workspace, kubeconfig, attempt)
    try:
        yield made
    finally:
        for program in made.programs:
            if program.running:
                os.kill(program.pid, signal.SIGCONT)
            program.stop()
        shutil.rmtree(workspace, ignore_errors=True)


def engine_of(sweeper: Program) -> int | None:
    """Process id of the engine below a sweeper, when there is one."""
    found = Path(f"/proc/{sweeper.pid}/task").glob("*/children")
    children = [int(pid) for path in found for pid in path.read_text().split()]
    return next((pid for pid in children if b"dgdr_job.main.child" in Path(f"/proc/{pid}/cmdline").read_bytes()), None)


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""
