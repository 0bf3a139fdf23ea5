"""Remove a node from the machine: at its end, and at the start of the next one when the last was killed.

The same way for both, and for every state between: whatever of the node runs is killed, whatever is mounted is
unmounted, then what it added to the machine goes, then its directory. What is not there is passed over.
"""

import os
import shutil
import time
from pathlib import Path

from tests.controlplane.node import layout, network, sysctls
from tests.controlplane.node.errors import LeftoverError
from tests.controlplane.node.mounts import unmount_below
from tests.controlplane.node.processes import Owner, foreign_node

NODE = Owner(layout.ROOT, layout.CONTAINERD_ROOT)
"""By what the node's processes are told."""

_DEADLINE_S = 20.0
_POLL_S = 0.02
_CONTAINER_LOGS = Path("/var/log/containers")
"""Where the kubelet links the logs of pods; the place cannot be chosen."""
_KUBELET_PLUGINS = Path("/var/lib/kubelet/device-plugins")
"""Where the kubelet listens for device plugins; the place cannot be chosen."""
_CGROUPS = Path("/sys/fs/cgroup")


def remove() -> None:
    """Remove every trace of a node. The node's directory goes last: while it stands, there is something to remove.

    Raises:
        LeftoverError: something does not go away in time.
        CommandError: a program that removes something ended with an error.
    """
    if not layout.ROOT.exists():
        return
    NODE.kill()
    _unmount()
    sysctls.restore()
    sandboxes = layout.CONTAINERD_ROOT / "io.containerd.grpc.v1.cri" / "sandboxes"
    network.remove_results([path.name for path in sandboxes.glob("*")])
    for address in layout.CONTAINERD_STATE.glob("io.containerd.runtime.v2.task/*/*/address"):
        Path(address.read_text("utf-8").removeprefix("unix://")).unlink(missing_ok=True)
    for link in _CONTAINER_LOGS.glob("*.log"):
        if link.is_symlink() and str(link.readlink()).startswith(f"{layout.ROOT}/"):
            link.unlink()
    network.remove_bridge()
    if foreign_node(NODE) is None:
        _remove_shared()
    shutil.rmtree(layout.ROOT)


def _remove_shared() -> None:
    """Remove what has the same name for every node, when no other one has begun here since."""
    network.remove_rules()
    for top in (*_CGROUPS.glob("kubepods"), *_CGROUPS.glob("*/kubepods")):
        for group, _, _ in os.walk(top, topdown=False):
            _remove_if_empty(Path(group))
    (_KUBELET_PLUGINS / "kubelet.sock").unlink(missing_ok=True)
    for directory in (_KUBELET_PLUGINS, network.RESULTS):
        _remove_if_empty(directory)
        _remove_if_empty(directory.parent)
    _remove_if_empty(_CONTAINER_LOGS)


def _unmount() -> None:
    end = time.monotonic() + _DEADLINE_S
    while found := unmount_below(layout.ROOT):
        if time.monotonic() > end:
            raise LeftoverError(f"mounts of an earlier run do not go away: {', '.join(found)}")
        time.sleep(_POLL_S)


def _remove_if_empty(directory: Path) -> None:
    """Remove a directory, or a group of processes, that others may use too: then it stays, which harms nobody."""
    try:
        directory.rmdir()
    except OSError:
        return
