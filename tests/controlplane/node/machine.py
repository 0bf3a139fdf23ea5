"""Bring the machine's node up and down, from any process: what the command and the tests call.

The node itself lives in the process of ``supervisor.py``; this module starts that one, gives it orders and passes on
what it answers.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.controlplane.build import MODULE_DIRECTORY, ensure_binaries
from tests.controlplane.node import leftovers, supervisor
from tests.controlplane.node.errors import NoAnswerError, NodeError, UnavailableError
from tests.controlplane.node.node import BINARIES
from tests.controlplane.node.packages import NODE_PACKAGES, require
from tests.controlplane.node.processes import foreign_node
from tests.controlplane.process import wait_for_end

Report = Callable[[str], None]

_REPOSITORY = MODULE_DIRECTORY.parents[1]
_START_DEADLINE_S = 30.0
_DOWN_DEADLINE_S = 60.0
_ANSWER_DEADLINE_S = 200.0
"""Above the longest wait of a step of the start."""
_CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}
_POLL_S = 0.05
_started: list[subprocess.Popen[bytes]] = []
"""The supervisors of this process. They are kept: a tied one ends when its standard input is collected."""
_ERROR_BYTES = 4000


@dataclass(frozen=True)
class State:
    """A running node.

    Args:
        kubeconfig: how to reach it, as an administrator.
        supervisor: id of the process that holds it.
        tied: whether it ends with the process that started it.
        pids: process id of each of its programs; None for one that has ended.
    """

    kubeconfig: Path
    supervisor: int
    tied: bool
    pids: Mapping[str, int | None]


def require_machine() -> None:
    """Check what no package provides.

    Raises:
        UnavailableError: this is not Linux, or not root with the rights of a machine's.
    """
    if sys.platform != "linux":
        raise UnavailableError(f"a node needs Linux, this is {sys.platform}; give a kubeconfig of a cluster instead")
    if os.geteuid() != 0:
        raise UnavailableError("a node needs root (containerd, mounts, iptables); or give a kubeconfig of a cluster")
    if missing := missing_capabilities(Path("/proc/self/status").read_text("utf-8")):
        raise UnavailableError(
            f"a node needs {', '.join(missing)}, which root lacks here (a container without --privileged?); "
            "or give a kubeconfig of a cluster"
        )


def missing_capabilities(status: str) -> list[str]:
    """Return the rights that root lacks for a node, from the text of ``/proc/self/status``."""
    effective = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:"))
    return [name for name, bit in _CAPABILITIES.items() if not effective >> bit & 1]


def up(report: Report, *, tied: bool = False) -> State:
    """Make a node run, whatever was before, and return it; one that runs stays, and what has ended in it starts.

    Args:
        report: receives a line for each step.
        tied: a node that is started now ends with this process.

    Raises:
        UnavailableError: this machine cannot run a node.
        NodeError: it does not start; the message carries the last lines of the logs.
    """
    require_machine()
    if (found := foreign_node(leftovers.NODE)) is not None:
        raise UnavailableError(f"{found} runs here, and two would share cgroups and iptables: give its kubeconfig")
    require(NODE_PACKAGES, report)
    ensure_binaries(BINARIES)
    with tempfile.TemporaryFile() as log:
        try:
            return _start(report, log, tied=tied)
        except KeyboardInterrupt:
            for child in _started:
                child.terminate()
            _forget_started()
            raise


def _start(report: Report, log: IO[bytes], *, tied: bool) -> State:
    """Give the order to whoever holds the node, or to a supervisor that is started for it."""
    end = time.monotonic() + _START_DEADLINE_S
    child: subprocess.Popen[bytes] | None = None
    while True:
        try:
            return _state(_ask(supervisor.UP, report))
        except NoAnswerError as error:  # nobody holds a node, or not for long any more, or not yet
            if child is not None and child.poll():
                raise NodeError(f"the node's process ended with {child.returncode}:\n{_tail(log)}") from error
            if time.monotonic() > end:
                raise NodeError(f"the node's process takes no orders: {error}\n{_tail(log)}") from error
        if child is None or child.poll() is not None:
            child = _start_supervisor(log, tied=tied)
            _started.append(child)
        time.sleep(_POLL_S)


def status() -> State | None:
    """Return the running node, or None."""
    try:
        return _state(_ask(supervisor.STATUS, lambda _: None))
    except NoAnswerError:
        return None


def down(report: Report) -> None:
    """End the node and remove what is left of it, or of one that was killed.

    Raises:
        UnavailableError: this is not root on Linux.
        LeftoverError: something does not go away.
    """
    require_machine()
    with suppress(NoAnswerError):  # there is none, or it died just now
        _ask(supervisor.DOWN, report)
    _forget_started()
    leftovers.remove()


def kill(state: State) -> None:
    """End everything of a node by SIGKILL at once, as a lost machine would; containers stay, without their keeper."""
    pids = [state.supervisor, *(pid for pid in state.pids.values() if pid is not None)]
    for pid in pids:
        _kill(pid)
    for pid in pids:
        wait_for_end(pid, _DOWN_DEADLINE_S)
    _forget_started()


def _forget_started() -> None:
    """Wait for the end of the supervisors of this process, which have been told to end."""
    while _started:
        child = _started.pop()
        child.wait(_DOWN_DEADLINE_S)
        if child.stdin is not None:
            child.stdin.close()


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:  # its parent's death took it along
        return


def _start_supervisor(log: IO[bytes], *, tied: bool) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", supervisor.__name__, *([supervisor.TIED] if tied else [])],
        cwd=_REPOSITORY,
        stdin=subprocess.PIPE if tied else subprocess.DEVNULL,  # nobody writes: it closes when this process ends
        stdout=log,
        stderr=log,
        start_new_session=True,  # Ctrl-C goes to this process alone
    )


def _state(answer: Mapping[str, Any]) -> State:
    return State(Path(answer["kubeconfig"]), answer["supervisor"], answer["tied"], answer["pids"])


def _ask(order: str, report: Report) -> Mapping[str, Any]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.settimeout(_ANSWER_DEADLINE_S)
            connection.connect(supervisor.SOCKET)
            connection.sendall(order.encode())
        except OSError as error:
            raise NoAnswerError(f"nobody takes the order {order!r}: {error}") from error
        answers = connection.makefile("rb")
        while line := _line(answers):
            ((kind, content),) = json.loads(line).items()
            if kind == "progress":
                report(content)
            elif kind == "error":
                raise NodeError(content)
            else:
                answer: Mapping[str, Any] = content
                return answer
    raise NoAnswerError(f"the process that got the order {order!r} ended")


def _line(answers: IO[bytes]) -> bytes:
    """Receive one line; it is empty when the other side has gone."""
    try:
        return answers.readline()
    except ConnectionError:
        return b""
    except TimeoutError as error:
        raise NodeError(f"the node's process says nothing for {_ANSWER_DEADLINE_S:g} s") from error


def _tail(log: IO[bytes]) -> str:
    size = log.seek(0, os.SEEK_END)
    log.seek(max(0, size - _ERROR_BYTES))
    return log.read().decode("utf-8", "replace")
