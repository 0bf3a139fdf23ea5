"""A real API server with our kinds and Dynamo's, and the command as a user calls it on that."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from dgdr_cli.app import app
from dgdr_cli.cluster.kinds import CANDIDATE, DGD, REQUEST, RUN
from dgdr_kube.client import KubeClient, configuration
from dgdr_kube.errors import KubeError
from typer.testing import CliRunner, Result

from tests.cli.cluster.world import World
from tests.cluster.promotion import dynamo_crd
from tests.conftest import ROOT
from tests.controlplane.kubectl import Kubectl
from tests.publisher.waiting import until

PROGRAM = "from dgdr_cli.main import kubectl_main; kubectl_main()"
LIMIT_S = 60

Ask = Callable[..., Result]


def install_kinds(kubectl: Kubectl, kubeconfig: Path, dynamo: Path) -> None:
    """Install our kinds and Dynamo's, and wait until their storage answers: that is a moment later."""
    for file in (*sorted((ROOT / "crds").glob("*.yaml")), dynamo):
        kubectl.install_crds(file)
    client = KubeClient(configuration(kubeconfig), "dgdr-tests")

    def answers() -> bool:
        try:
            return all(client.list(kind, "default").resource_version for kind in (REQUEST, RUN, CANDIDATE, DGD))
        except KubeError:
            return False

    until(answers, "lists of all kinds")


def world_of(kubeconfig: Path, namespace: str) -> World:
    user, operator, publisher = (
        KubeClient(configuration(kubeconfig), manager) for manager in ("test", "dgdr-operator", "dgdr-publisher")
    )
    return World(namespace, user, operator, publisher)


@pytest.fixture(scope="session")
def kinds(kubectl: Kubectl, kubeconfig: Path) -> None:
    install_kinds(kubectl, kubeconfig, dynamo_crd())


@pytest.fixture
def world(kinds: None, kubeconfig: Path, namespace: str) -> World:
    return world_of(kubeconfig, namespace)


@pytest.fixture
def ask(kinds: None, kubeconfig: Path, namespace: str) -> Ask:
    """Run a command on the tests' cluster, in this process."""

    def asked(command: str, *arguments: object, namespace: str = namespace, kubeconfig: Path = kubeconfig) -> Result:
        where = ["--kubeconfig", str(kubeconfig), "-n", namespace]
        return CliRunner().invoke(app, [command, *map(str, arguments), *where])

    return asked


@dataclass
class Running:
    """A command as a process, read line by line: each line is a moment that a test can wait for."""

    process: "subprocess.Popen[str]"

    def line(self) -> str:
        """Wait for the next line of its output; empty: it has ended."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def end(self) -> tuple[int, str, str]:
        """Wait for its end: exit code, the rest of its output, and its errors."""
        output, errors = self.process.communicate(timeout=LIMIT_S)
        assert "Traceback" not in errors
        return self.process.returncode, output, errors


Start = Callable[..., Running]


@pytest.fixture
def start(kinds: None, kubeconfig: Path, namespace: str) -> Iterator[Start]:
    """Start a command on the tests' cluster as a process of its own, as kubectl's plugin."""
    started: list[subprocess.Popen[str]] = []

    def begin(*arguments: object, namespace: str = namespace, kubeconfig: Path = kubeconfig) -> Running:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *map(str, arguments), "-n", namespace],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"KUBECONFIG": str(kubeconfig)},
        )
        started.append(process)
        return Running(process)

    yield begin
    for process in started:
        process.kill()
        process.communicate()
