"""Which processes of this machine belong to a containerd or a docker of ours, told by paths alone.

Two signs that nobody else bears: a program of theirs whose arguments name our directory, and a root file system whose
writable layer lies in it. The second holds also for what runs in a container whose keeper was killed.
"""

import os
import re
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.node.errors import LeftoverError

_PROGRAMS = frozenset(
    [
        "containerd",
        "containerd-shim-runc-v2",
        "dockerd",
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
"""Programs of ours and of other distributions that hold a machine as a node."""
_DEADLINE_S = 20.0
_POLL_S = 0.02


@dataclass(frozen=True)
class Owner:
    """Where somebody's processes are told by.

    Args:
        directory: what the arguments of his programs name.
        layers: what holds the writable layers of his containers.
    """

    directory: Path
    layers: Path

    def owns(self, words: list[str], mounts: str) -> bool:
        """Whether a process is his, by its command line and the text of its ``mountinfo``."""
        below = re.compile(rf"(^|=|unix://){re.escape(str(self.directory))}/")
        if Path(words[0]).name in _PROGRAMS and any(below.search(word) for word in words[1:]):
            return True
        root = next((line for line in mounts.splitlines() if line.split()[4] == "/"), "")
        return f"upperdir={self.layers}/" in root

    def processes(self) -> Iterator[tuple[int, str]]:
        """Yield process id and command of each of his processes."""
        for pid, words, mounts in _all_processes():
            if self.owns(words, mounts):
                yield pid, " ".join(words).strip()

    def kill(self) -> None:
        """End his processes by SIGKILL and wait for their end.

        Raises:
            LeftoverError: some do not end.
        """
        end = time.monotonic() + _DEADLINE_S
        while found := dict(self.processes()):
            if time.monotonic() > end:
                raise LeftoverError(f"processes of an earlier run do not end: {found}")
            for pid in found:
                _kill(pid)
            time.sleep(_POLL_S)


def foreign_node(ours: Owner) -> str | None:
    """Name and process id of a kubelet or kube-proxy that is not ours, if one runs on this machine."""
    for pid, words, mounts in _all_processes():
        name = Path(words[0]).name
        if name in _NODE_PROGRAMS and not ours.owns(words, mounts):
            return f"{name} ({pid})"
    return None


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:  # it ended meanwhile
        return


def _all_processes() -> Iterator[tuple[int, list[str], str]]:
    """Yield process id, command line and the text of ``mountinfo`` of every process of this machine."""
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            words = (directory / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
            mounts = (directory / "mountinfo").read_text("utf-8")
        except OSError:  # it ended meanwhile
            continue
        yield int(directory.name), words, mounts
