"""What a machine must be for a node, said before anything is touched."""

import os
import sys

import pytest

from tests.controlplane.node import leftovers, machine
from tests.controlplane.node.errors import UnavailableError


@pytest.mark.parametrize("order", [machine.up, machine.down])
def test_who_is_not_root_gets_no_node(order: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert callable(order)
    with pytest.raises(UnavailableError, match="needs root"):
        order(pytest.fail)


def test_a_node_needs_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(UnavailableError, match="needs Linux, this is darwin; give a kubeconfig"):
        machine.require_machine()


def test_another_node_of_the_machine_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(leftovers, "foreign_node", lambda: "kubelet (7)")
    with pytest.raises(UnavailableError, match=r"kubelet \(7\) runs here"):
        machine.up(pytest.fail)
