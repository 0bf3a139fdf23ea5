"""Small valid objects, and a way to change one place of them."""

import copy
from typing import Any

MINIMAL_REQUEST: dict[str, Any] = {
    "apiVersion": "sweeper.dgdr.dev/v1beta2",
    "kind": "DynamoGraphDeploymentRequest",
    "metadata": {"name": "qwen"},
    "spec": {
        "modelRef": {"name": "Qwen/Qwen3-32B"},
        "backends": ["sglang"],
        "runtime": {"image": "nvcr.io/nvidia/ai-dynamo/sglang-runtime:1.4.2"},
        "hardware": {"gpu": {"sku": "h200_sxm", "budget": 16}},
        "workload": {"static": {"isl": 3000, "osl": 300, "concurrency": 64}},
        "objective": {"mode": "optimize", "metric": "throughputPerGpu"},
    },
}

DGD_SPEC: dict[str, Any] = {
    "backendFramework": "sglang",
    "components": [
        {"name": "Frontend", "type": "frontend", "replicas": 1},
        {"name": "worker", "type": "worker", "replicas": 2, "unknownToUs": {"deep": [1, {"kept": True}]}},
    ],
    "parameters": {"concurrency": 64},
}


def minimal_request() -> dict[str, Any]:
    return copy.deepcopy(MINIMAL_REQUEST)


def changed(base: dict[str, Any], *changes: tuple[str, Any]) -> dict[str, Any]:
    """Set (path, value) pairs in a copy; the value ``...`` removes the field."""
    made = copy.deepcopy(base)
    for path, value in changes:
        *parents, last = path.split(".")
        node = made
        for parent in parents:
            node = node.setdefault(parent, {})
        if value is ...:
            del node[last]
        else:
            node[last] = value
    return made


def request(*changes: tuple[str, Any]) -> dict[str, Any]:
    """The minimal request with changes; paths start below spec."""
    return changed(MINIMAL_REQUEST, *((f"spec.{path}", value) for path, value in changes))


def run(*changes: tuple[str, Any]) -> dict[str, Any]:
    made = request(*changes)
    return made | {"kind": "DynamoGraphDeploymentRun", "metadata": {"name": "qwen-run-1-abcd"}}


def candidate(spec: dict[str, Any] = DGD_SPEC) -> dict[str, Any]:
    return {
        "apiVersion": "sweeper.dgdr.dev/v1beta2",
        "kind": "DynamoGraphDeploymentCandidate",
        "metadata": {"name": "qwen-g1-abcd-01234567"},
        "spec": copy.deepcopy(spec),
    }
