"""Remove a node from the machine: at its end, and at the start of the next one when the last was killed.

The same way for both, and for every state between: whatever of the node runs is killed, whatever is mounted is
unmounted, then its directory goes, then what it added to the network. What is not there is passed over.
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
_CGROUPS = Path("/sys/fs/cgroup")


def remove() -> None:
    """Remove every trace of a node.

    Raises:
        LeftoverError: something does not go away in time.
        CommandError: a program that removes something ended with an error.
    """
    _wait_until_gone(_kill, "processes")
    _wait_until_gone(lambda: unmount_below(layout.ROOT), "mounts")
    sysctls.restore()
    sandboxes = layout.CONTAINERD_ROOT / "io.containerd.grpc.v1.cri" / "sandboxes"
    network.remove_results([path.name for path in sandboxes.glob("*")])
    for address in layout.CONTAINERD_STATE.glob("io.containerd.runtime.v2.task/*/*/address"):
        Path(address.read_text("utf-8").removeprefix("unix://")).unlink(missing_ok=True)
    if layout.ROOT.exists():
        shutil.rmtree(layout.ROOT)
    for link in _CONTAINER_LOGS.glob("*.log"):
        if link.is_symlink() and str(link.readlink()).startswith(f"{layout.ROOT}/"):
            link.unlink()
    network.remove_bridge()
    network.remove_rules()
    _remove_cgroups()


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
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            words = (directory / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
            mounts = (directory / "mountinfo").read_text("utf-8")
        except OSError:  # it ended meanwhile
            continue
        if is_ours(words, mounts):
            yield int(directory.name), " ".join(words).strip()


def foreign_node() -> str | None:
    """Name and process id of a kubelet or kube-proxy that is not ours, if one runs on this machine."""
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            words = (directory / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
            mounts = (directory / "mountinfo").read_text("utf-8")
        except OSError:
            continue
        name = Path(words[0]).name
        if name in _NODE_PROGRAMS and not is_ours(words, mounts):
            return f"{name} ({directory.name})"
    return None


def is_ours(words: list[str], mounts: str) -> bool:
    """Whether a process belongs to the node, by its command line and the text of its ``mountinfo``."""
    below = re.compile(rf"(^|=|unix://){re.escape(str(layout.ROOT))}/")
    if Path(words[0]).name in _PROGRAMS and any(below.search(word) for word in words[1:]):
        return True
    root = next((line for line in mounts.splitlines() if line.split()[4] == "/"), "")
    return f"upperdir={layout.CONTAINERD_ROOT}/" in root


def _remove_cgroups() -> None:
    """Remove the groups of the pods; with cgroup v1 each controller has its own."""
    for top in (*_CGROUPS.glob("kubepods"), *_CGROUPS.glob("*/kubepods")):
        for directory, _, _ in os.walk(top, topdown=False):
            _remove_group(Path(directory))


def _remove_group(group: Path) -> None:
    """Remove a group without processes; one that gets or loses some just now stays, which harms nobody."""
    try:
        if (group / "cgroup.procs").exists() and not (group / "cgroup.procs").read_text("utf-8"):
            group.rmdir()
    except OSError:
        return
