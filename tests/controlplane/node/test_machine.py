"""What a machine must be for a node, said before anything is touched."""

import os
import sys

import pytest

from tests.controlplane.node import machine
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
    monkeypatch.setattr(machine, "require_machine", lambda: None)
    monkeypatch.setattr(machine, "foreign_node", lambda _: "kubelet (7)")
    with pytest.raises(UnavailableError, match=r"kubelet \(7\) runs here"):
        machine.up(pytest.fail)


def test_root_of_a_container_is_told_what_it_lacks() -> None:
    assert machine.missing_capabilities("Name:\tpytest\nCapEff:\t00000000a80425fb\n") == [
        "CAP_NET_ADMIN",
        "CAP_SYS_ADMIN",
    ]
    assert machine.missing_capabilities("Name:\tpytest\nCapEff:\t000001ffffffffff\n") == []
