"""The cluster itself: what the other tests take for granted of it, and that the own node comes back from any state."""

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.team import eventually
from tests.conftest import ROOT
from tests.controlplane.kubectl import Kubectl
from tests.controlplane.node import leftovers, machine
from tests.controlplane.node.cluster import Cluster
from tests.controlplane.process import wait_for_end

_numbers = itertools.count(1)

_WAITS = "import signal; signal.signal(signal.SIGTERM, lambda *_: exit()); print('waits', flush=True); signal.pause()"
_WHO_AM_I = """
import json, os, ssl, urllib.request
from pathlib import Path

credentials = Path("/credentials")
request = urllib.request.Request(
    "https://{KUBERNETES_SERVICE_HOST}:{KUBERNETES_SERVICE_PORT}".format(**os.environ)
    + "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    data=b'{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}',
    headers={
        "Authorization": "Bearer " + (credentials / "token").read_text(),
        "Content-Type": "application/json",
    },
)
trusted = ssl.create_default_context(cafile=credentials / "ca.crt")
with urllib.request.urlopen(request, context=trusted, timeout=20) as answer:
    print(json.load(answer)["status"]["userInfo"]["username"])
"""


@dataclass(frozen=True)
class Room:
    """A namespace that takes no pod but restricted ones."""

    cluster: Cluster
    kubectl: Kubectl
    namespace: str

    def run(self, name: str, code: str, restart: str = "Never") -> None:
        """Create a pod that runs Python, as PodSecurity ``restricted`` wants it."""
        container = {
            "name": "main",
            "image": self.cluster.images["publisher"],
            "imagePullPolicy": "IfNotPresent",
            "command": ["python3", "-c", code],
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            "volumeMounts": [{"name": "credentials", "mountPath": "/credentials", "readOnly": True}],
        }
        sources = [
            {"serviceAccountToken": {"path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        ]
        security = {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}}
        spec = {
            "restartPolicy": restart,
            "automountServiceAccountToken": False,
            "securityContext": security,
            "containers": [container],
            "volumes": [{"name": "credentials", "projected": {"sources": sources}}],
        }
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        eventually(self._account, "the service account of the namespace")
        self.kubectl("create", "-n", self.namespace, "-f", "-", input=json.dumps(pod))

    def _account(self) -> bool:
        done = self.kubectl("get", "serviceaccount", "default", "-n", self.namespace, check=False)
        return done.returncode == 0

    def status(self, name: str) -> dict[str, Any]:
        status: dict[str, Any] = json.loads(self("get", "pod", name, "-o", "json"))["status"]
        return status

    def until(self, name: str, reached: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        """Wait for a state of a pod and return it."""

        def found() -> dict[str, Any] | None:
            status = self.status(name)
            return status if reached(status) else None

        return eventually(found, f"pod {name}: {what}")

    def until_phase(self, name: str, phase: str) -> dict[str, Any]:
        return self.until(name, lambda status: status["phase"] == phase, phase)

    def __call__(self, *arguments: str) -> str:
        return self.kubectl("-n", self.namespace, *arguments).stdout


@pytest.fixture
def room(cluster: Cluster, make_kubectl: Callable[[Path], Kubectl]) -> Iterator[Room]:
    """A fresh namespace."""
    kubectl = make_kubectl(cluster.kubeconfig)
    made = _make_room(cluster, kubectl)
    yield made
    kubectl("delete", "namespace", made.namespace, "--wait=false", "--ignore-not-found")


def _make_room(cluster: Cluster, kubectl: Kubectl) -> Room:
    name = f"dgdr-node-{os.getpid()}-{next(_numbers)}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    kubectl("create", "-f", "-", input=json.dumps(namespace))
    return Room(cluster, kubectl, name)


@pytest.fixture
def own(cluster: Cluster) -> Cluster:
    """The node of this machine."""
    if not cluster.own:
        pytest.skip("kills or starts the node itself: needs a node of the tests' own")
    return cluster


def _up() -> Path:
    """Run the command ``up`` and return the kubeconfig that it prints."""
    command = [sys.executable, "-m", "tests.controlplane.node", "up"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


def _state() -> machine.State:
    state = machine.status()
    assert state is not None
    return state


@pytest.mark.renews_cluster
def test_a_node_starts_where_everything_was_killed(own: Cluster, room: Room) -> None:
    room.run("orphan", _WAITS)
    room.until_phase("orphan", "Running")
    before = _state()
    own.renew()
    assert not set(before.pids.values()) & set(_state().pids.values())
    assert not any("pause()" in command for _, command in leftovers.NODE.processes())
    assert "NotFound" in room.kubectl("get", "namespace", room.namespace, check=False).stderr
    again = _make_room(own, room.kubectl)
    again.run("whoami", _WHO_AM_I)
    again.until_phase("whoami", "Succeeded")
    again.kubectl("delete", "namespace", again.namespace, "--wait=false")


def test_a_restricted_pod_reaches_the_api_server_with_its_token(room: Room) -> None:
    room.run("whoami", _WHO_AM_I)
    room.until("whoami", lambda status: status["phase"] in {"Succeeded", "Failed"}, "an end")
    assert room("logs", "whoami") == f"system:serviceaccount:{room.namespace}:default\n"
    assert room.status("whoami")["phase"] == "Succeeded"


def test_logs_and_exec_reach_a_running_pod(room: Room) -> None:
    room.run("waits", _WAITS)
    room.until_phase("waits", "Running")
    eventually(lambda: room("logs", "waits") == "waits\n", "the line that the pod wrote")
    assert room("exec", "waits", "--", "python3", "-c", "import os; print(os.getuid())") == "65532\n"


def test_a_pod_of_the_restricted_namespace_may_not_be_root(room: Room) -> None:
    refused = room.kubectl("run", "root", "--image=any", "-n", room.namespace, check=False)
    assert 'violates PodSecurity "restricted:latest"' in refused.stderr


def test_up_leaves_a_running_node_alone(own: Cluster) -> None:
    before = _state()
    assert _up() == own.kubeconfig
    assert _state() == before


def test_a_killed_container_starts_again(own: Cluster, room: Room) -> None:
    room.run("waits", _WAITS, restart="Always")
    first = room.until_phase("waits", "Running")["containerStatuses"][0]["containerID"]
    own.kill_container(room.namespace, "waits", "main")
    restarted = room.until("waits", lambda status: status["containerStatuses"][0]["restartCount"] == 1, "a restart")
    container = restarted["containerStatuses"][0]
    assert container["containerID"] != first
    assert container["lastState"]["terminated"]["exitCode"] == 128 + signal.SIGKILL
    with pytest.raises(ProcessLookupError, match=f"container none of pod {room.namespace}/waits does not run"):
        own.kill_container(room.namespace, "waits", "none")


def test_the_api_server_comes_back_with_its_data_and_its_address(own: Cluster, room: Room) -> None:
    before = _state()
    own.kill_api_server()
    assert _state().pids == {**before.pids, "kube-apiserver": None}
    refused = room.kubectl("get", "namespace", room.namespace, check=False)
    assert refused.returncode != 0
    own.start_api_server()
    assert room.kubectl("get", "namespace", room.namespace, "-o", "name").stdout == f"namespace/{room.namespace}\n"
    assert {**_state().pids, "kube-apiserver": None} == {**before.pids, "kube-apiserver": None}


def test_pods_survive_the_death_of_kubelet_and_containerd(own: Cluster, room: Room) -> None:
    room.run("survives", _WAITS)
    before = room.until_phase("survives", "Running")
    pids = _state().pids
    for name in ("kubelet", "containerd"):
        pid = pids[name]
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        wait_for_end(pid, 10)
    assert _up() == own.kubeconfig
    room.run("whoami", _WHO_AM_I)
    room.until_phase("whoami", "Succeeded")
    assert room.status("survives")["containerStatuses"] == before["containerStatuses"]
