"""The least rights with which the operator does its work in one namespace: these rules, and nothing of the cluster."""

import json
from collections.abc import Callable
from typing import Any

from dgdr_kube.resource import JOB
from dgdr_operator.kinds import RUN

from tests.controlplane.kubectl import Kubectl
from tests.controlplane.plane import ControlPlane
from tests.operator.conftest import StartOperator, client
from tests.operator.hands import NOW, Hands

GROUP = "sweeper.dgdr.dev"
REQUESTS, RUNS = "dynamographdeploymentrequests", "dynamographdeploymentruns"
RULES: list[tuple[str, list[str], list[str]]] = [
    (GROUP, [REQUESTS], ["get", "list", "watch"]),
    (GROUP, [RUNS], ["get", "list", "watch", "create", "delete"]),
    (GROUP, [f"{REQUESTS}/status", f"{RUNS}/status"], ["patch"]),
    (GROUP, [f"{REQUESTS}/finalizers", f"{RUNS}/finalizers"], ["update"]),
    ("batch", ["jobs"], ["get", "list", "watch", "create", "delete"]),
    ("", ["pods"], ["list", "watch"]),
    ("", ["events"], ["list", "watch", "create"]),
    ("", ["serviceaccounts"], ["create", "patch"]),
    ("rbac.authorization.k8s.io", ["rolebindings"], ["create", "patch"]),
    ("coordination.k8s.io", ["leases"], ["get", "create", "update"]),
]
"""API group, resources, verbs. ``finalizers`` is what clusters ask that check ``blockOwnerDeletion``."""


def role(namespace: str) -> dict[str, Any]:
    rules = [{"apiGroups": [group], "resources": resources, "verbs": verbs} for group, resources, verbs in RULES]
    bind = {
        "apiGroups": ["rbac.authorization.k8s.io"],
        "resources": ["clusterroles"],
        "resourceNames": ["dgdr-publisher"],
        "verbs": ["bind"],
    }
    metadata = {"name": "dgdr-operator", "namespace": namespace}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": metadata,
        "rules": [*rules, bind],
    }


def test_a_namespaced_operator_needs_no_right_in_the_cluster(
    control_plane: ControlPlane,
    install: Callable[[ControlPlane], Kubectl],
    namespace: str,
    start_operator: StartOperator,
) -> None:
    kubectl = install(control_plane)
    kubectl("apply", "-f", "-", input=json.dumps(role(namespace)))
    kubectl("create", "rolebinding", "operator", "--role=dgdr-operator", "--user=operator", "-n", namespace)
    kubectl("create", "clusterrole", "dgdr-publisher", "--verb=get", "--resource=configmaps")
    operator = start_operator(
        control_plane,
        "least",
        f"KUBECONFIG={control_plane.write_kubeconfig('least', 'operator')}",
        f"DGDR_NAMESPACES={namespace}",
        f"DGDR_LEASE_NAMESPACE={namespace}",
    )
    operator.wait_until_ready()
    hands = Hands(kubectl, client(control_plane, "test"), operator)
    publisher = client(control_plane, "dgdr-publisher")

    hands.submit(namespace)
    hands.job(namespace)
    hands.edit(namespace, ("hardware.gpu.budget", 8))
    hands.collect(namespace)
    hands.wait_completed(namespace, "Superseded")
    hands.job(namespace, 2)
    hands.publish(publisher, namespace, 2, outcome={"reason": "Unsupported", "message": "no", "time": NOW})
    hands.wait_completed(namespace, "Unsupported", 2)

    assert len(hands.names(RUN, namespace)) == 2
    assert len(hands.names(JOB, namespace)) == 1
    assert operator.metric('dgdr_api_errors_total{kind="Forbidden"}') == 0
    assert "forbidden" not in operator.process.log.read_text().lower()
    operator.process.stop()
    kubectl("delete", "clusterrole", "dgdr-publisher")
