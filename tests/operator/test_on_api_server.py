"""The operator as a process on a real API server: what it writes, what it owns, and what it leaves alone."""

import json
from typing import Any

import pytest
from dgdr_api.group import ANNOTATION_CANCEL
from dgdr_kube.client import KubeClient
from dgdr_kube.event import build_event
from dgdr_kube.resource import EVENT, JOB, POD, ROLE_BINDING, SERVICE_ACCOUNT
from dgdr_operator.kinds import REQUEST, RUN

from tests.controlplane.plane import ControlPlane
from tests.operator.conftest import client
from tests.operator.hands import NOW, Hands, eventually

RUNNING: dict[str, Any] = {"state": {"running": {}}, "ready": True, "image": "x", "imageID": "x", "restartCount": 0}


@pytest.fixture
def publisher(control_plane: ControlPlane) -> KubeClient:
    return client(control_plane, "dgdr-publisher")


def test_from_request_to_job_to_outcome(hands: Hands, namespace: str, publisher: KubeClient) -> None:
    before = hands.submit(namespace)
    name = hands.job(namespace)["metadata"]["name"]
    assert hands.names(RUN, namespace) == hands.names(JOB, namespace) == [name]
    assert name in hands.names(SERVICE_ACCOUNT, namespace)
    assert hands.names(ROLE_BINDING, namespace) == [name]
    assert hands.wait_completed(namespace, "Pending")["status"] == "False"

    pod = hands.start_pod(
        namespace,
        phase="Running",
        initContainerStatuses=[{"name": "publisher", **RUNNING}],
        containerStatuses=[{"name": "sweeper", **RUNNING}],
    )
    hands.wait_completed(namespace, "Preflight")
    branches = [{"name": "sglang/agg", "rounds": {"completed": 0, "total": 1}, "pool": 10}]
    progress = {"summary": "6/10", "branches": branches, "evaluations": {"scheduled": 10, "remaining": 4}}
    supported = {"type": "Supported", "status": "True", "reason": "AllTuples", "message": "", "lastTransitionTime": NOW}
    hands.publish(publisher, namespace, progress=progress, conditions=[supported])
    hands.wait_completed(namespace, "EvaluatingCandidates")
    outcome = {"reason": "SearchSucceeded", "message": "5 candidates", "time": NOW}
    hands.publish(publisher, namespace, progress=progress, conditions=[supported], outcome=outcome)
    hands.wait_completed(namespace, "SearchSucceeded")
    hands.finish_job(namespace)

    run = hands.run(namespace)
    assert run["status"]["phase"] == "Succeeded"
    assert run["status"]["jobRef"] == {"name": name, "uid": hands.job(namespace)["metadata"]["uid"]}
    assert {"startTime", "completionTime"} <= set(run["status"])
    assert owned_by(run, "dgdr-operator") == {
        "f:phase",
        "f:jobRef",
        "f:startTime",
        "f:completionTime",
        'f:conditions k:{"type":"Completed"}',
    }
    assert owned_by(run, "dgdr-publisher") == {"f:progress", "f:outcome", 'f:conditions k:{"type":"Supported"}'}

    after = eventually(lambda: (found := hands.kube.get(REQUEST, namespace, "qwen"))["status"] and found)
    eventually(lambda: "activeRunRef" not in hands.kube.get(REQUEST, namespace, "qwen")["status"] or None)
    assert_only_status_was_written(before, after)
    reasons = {event["reason"] for event in hands.kube.list(EVENT, namespace).items}
    assert {"RunCreated", "SearchSucceeded"} <= reasons
    hands.kubectl("delete", "pod", pod, "-n", namespace, "--force", "--grace-period=0")


def owned_by(value: dict[str, Any], manager: str) -> set[str]:
    """Fields of the status that a manager owns."""
    found: set[str] = set()
    for entry in value["metadata"]["managedFields"]:
        if entry["manager"] == manager and entry.get("subresource") == "status":
            assert entry["operation"] == "Apply"
            for field, below in entry["fieldsV1"]["f:status"].items():
                found |= {f"{field} {key}" for key in below} if field == "f:conditions" else {field}
    return found


def assert_only_status_was_written(before: dict[str, Any], after: dict[str, Any]) -> None:
    for entry in after["metadata"]["managedFields"]:
        if entry["manager"] != "test":
            assert (entry["manager"], entry["subresource"]) == ("dgdr-operator", "status")
            assert set(entry["fieldsV1"]) == {"f:status"}
    written = ("resourceVersion", "managedFields")
    assert {name: item for name, item in after["metadata"].items() if name not in written} == {
        name: item for name, item in before["metadata"].items() if name not in written
    }
    assert after["spec"] == before["spec"]
    assert not {"annotations", "finalizers", "labels"} & set(after["metadata"])


def test_the_pod_passes_pod_security_restricted(hands: Hands, namespace: str) -> None:
    hands.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    hands.submit(
        namespace,
        ("modelRef.cache", {"pvc": {"name": "models"}}),
        ("modelRef.config", {"configMap": {"name": "qwen"}}),
    )
    template = hands.job(namespace)["spec"]["template"]
    metadata = {"name": "probe", "namespace": namespace, **template["metadata"]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}

    made = hands.kube.create(POD, pod, dry_run=True)

    tokens = [mount["name"] for mount in made["spec"]["containers"][0]["volumeMounts"] if "token" in mount["name"]]
    assert tokens == []


def test_an_invalid_request_makes_no_job(hands: Hands, namespace: str) -> None:
    hands.submit(namespace, ("hardware.gpu.sku", "h200_sxmm"))

    said = hands.wait_accepted(namespace, "UnknownHardware", 1)
    assert said["status"] == "False"
    assert "h200_sxm" in said["message"]
    assert hands.names(RUN, namespace) == hands.names(JOB, namespace) == []

    hands.edit(namespace)
    hands.wait_accepted(namespace, "RunCreated", 2)
    assert hands.job(namespace, 2)


def test_supersede_then_rerun_then_the_same_again(hands: Hands, namespace: str, publisher: KubeClient) -> None:
    hands.submit(namespace)
    first = hands.job(namespace)["metadata"]["name"]
    hands.edit(namespace, ("hardware.gpu.budget", 8))
    hands.collect(namespace)
    second = hands.job(namespace, 2)["metadata"]["name"]
    assert hands.wait_completed(namespace, "Superseded")["message"] == f"run {second} took its place"
    hands.wait_accepted(namespace, "RunCreated", 2)

    outcome = {"reason": "NoFeasibleCandidate", "message": "none", "time": NOW}
    hands.publish(publisher, namespace, 2, outcome=outcome)
    hands.wait_completed(namespace, "NoFeasibleCandidate", 2)
    hands.edit(namespace, ("hardware.gpu.budget", 8), ("rerun", {"reason": "again"}))
    third = hands.job(namespace, 3)["metadata"]["name"]
    hands.edit(namespace, ("hardware.gpu.budget", 8), ("rerun", {"reason": "again"}), ("image", "example.org/x:2"))
    said = hands.wait_accepted(namespace, "RunCreated", 4)
    assert third in said["message"]
    assert hands.names(RUN, namespace) == sorted([first, second, third])
    refs = hands.kube.get(REQUEST, namespace, "qwen")["status"]
    assert [ref["name"] for ref in refs["recentRunRefs"]] == [third, second, first]
    assert refs["activeRunRef"] == {"name": third}


def test_cancel_by_annotation_and_by_suspending(hands: Hands, namespace: str) -> None:
    hands.submit(namespace)
    name = hands.job(namespace)["metadata"]["name"]
    hands.kubectl("annotate", f"{RUN.plural}.sweeper.dgdr.dev", name, "-n", namespace, f"{ANNOTATION_CANCEL}=too dear")
    hands.collect(namespace)
    assert hands.wait_completed(namespace, "Cancelled")["message"] == "too dear"
    eventually(lambda: hands.names(JOB, namespace) == [] or None)

    hands.edit(namespace, ("recommendation", {"maxCandidates": 5}))
    hands.job(namespace, 2)
    hands.edit(namespace, ("suspend", True))
    hands.collect(namespace, 2)
    assert hands.wait_completed(namespace, "Cancelled", 2)["message"] == "the request is suspended"
    assert hands.names(JOB, namespace) == []


def test_history_is_pruned(hands: Hands, namespace: str, publisher: KubeClient) -> None:
    hands.submit(namespace)
    for generation in range(1, 13):
        hands.publish(publisher, namespace, generation, outcome={"reason": "Unsupported", "message": "no", "time": NOW})
        hands.wait_completed(namespace, "Unsupported", generation)
        hands.edit(namespace, ("rerun", {"reason": f"round {generation}"}))
        hands.job(namespace, generation + 1)
    eventually(lambda: len(hands.names(RUN, namespace)) == 10 or None)

    def refs() -> list[str]:
        found = hands.kube.get(REQUEST, namespace, "qwen")["status"]["recentRunRefs"]
        return sorted(ref["name"] for ref in found)

    eventually(lambda: refs() == hands.names(RUN, namespace) or None)


def test_a_recreated_request_never_adopts_the_old_run(hands: Hands, namespace: str) -> None:
    hands.submit(namespace)
    old = hands.run(namespace)["metadata"]
    hands.kubectl("delete", f"{REQUEST.plural}.sweeper.dgdr.dev", "qwen", "-n", namespace)
    new = hands.submit(namespace)

    def runs() -> list[dict[str, Any]] | None:
        found = hands.kube.list(RUN, namespace).items
        owned = [run for run in found if run["metadata"]["ownerReferences"][0]["uid"] == new["metadata"]["uid"]]
        return owned or None

    (made,) = eventually(runs)
    hands.wait_accepted(namespace, "RunCreated", 1)
    status = hands.kube.get(REQUEST, namespace, "qwen")["status"]
    assert status["recentRunRefs"] == [{"name": made["metadata"]["name"]}]
    assert made["metadata"]["name"] != old["name"]


def test_what_the_cluster_says_about_a_pod_that_may_not_exist(hands: Hands, namespace: str) -> None:
    hands.submit(namespace)
    job = hands.job(namespace)
    words = 'pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1'
    hands.kube.create(EVENT, _failed_create(job, words, NOW))
    eventually(lambda: hands.wait_completed(namespace, "Pending")["message"] == words or None)

    words = 'pods "x" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false'
    hands.kube.create(EVENT, _failed_create(job, words, "2026-01-02T03:05:05Z"))
    said = hands.wait_completed(namespace, "PodRejected")
    assert (said["status"], said["message"]) == ("True", words)
    hands.collect(namespace)


def _failed_create(job: dict[str, Any], words: str, now: str) -> dict[str, Any]:
    about = {"apiVersion": "batch/v1", "kind": "Job"} | job
    return build_event(about, type="Warning", reason="FailedCreate", message=words, now=now, component="job-controller")


def test_a_failed_job_without_an_outcome(hands: Hands, namespace: str) -> None:
    hands.submit(namespace)
    hands.fail_job(namespace, "PodFailurePolicy", "Container sweeper failed with exit code 4")

    said = hands.wait_completed(namespace, "SearchFailed")
    assert "Container sweeper failed with exit code 4" in said["message"]
    assert hands.run(namespace)["status"]["phase"] == "Failed"


def test_probes_metrics_and_logs(hands: Hands, namespace: str) -> None:
    hands.submit(namespace)
    name = hands.job(namespace)["metadata"]["name"]
    hands.wait_completed(namespace, "Pending")

    assert hands.operator.page("/healthz") == (200, "ok\n")
    assert hands.operator.page("/readyz") == (200, "ok\n")
    assert hands.operator.page("/nothing")[0] == 404
    eventually(lambda: hands.operator.metric('dgdr_runs{phase="Pending",reason="Pending"}') >= 1 or None)
    assert hands.operator.metric("dgdr_reconcile_seconds_count") > 0
    lines = [line for line in hands.operator.log() if line.get("run") == name]
    assert {line["namespace"] for line in lines} == {namespace}
    assert not [line for line in hands.operator.log() if line["level"] == "error"], json.dumps(hands.operator.log())
