"""A real API server with our CRDs, operators as processes on it, and hands in place of the controllers it lacks."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from dgdr_kube.client import KubeClient, configuration

from tests.controlplane.kubectl import Kubectl
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Process
from tests.operator.hands import Hands, OperatorProcess

CRDS = Path(__file__).resolve().parents[2] / "crds"
StartOperator = Callable[..., OperatorProcess]


@pytest.fixture(scope="session")
def install(make_kubectl: Callable[[Path], Kubectl]) -> Callable[[ControlPlane], Kubectl]:
    def installed(plane: ControlPlane) -> Kubectl:
        kubectl = make_kubectl(plane.kubeconfig)
        for file in sorted(CRDS.glob("*.yaml")):
            kubectl.install_crds(file)
        return kubectl

    return installed


@pytest.fixture(scope="session")
def start_operator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartOperator]:
    """Start operators; all are ended with the session, most by the test that started them."""
    with ExitStack() as stack:

        def start(plane: ControlPlane, name: str, *settings: str) -> OperatorProcess:
            log = tmp_path_factory.mktemp("operator") / f"{name}.log"
            process = Process(name, _command(plane, name, settings), log)
            stack.callback(process.stop)
            process.start()
            return OperatorProcess(process)

        yield start


@pytest.fixture(scope="module")
def hands(
    control_plane: ControlPlane, install: Callable[[ControlPlane], Kubectl], start_operator: StartOperator
) -> Iterator[Hands]:
    """An API server with one operator on it, for every test of a module."""
    kubectl = install(control_plane)
    operator = start_operator(control_plane, "operator", "DGDR_LEADER_ELECTION=false")
    operator.wait_until_ready()
    yield Hands(kubectl, client(control_plane, "test"), operator)
    operator.process.stop()


def client(plane: ControlPlane, manager: str) -> KubeClient:
    return KubeClient(configuration(plane.kubeconfig), manager)


def _command(plane: ControlPlane, name: str, settings: Sequence[str]) -> list[str]:
    env = shutil.which("env")
    assert env is not None
    given = [
        f"KUBECONFIG={plane.kubeconfig}",
        "DGDR_SWEEPER_IMAGE=example.org/sweeper:1",
        "DGDR_PUBLISHER_IMAGE=example.org/publisher:1",
        "DGDR_HTTP_PORT=0",
        f"DGDR_IDENTITY={name}",
        f"PATH={os.environ['PATH']}",
        *settings,
    ]
    return [env, "-i", *given, sys.executable, "-m", "dgdr_operator"]
