"""The process that holds the node: its programs are its children, and it takes orders on a socket.

The socket has an abstract name: the kernel frees it when this process dies, so that it is the lock too (one node on a
machine) and nothing stale can be left. One order a connection, one word; the answers are lines of JSON,
``{"progress": text}`` any number of times, then ``{"done": {…}}`` or ``{"error": text}``.

The node's programs die with this process, however it dies. Told so, it ends in order when its standard input closes:
the node of a test run goes with the run, also when that is killed.
"""

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any, NoReturn

from tests.controlplane.build import ControlPlaneError, ensure_binaries
from tests.controlplane.node import layout
from tests.controlplane.node.node import BINARIES, Node, run_node

SOCKET = f"\0{layout.NODE}"
UP, DOWN, STATUS = "up", "down", "status"
TIED = "tied"
"""Argument that says: end when standard input closes."""

_BACKLOG = 16


def main(arguments: list[str]) -> int:
    """Hold a node until the order ``down``, or SIGTERM; return the exit status."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        try:
            listener.bind(SOCKET)
        except OSError:  # another one holds the node; whoever wanted this one finds that
            return 0
        listener.listen(_BACKLOG)
        signal.signal(signal.SIGTERM, _end)
        tied = TIED in arguments
        if tied:
            threading.Thread(target=_down_at_end_of_input, daemon=True).start()
        with ExitStack() as last, ExitStack() as stack:
            connection = last.enter_context(_serve(listener, stack, tied=tied))
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            stack.close()
            _tell(connection, "done", _state(None, tied=tied))
    return 0


def _end(*_: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the end is in order and takes a second: a second signal waits
    sys.exit(0)


def _serve(listener: socket.socket, stack: ExitStack, *, tied: bool) -> socket.socket:
    """Obey until the order ``down``, and return the connection that it came on."""
    node: Node | None = None
    while True:
        connection, _ = listener.accept()
        order = _read(connection)
        if order == DOWN:
            return connection
        report = partial(_tell, connection, "progress")
        with connection:
            try:
                if order == UP and node is None:
                    node = stack.enter_context(run_node(ensure_binaries(BINARIES), report))
                elif order == UP and node is not None:
                    node.ensure(report)
                _tell(connection, "done", _state(node, tied=tied))
            except (ControlPlaneError, OSError) as error:
                _tell(connection, "error", str(error))
                if node is None:
                    raise


def _read(connection: socket.socket) -> str:
    try:
        return connection.recv(64).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _tell(connection: socket.socket, kind: str, content: object) -> None:
    """Send a line; whoever asked may be gone, which stops nothing."""
    try:
        connection.sendall(json.dumps({kind: content}).encode() + b"\n")
    except OSError:
        sys.stderr.write(f"nobody reads: {kind}: {content}\n")


def _state(node: Node | None, *, tied: bool) -> Mapping[str, Any]:
    processes = [] if node is None else node.processes
    pids = {process.name: process.pid if process.running else None for process in processes}
    return {"kubeconfig": str(layout.KUBECONFIG), "supervisor": os.getpid(), "tied": tied, "pids": pids}


def _down_at_end_of_input() -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(SOCKET)
        connection.sendall(DOWN.encode())
        connection.recv(1)  # until this process ends


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
