"""The cluster that the tests run on: our own node with our images, or the user's cluster with his.

A test does not care which; a test of faults asks for ``own``, since only the own node's processes can be killed.
"""

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.build import ensure_binaries
from tests.controlplane.fixture import user_kubeconfig
from tests.controlplane.node import containerd, machine
from tests.controlplane.node.errors import NodeError, UnavailableError
from tests.controlplane.node.images import TARGETS, Images, build_images, load_images
from tests.controlplane.node.machine import Report
from tests.controlplane.process import wait_for_end

IMAGES_VARIABLE = "DGDR_TEST_IMAGES"
"""Environment variable that names the images in the user's cluster, such as ``dgdr-{target}:dev``."""

_API_SERVER = "kube-apiserver"
_END_DEADLINE_S = 20.0


@dataclass(frozen=True)
class Cluster:
    """A cluster with our images.

    Args:
        kubeconfig: how to reach it, as an administrator.
        images: the image of each target, such as ``{"operator": "dgdr-operator:0a1b2c"}``.
        helm: the helm binary.
        own: whether it is the node of this machine; the methods below work on that one alone.
        archive: file of the images, from which the own node loads them.
    """

    kubeconfig: Path
    images: Mapping[str, str]
    helm: Path
    own: bool
    archive: Path | None = None

    def kill_container(self, namespace: str, pod: str, container: str) -> None:
        """End the main process of a container by SIGKILL and wait for its end, as the kernel does out of memory.

        Raises:
            ProcessLookupError: the container does not run.
            NodeError: the cluster is not our own.
        """
        self._require_own()
        pid = containerd.main_process(namespace, pod, container)
        os.kill(pid, signal.SIGKILL)
        wait_for_end(pid, _END_DEADLINE_S)

    def kill_api_server(self) -> None:
        """End kube-apiserver by SIGKILL; etcd, controllers and node go on without it.

        Raises:
            NodeError: it does not run, or the cluster is not our own.
        """
        pid = self._state().pids[_API_SERVER]
        if pid is None:
            raise NodeError(f"{_API_SERVER} does not run")
        os.kill(pid, signal.SIGKILL)
        wait_for_end(pid, _END_DEADLINE_S)

    def start_api_server(self) -> None:
        """Start what has ended, kube-apiserver with the same port and the same data, and wait until it serves.

        Raises:
            NodeError: it does not start, or the cluster is not our own.
        """
        self._state()
        machine.up(lambda _: None)

    def renew(self) -> None:
        """End everything of the node by SIGKILL, as a machine that crashes, and begin another with the images.

        Its kubeconfig stands at the same place; of the objects none is left.

        Raises:
            NodeError: it does not start, or the cluster is not our own.
        """
        before = self._state()
        machine.kill(before)
        machine.up(lambda _: None, tied=before.tied)
        self.load(lambda _: None)

    def load(self, report: Report) -> None:
        """Load the images into the own node, unless they are there."""
        if self.archive is not None:
            load_images(Images(self.images, self.archive), report)

    def _state(self) -> machine.State:
        self._require_own()
        if (state := machine.status()) is None:
            raise NodeError("the node has ended")
        return state

    def _require_own(self) -> None:
        if not self.own:
            raise NodeError("this is the user's cluster: a test that kills its processes must ask for `own` first")


@contextmanager
def provide_cluster(environ: Mapping[str, str], report: Report) -> Iterator[Cluster]:
    """Give the user's cluster when a variable names one, else our own node, with our images, until the end.

    A node that runs already (``python -m tests.controlplane.node up``) is used and goes on running.

    Raises:
        UnavailableError: this machine cannot run a node, or the user's images have no name.
        ControlPlaneError: something does not build or start.
    """
    given = user_kubeconfig(environ)
    helm = ensure_binaries(["helm"])["helm"]
    if given is not None:
        yield Cluster(given[1], user_images(environ), helm, own=False)
        return
    machine.require_machine()
    images = build_images(report)
    ran_before = machine.status() is not None
    try:
        state = machine.up(report, tied=True)
        cluster = Cluster(state.kubeconfig, images.names, helm, own=True, archive=images.archive)
        cluster.load(report)
        yield cluster
    finally:
        if not ran_before:
            machine.down(report)


def user_images(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the image of each target in the user's cluster.

    Raises:
        UnavailableError: the variable that names them is not set, or names one image for all.
    """
    value = environ.get(IMAGES_VARIABLE, "")
    if "{target}" not in value:
        raise UnavailableError(
            f"{IMAGES_VARIABLE}={value} does not name the images of the given cluster: build them, load them "
            f"(kind load docker-image), and set {IMAGES_VARIABLE}='dgdr-{{target}}:TAG'"
        )
    return {target: value.replace("{target}", target) for target in TARGETS}
