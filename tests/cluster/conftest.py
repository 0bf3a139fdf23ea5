"""The chart on a real cluster, once for all tests, and a fresh namespace with PodSecurity ``restricted`` for each."""

import itertools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from dgdr_kube.client import KubeClient, configuration

from tests.cluster.install import Installation
from tests.cluster.laptop import Laptop, search
from tests.cluster.promotion import Dynamo, dynamo_crd
from tests.cluster.team import Team, document
from tests.controlplane.kubectl import Kubectl
from tests.controlplane.node.cluster import Cluster

LARGE = ("qwen3-32b", ("hardware.gpu.budget", 65536))
"""A search of many seconds whose first branch is done at once: time enough to hold it with candidates published."""
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def installation(cluster: Cluster, make_kubectl: Callable[[Path], Kubectl]) -> Iterator[Installation]:
    """The chart, installed with two replicas of the operator."""
    made = Installation(cluster, make_kubectl(cluster.kubeconfig))
    made.upgrade()
    yield made
    made.uninstall()


@pytest.fixture
def team(installation: Installation) -> Iterator[Team]:
    """A user in a fresh namespace that takes no pod but restricted ones."""
    kubectl = installation.kubectl
    name = f"dgdr-team-{os.getpid()}-{next(_numbers)}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    kubectl("create", "-f", "-", input=json.dumps(namespace))
    yield Team(kubectl, KubeClient(configuration(installation.cluster.kubeconfig), "kubectl"), name)
    kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")


@pytest.fixture(scope="session")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Laptop]:
    """Search on this machine, each request once: ``laptop("qwen3-32b", (path, value), …)``."""
    known: dict[str, Laptop] = {}

    def searched(example: str, *changes: tuple[str, object]) -> Laptop:
        asked = document(example, *changes)
        key = yaml.safe_dump(asked)
        if key not in known:
            known[key] = search(asked, tmp_path_factory.mktemp("laptop"))
        return known[key]

    return searched


@pytest.fixture(scope="session")
def dynamo(installation: Installation) -> Dynamo:
    """The cluster with Dynamo's CRD: the real one where it is at hand, else a small one of the same name."""
    installation.kubectl.install_crds(dynamo_crd())
    return Dynamo(installation.cluster.kubeconfig, installation.kubectl.executable)
