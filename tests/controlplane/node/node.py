"""A node from nothing to Ready, and to nothing again."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.controlplane.node import components, containerd, layout, leftovers, network, pause, sysctls
from tests.controlplane.node.errors import NodeError
from tests.controlplane.plane import BINARIES as PLANE_BINARIES
from tests.controlplane.plane import SERVICE_HOST, ControlPlane, not_ok, start_control_plane
from tests.controlplane.process import Process, StartError

BINARIES = (*PLANE_BINARIES, *components.BINARIES, "pause")
"""What a node is made of, by the names of ``build.MODULES``."""

_NODE_PATH = f"/api/v1/nodes/{layout.NODE}"
_KUBELET_PATH = f"{_NODE_PATH}/proxy/healthz"
"""The kubelet itself, by the way that logs and exec take: the node's conditions outlive a killed kubelet a while."""
_ACCOUNT_PATH = "/api/v1/namespaces/default/serviceaccounts/default"
_DEADLINE_S = 90.0
_OTHER_LINES = 6
Report = Callable[[str], None]


@dataclass(frozen=True)
class Node:
    """A running node. Its processes may be killed at any time; ``ensure`` starts what has ended."""

    plane: ControlPlane
    containerd: Process
    components: list[Process]
    binaries: Mapping[str, Path]

    @property
    def processes(self) -> list[Process]:
        """Every process, in the order in which they start."""
        return [self.plane.etcd, self.plane.apiserver, self.containerd, *self.components]

    def ensure(self, report: Report) -> None:
        """Start what does not run and wait until pods can run.

        Raises:
            StartError: a process ended or the deadline passed; the message carries the last lines of its log.
            NodeError: the node is not ready in time; the message carries the last lines of every log.
            CommandError: containerd does not take the pause image.
        """
        _start([self.plane.etcd, self.plane.apiserver, self.containerd], report)
        self.plane.wait_until_ready()
        containerd.wait_until_ready(self.containerd)
        _start(self.components, report)  # a kubelet that finds no containerd ends
        if layout.PAUSE_IMAGE not in containerd.images():
            containerd.load(pause.archive(self.binaries["pause"], layout.CONTAINERD / "pause.tar"))
        report("waiting for the node")
        try:
            self._wait()
        except StartError as error:
            logs = [
                f"last lines of {process.log.name}:\n{process.log_tail(_OTHER_LINES)}" for process in self.processes
            ]
            raise NodeError("\n".join([str(error), *logs])) from error

    def _wait(self) -> None:
        proxy, kubelet = self.components[-2:]
        kubelet.wait_until(self._node_missing, _DEADLINE_S)
        service = f"https://{SERVICE_HOST}:443"
        proxy.wait_until(lambda: not_ok(lambda: self.plane.get("/readyz", service), service), _DEADLINE_S)

    def _node_missing(self) -> str | None:
        """Return what keeps pods from running, or None."""
        for path in (_NODE_PATH, _KUBELET_PATH, _ACCOUNT_PATH):
            if (missing := not_ok(partial(self.plane.get, path), path)) is not None:
                return missing
        return node_missing(json.loads(self.plane.get(_NODE_PATH)[1]))


def _start(processes: Sequence[Process], report: Report) -> None:
    for process in processes:
        if not process.running:
            report(f"starting {process.name}")
            process.start()


def node_missing(node: Mapping[str, Any]) -> str | None:
    """Return what keeps pods from this node, given its object, or None."""
    ready = [condition for condition in node["status"].get("conditions", []) if condition["type"] == "Ready"]
    if not ready:
        return "the node has not told its state"
    if ready[0]["status"] != "True":
        return f"the node is not ready: {ready[0].get('message')}"
    if taints := [taint["key"] for taint in node["spec"].get("taints", [])]:
        return f"the node is tainted: {', '.join(taints)}"
    return None


@contextmanager
def run_node(binaries: Mapping[str, Path], report: Report) -> Iterator[Node]:
    """Run a node; at the end nothing of it is left. What an earlier run left is removed first.

    Args:
        binaries: path of each of ``BINARIES``.
        report: receives a line for each step.

    Raises:
        LeftoverError: what an earlier run left cannot be removed.
        StartError, NodeError: see ``Node.ensure``.
    """
    report("removing what an earlier run left, if anything")
    leftovers.remove()
    with ExitStack() as stack:
        stack.callback(leftovers.remove)
        for directory in (layout.ROOT, layout.CONTROL_PLANE, layout.LOGS):
            directory.mkdir(mode=0o755)
        sysctls.save()
        network.write_cni_configuration()
        network.create_bridge()
        report("starting etcd and kube-apiserver")
        plane = stack.enter_context(_start_plane(binaries))
        node = Node(plane, containerd.describe(), components.describe(binaries, plane), binaries)
        for process in node.processes:
            stack.callback(process.kill)  # nothing of it is kept, so nothing need end in order
        node.ensure(report)
        layout.KUBECONFIG.write_bytes(plane.kubeconfig.read_bytes())
        yield node


def _start_plane(binaries: Mapping[str, Path]) -> AbstractContextManager[ControlPlane]:
    arguments = [
        "--bind-address=0.0.0.0",
        f"--advertise-address={layout.ADDRESS}",
        *components.kubelet_client_arguments(layout.CONTROL_PLANE),
    ]
    return start_control_plane(
        binaries, hosts=[layout.ADDRESS], apiserver_arguments=arguments, directory=layout.CONTROL_PLANE
    )
