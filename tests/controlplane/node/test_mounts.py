"""Mounts below a directory, the latest first, and no others."""

from pathlib import Path

from tests.controlplane.node.mounts import mount_points, unmount_below

_MOUNTINFO = """\
25 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 25 254:0 / /data rw - ext4 /dev/vda rw
31 30 0:60 / /data/kubelet/pods/1 rw - tmpfs tmpfs rw
32 30 0:61 / /data/two\\040words rw - tmpfs tmpfs rw
33 25 0:62 / /database rw - tmpfs tmpfs rw
"""


def test_the_latest_comes_first_and_a_sibling_stays() -> None:
    assert mount_points(_MOUNTINFO, Path("/data")) == ["/data/two words", "/data/kubelet/pods/1", "/data"]


def test_a_directory_without_mounts_needs_no_umount(tmp_path: Path) -> None:
    assert unmount_below(tmp_path) == []
