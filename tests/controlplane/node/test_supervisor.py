"""The process that holds the node obeys orders one by one, and removes the node however it is ended."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.controlplane.node import machine, supervisor
from tests.controlplane.node.errors import NoAnswerError, NodeError

_REPOSITORY = Path(__file__).resolve().parents[3]
_DEADLINE_S = 20.0

_HOLDS = """
import sys
from contextlib import contextmanager
from tests.controlplane.node import supervisor
from tests.controlplane.node.errors import NodeError

class Ended:
    name, running = "kubelet", False

class Node:
    processes = [Ended()]

    def ensure(self, report):
        report("again")
        raise NodeError("the kubelet does not start")

@contextmanager
def run_node(binaries, report):
    if "fails" in sys.argv:
        raise NodeError("no bridge")
    report("starting")
    try:
        yield Node()
    finally:
        print("removed", flush=True)

supervisor.SOCKET = "\\0" + sys.argv[1]
supervisor.ensure_binaries = lambda names: {}
supervisor.run_node = run_node
sys.exit(supervisor.main(sys.argv[2:]))
"""
"""A supervisor whose node is a pretence, on a socket of the test's own."""

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Start a supervisor and wait until it takes orders."""
    name = f"dgdr-test-{os.getpid()}"
    monkeypatch.setattr(supervisor, "SOCKET", f"\0{name}")
    started: list[subprocess.Popen[str]] = []

    def run(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", _HOLDS, name, *arguments]
        pipe = subprocess.PIPE
        child = subprocess.Popen(command, cwd=_REPOSITORY, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        started.append(child)
        end = time.monotonic() + _DEADLINE_S
        while machine.status() is None:
            assert time.monotonic() < end, "the supervisor takes no orders"
        return child

    yield run
    for child in started:
        child.kill()
        child.communicate()


def test_up_starts_a_node_and_tells_each_step_and_the_state(start: Start) -> None:
    child = start()
    said: list[str] = []
    answer = machine._ask(supervisor.UP, said.append)
    assert said == ["starting"]
    assert (answer["supervisor"], answer["tied"], answer["pids"]) == (child.pid, False, {"kubelet": None})


def test_up_again_mends_the_node_and_an_error_leaves_it(start: Start) -> None:
    start()
    said: list[str] = []
    machine._ask(supervisor.UP, said.append)
    with pytest.raises(NodeError, match="the kubelet does not start"):
        machine._ask(supervisor.UP, said.append)
    assert said == ["starting", "again"]
    assert machine.status() is not None


def test_a_node_that_does_not_start_ends_its_process_with_an_error(start: Start) -> None:
    child = start("fails")
    with pytest.raises(NodeError, match="no bridge"):
        machine._ask(supervisor.UP, pytest.fail)
    assert child.wait(_DEADLINE_S) == 1
    assert machine.status() is None


def _ended(child: subprocess.Popen[str]) -> None:
    said = child.communicate(timeout=_DEADLINE_S)
    assert (child.returncode, said) == (0, ("removed\n", ""))
    with pytest.raises(NoAnswerError):
        machine._ask(supervisor.UP, pytest.fail)


def test_down_removes_the_node(start: Start) -> None:
    child = start()
    machine._ask(supervisor.UP, lambda _: None)
    machine._ask(supervisor.DOWN, pytest.fail)
    _ended(child)


def test_sigterm_removes_the_node(start: Start) -> None:
    child = start()
    machine._ask(supervisor.UP, lambda _: None)
    child.send_signal(signal.SIGTERM)
    _ended(child)


def test_a_tied_one_removes_the_node_when_its_input_closes(start: Start) -> None:
    child = start(supervisor.TIED)
    assert machine._ask(supervisor.UP, lambda _: None)["tied"] is True
    _ended(child)  # closes the input first


def test_a_second_one_leaves_the_node_to_the_first(start: Start) -> None:
    first = start()
    second = start()
    said = second.communicate(timeout=_DEADLINE_S)
    assert (second.returncode, said) == (0, ("", ""))
    assert machine._ask(supervisor.STATUS, pytest.fail)["supervisor"] == first.pid
