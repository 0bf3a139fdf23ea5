"""Remove a node from the machine: at its end, and at the start of the next one when the last was killed.

The same way for both, and for every state between: whatever of the node runs is killed, whatever is mounted is
unmounted, then what it added to the machine goes, then its directory. What is not there is passed over.
"""

import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.controlplane.node import layout, network, sysctls
from tests.controlplane.node.errors import LeftoverError
from tests.controlplane.node.mounts import unmount_below

_PROGRAMS = frozenset(
    [
        "containerd",
        "containerd-shim-runc-v2",
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-proxy",
        "kube-scheduler",
        "kubelet",
        "runc",
    ]
)
_NODE_PROGRAMS = frozenset(["kubelet", "kube-proxy", "k3s", "k3s-server", "k0s"])
"""Programs of other distributions that hold a machine as a node."""
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
    _wait_until_gone(_kill, "processes")
    _wait_until_gone(lambda: unmount_below(layout.ROOT), "mounts")
    sysctls.restore()
    sandboxes = layout.CONTAINERD_ROOT / "io.containerd.grpc.v1.cri" / "sandboxes"
    network.remove_results([path.name for path in sandboxes.glob("*")])
    for address in layout.CONTAINERD_STATE.glob("io.containerd.runtime.v2.task/*/*/address"):
        Path(address.read_text("utf-8").removeprefix("unix://")).unlink(missing_ok=True)
    for link in _CONTAINER_LOGS.glob("*.log"):
        if link.is_symlink() and str(link.readlink()).startswith(f"{layout.ROOT}/"):
            link.unlink()
    network.remove_bridge()
    if foreign_node() is None:
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


def _wait_until_gone(remove_what_is_there: Callable[[], list[str]], what: str) -> None:
    end = time.monotonic() + _DEADLINE_S
    while found := remove_what_is_there():
        if time.monotonic() > end:
            raise LeftoverError(f"{what} of an earlier run do not go away: {'; '.join(found)}")
        time.sleep(_POLL_S)


def _kill() -> list[str]:
    found = dict(processes())
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return [f"{pid} {command}" for pid, command in found.items()]


def processes() -> Iterator[tuple[int, str]]:
    """Yield process id and command of the node's own programs, and of everything in its containers."""
    for pid, words, mounts in _all_processes():
        if is_ours(words, mounts):
            yield pid, " ".join(words).strip()


def foreign_node() -> str | None:
    """Name and process id of a kubelet or kube-proxy that is not ours, if one runs on this machine."""
    for pid, words, mounts in _all_processes():
        name = Path(words[0]).name
        if name in _NODE_PROGRAMS and not is_ours(words, mounts):
            return f"{name} ({pid})"
    return None


def _all_processes() -> Iterator[tuple[int, list[str], str]]:
    """Yield process id, command line and the text of ``mountinfo`` of every process of this machine."""
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            words = (directory / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
            mounts = (directory / "mountinfo").read_text("utf-8")
        except OSError:  # it ended meanwhile
            continue
        yield int(directory.name), words, mounts


def is_ours(words: list[str], mounts: str) -> bool:
    """Whether a process belongs to the node, by its command line and the text of its ``mountinfo``."""
    below = re.compile(rf"(^|=|unix://){re.escape(str(layout.ROOT))}/")
    if Path(words[0]).name in _PROGRAMS and any(below.search(word) for word in words[1:]):
        return True
    root = next((line for line in mounts.splitlines() if line.split()[4] == "/"), "")
    return f"upperdir={layout.CONTAINERD_ROOT}/" in root


def _remove_if_empty(directory: Path) -> None:
    """Remove a directory, or a group of processes, that others may use too: then it stays, which harms nobody."""
    try:
        directory.rmdir()
    except OSError:
        return
