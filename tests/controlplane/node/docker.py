"""A docker daemon to build with: the machine's, when one answers, else our own for as long as it is needed."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.node.command import run
from tests.controlplane.node.errors import CommandError, UnavailableError
from tests.controlplane.node.mounts import unmount_below
from tests.controlplane.node.packages import IMAGE_PACKAGES, find, require, search_path
from tests.controlplane.node.processes import Owner
from tests.controlplane.process import Process

Report = Callable[[str], None]

RUN = Path("/run/dgdr-docker")
"""Sockets, state and log of our own daemon."""

_DEADLINE_S = 60.0
_GRACE_S = 20.0
_TIMEOUT_S = 1800.0


@dataclass(frozen=True)
class Docker:
    """docker's client, bound to a daemon.

    Args:
        host: address of the daemon; None is the one that docker itself finds.
        own: whether the daemon is ours alone.
    """

    host: str | None
    own: bool

    def __call__(self, *arguments: str | Path) -> str:
        """Run ``docker <arguments>`` and return its output.

        Raises:
            CommandError: it ended with an error.
        """
        chosen = [] if self.host is None else [f"--host={self.host}"]
        return run("docker", *chosen, *arguments, environ={"PATH": search_path()}, timeout_s=_TIMEOUT_S)

    def missing(self) -> str | None:
        """Return why the daemon does not answer, or None."""
        try:
            self("version", "--format={{.Server.Version}}")
        except CommandError as error:
            return str(error)
        return None


@contextmanager
def docker_daemon(data: Path, report: Report) -> Iterator[Docker]:
    """Give a docker daemon; our own has gone at the end.

    Args:
        data: where our own keeps images and layers; it stays.
        report: receives a line for each step.

    Raises:
        UnavailableError: there is none and none can be started here.
        StartError: our own does not start; the message carries the last lines of its log.
    """
    found = Docker(None, own=False)
    if find("docker") is not None and found.missing() is None:
        yield found
        return
    require(IMAGE_PACKAGES, report)
    dockerd = find("dockerd")
    if dockerd is None or find("docker") is None:
        raise UnavailableError("docker.io brought no docker or no dockerd")
    report("starting dockerd")
    _remove_traces(data)
    RUN.mkdir()
    data.mkdir(parents=True, exist_ok=True)
    (RUN / "daemon.json").write_text("{}", "utf-8")
    host = f"unix://{RUN / 'docker.sock'}"
    process = Process("dockerd", ["/usr/bin/env", f"PATH={search_path()}", *_command(dockerd, data, host)], RUN / "log")
    try:
        process.start()
        own = Docker(host, own=True)
        process.wait_until(own.missing, _DEADLINE_S)
        yield own
    finally:
        process.stop(_GRACE_S)
        _remove_traces(data)


def _command(dockerd: Path, data: Path, host: str) -> list[str]:
    return [
        str(dockerd),
        f"--config-file={RUN / 'daemon.json'}",  # not the machine's: its settings and these may exclude each other
        f"--data-root={data}",
        f"--exec-root={RUN / 'exec'}",
        f"--pidfile={RUN / 'pid'}",
        f"--host={host}",
        "--bridge=none",
        "--iptables=false",
        "--ip6tables=false",
        "--ip-forward=false",
    ]


def _remove_traces(data: Path) -> None:
    """Remove what a daemon leaves running and mounted, also one that was killed; its layers stay."""
    Owner(RUN, data).kill()
    for directory in (data, RUN):
        unmount_below(directory)
    shutil.rmtree(RUN, ignore_errors=True)
