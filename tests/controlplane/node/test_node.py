"""When a node counts as ready."""

from typing import Any

import pytest

from tests.controlplane.node.node import node_missing

_READY = {"type": "Ready", "status": "True", "message": "kubelet is posting ready status"}
_NO_NETWORK = {"type": "Ready", "status": "False", "message": "cni plugin not initialized"}
_NEW = {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}


@pytest.mark.parametrize(
    ("spec", "conditions", "missing"),
    [
        ({}, [_READY], None),
        ({}, [], "the node has not told its state"),
        ({}, [_NO_NETWORK], "the node is not ready: cni plugin not initialized"),
        (_NEW, [_READY], "the node is tainted: node.kubernetes.io/not-ready"),
    ],
)
def test_a_node_is_ready_when_it_says_so_and_takes_pods(
    spec: dict[str, Any], conditions: list[dict[str, str]], missing: str | None
) -> None:
    assert node_missing({"spec": spec, "status": {"conditions": conditions}}) == missing
