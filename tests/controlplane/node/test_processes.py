"""The node's own processes are told from everybody else's, and ended."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane.node import layout
from tests.controlplane.node.leftovers import NODE
from tests.controlplane.node.processes import Owner

_HOST = "25 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
_OURS_MOUNTED_HERE = f"99 25 0:60 / {layout.CONTAINERD_STATE}/rootfs rw - overlay overlay rw,upperdir=/x\n"
_IN_OUR_CONTAINER = (
    f"99 25 0:60 / / rw - overlay overlay rw,lowerdir=/a,upperdir={layout.CONTAINERD_ROOT}/snapshots/1/fs\n"
    "100 99 0:61 / /proc rw - proc proc rw\n"
)
_IN_ANOTHER_CONTAINER = "99 25 0:60 / / rw - overlay overlay rw,upperdir=/var/lib/containerd/snapshots/1/fs\n"


@pytest.mark.parametrize(
    "words",
    [
        ["/usr/bin/containerd", f"--config={layout.CONTAINERD}/config.toml"],
        ["/usr/bin/containerd-shim-runc-v2", "-namespace", "k8s.io", "-address", str(layout.CONTAINERD_SOCKET)],
        ["/srv/user/.cache/etcd", f"--data-dir={layout.CONTROL_PLANE}/etcd"],
        ["kubelet", f"--root-dir={layout.KUBELET}"],
    ],
)
def test_a_program_of_the_node_is_ours_by_its_arguments(words: list[str]) -> None:
    assert NODE.owns(words, _HOST)


@pytest.mark.parametrize(
    "words",
    [
        ["/usr/bin/containerd"],
        ["/usr/bin/containerd-shim-runc-v2", "-address", "/run/containerd/containerd.sock"],
        ["/usr/bin/tail", "-f", f"{layout.LOGS}/kubelet.log"],
        ["kubelet", f"--root-dir={layout.ROOT}-of-another"],
        [""],
    ],
)
def test_what_others_run_is_not_ours(words: list[str]) -> None:
    assert not NODE.owns(words, _HOST + _OURS_MOUNTED_HERE)


def test_what_runs_in_a_container_of_the_node_is_ours_without_its_shim() -> None:
    assert NODE.owns(["python3", "-c", "pass"], _IN_OUR_CONTAINER)
    assert not NODE.owns(["python3", "-c", "pass"], _IN_ANOTHER_CONTAINER)


def test_this_process_is_not_ours() -> None:
    assert os.getpid() not in dict(NODE.processes())


def test_every_process_of_an_owner_is_killed(tmp_path: Path) -> None:
    (tmp_path / "etcd").symlink_to(sys.executable)
    waits = ["-c", "import signal; print(flush=True); signal.pause()", f"--data-dir={tmp_path}/etcd"]
    with subprocess.Popen([tmp_path / "etcd", *waits], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        Owner(tmp_path / "of-another", tmp_path).kill()
        assert child.poll() is None
        owner = Owner(tmp_path, tmp_path)
        assert [pid for pid, _ in owner.processes()] == [child.pid]
        owner.kill()
        assert child.wait() == -signal.SIGKILL
