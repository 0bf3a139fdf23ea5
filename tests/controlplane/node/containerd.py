"""containerd of the node: own root, own state, own socket, so that it stands beside any other one."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.controlplane.node import layout
from tests.controlplane.node.command import run
from tests.controlplane.node.errors import CommandError
from tests.controlplane.node.packages import find, search_path
from tests.controlplane.process import Process

_DEADLINE_S = 30.0
_IMPORT_TIMEOUT_S = 600.0
_NAMESPACE = "k8s.io"


def configuration() -> str:
    """Return containerd's configuration file."""
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    values: dict[str, dict[str, Any]] = {
        "": {
            "version": 2,
            "root": str(layout.CONTAINERD_ROOT),
            "state": str(layout.CONTAINERD_STATE),
            "disabled_plugins": ["io.containerd.internal.v1.opt"],  # it would write to /opt
        },
        "grpc": {"address": str(layout.CONTAINERD_SOCKET)},
        cri: {
            "sandbox_image": layout.PAUSE_IMAGE,
            "restrict_oom_score_adj": True,  # root of a container or of a small VM may not lower the score
            "netns_mounts_under_state_dir": True,
        },
        f"{cri}.cni": {"bin_dir": "/usr/lib/cni", "conf_dir": str(layout.CNI / "net.d")},
        f"{cri}.containerd": {"snapshotter": "overlayfs"},
        f"{cri}.containerd.runtimes.runc": {"runtime_type": "io.containerd.runc.v2"},
        f"{cri}.containerd.runtimes.runc.options": {"Root": str(layout.CONTAINERD_STATE / "runc")},
    }
    return "".join(
        "".join([f"[{table}]\n" if table else "", *(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())])
        for table, keys in values.items()
    )


def describe() -> Process:
    """Write the configuration and describe the process."""
    layout.CONTAINERD.mkdir()
    file = layout.CONTAINERD / "config.toml"
    file.write_text(configuration(), "utf-8")
    # With the search path of an administrator: it looks for runc, mount and iptables itself.
    command = ["/usr/bin/env", f"PATH={search_path()}", str(find("containerd")), f"--config={file}"]
    return Process("containerd", command, layout.LOGS / "containerd.log")


def wait_until_ready(process: Process) -> None:
    """Wait until containerd answers.

    Raises:
        StartError: it ended, or the deadline passed.
    """
    process.wait_until(_missing, _DEADLINE_S)


def _missing() -> str | None:
    try:
        status = ctr("plugins", "list", "id==cri")
    except CommandError as error:
        return str(error)
    return None if " ok" in status else status


def ctr(*arguments: str | Path, timeout_s: float = 60.0) -> str:
    """Run containerd's client on the node's images and containers and return its output.

    Raises:
        CommandError: it ended with an error.
    """
    return run(
        "ctr",
        f"--address={layout.CONTAINERD_SOCKET}",
        f"--namespace={_NAMESPACE}",
        *arguments,
        environ={"PATH": search_path()},
        timeout_s=timeout_s,
    )


def load(archive: Path) -> None:
    """Load the images of a ``docker save`` file."""
    ctr("images", "import", archive, timeout_s=_IMPORT_TIMEOUT_S)


def images() -> Sequence[str]:
    """Names of the images that are loaded."""
    return ctr("images", "list", "--quiet").split()


def main_process(namespace: str, pod: str, container: str) -> int:
    """Process id, on this machine, of the main process of a pod's container.

    Raises:
        CommandError: containerd does not answer.
        ProcessLookupError: the container does not run.
    """
    labels = {"pod.namespace": namespace, "pod.name": pod, "container.name": container}
    chosen = ",".join(f'labels."io.kubernetes.{label}"=={value}' for label, value in labels.items())
    attempts = ctr("containers", "list", "--quiet", chosen).split()
    for line in ctr("tasks", "list").splitlines()[1:]:
        task, pid, status = line.split()
        if task in attempts and status == "RUNNING":
            return int(pid)
    raise ProcessLookupError(f"container {container} of pod {namespace}/{pod} does not run")
