"""The Debian packages that a node and its images need, installed when they are absent."""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.controlplane.node.command import run
from tests.controlplane.node.errors import UnavailableError

Report = Callable[[str], None]

NODE_PACKAGES: Mapping[str, str] = {
    "containerd": "containerd",
    "runc": "runc",
    "containernetworking-plugins": "/usr/lib/cni/bridge",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "iproute2": "ip",
    "mount": "mount",
}
"""What runs the node: package, and the program by which its presence is seen."""

IMAGE_PACKAGES: Mapping[str, str] = {"debootstrap": "debootstrap", "docker.io": "dockerd"}
"""What makes images."""

_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
_APT_TIMEOUT_S = 600.0


def search_path() -> str:
    """PATH with the folders of administration programs, which a user's PATH may lack."""
    return f"{os.environ.get('PATH', os.defpath)}:{_SBIN}"


def find(program: str) -> Path | None:
    """Path of a program, or None."""
    found = shutil.which(program, path=search_path())
    return Path(found) if found else None


def absent(packages: Mapping[str, str]) -> list[str]:
    """Names of the packages whose program is not there."""
    return [name for name, program in packages.items() if find(program) is None]


def require(packages: Mapping[str, str], report: Report) -> None:
    """Install the packages that are absent.

    Raises:
        UnavailableError: some are absent, and this is not root on a Debian.
        CommandError: apt-get ended with an error.
    """
    if not (names := absent(packages)):
        return
    if os.geteuid() != 0 or find("apt-get") is None:
        raise UnavailableError(f"missing: {', '.join(names)}; {_advice(names)}")
    report(f"installing {' '.join(names)}")
    apt = {"DEBIAN_FRONTEND": "noninteractive"}
    run("apt-get", "update", "-q", environ=apt, timeout_s=_APT_TIMEOUT_S)
    install = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends"]
    run(*install, *names, environ=apt, timeout_s=_APT_TIMEOUT_S)
    if still := absent({name: packages[name] for name in names}):
        raise UnavailableError(f"apt-get installed no {', '.join(packages[name] for name in still)}; {_advice(still)}")


def _advice(names: Sequence[str]) -> str:
    return f"on Debian or Ubuntu, as root: apt-get install {' '.join(names)}"
