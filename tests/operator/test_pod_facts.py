"""The cluster's own words: what keeps a search from running, and whether waiting can help."""

from typing import Any

import pytest
from dgdr_api.completion import PodFacts
from dgdr_operator.pod_facts import MOST_PUBLISHER_CRASHES, pod_facts
from dgdr_operator.snapshot import Refusal, RunView

JOB = {"metadata": {"name": "run-1", "namespace": "n", "uid": "j"}}
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
RUNNING: dict[str, Any] = {"state": {"running": {}}}
WAITING: dict[str, Any] = {"state": {"waiting": {"reason": "PodInitializing"}}}


def container(name: str, state: dict[str, Any], restarts: int = 0) -> dict[str, Any]:
    return {"name": name, "restartCount": restarts, **state}


def pod(name: str = "run-1-a", created: str = "2026-01-01T00:00:00Z", **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "n", "uid": name, "creationTimestamp": created}, "status": status}


def of(
    sweeper: dict[str, Any] = WAITING, publisher: dict[str, Any] = RUNNING, restarts: int = 0, **status: Any
) -> dict[str, Any]:
    return pod(
        initContainerStatuses=[container("publisher", publisher, restarts)],
        containerStatuses=[container("sweeper", sweeper)],
        **status,
    )


def waits(reason: str, message: str = "words") -> dict[str, Any]:
    return {"state": {"waiting": {"reason": reason, "message": message}}}


def ended(reason: str, code: int, message: str = "") -> dict[str, Any]:
    return {"terminated": {"reason": reason, "exitCode": code, "message": message}}


def event(kind: str, name: str, reason: str, message: str, time: str = "2026-01-01T00:00:00Z") -> dict[str, Any]:
    return {
        "metadata": {"name": f"{name}.{time}", "namespace": "n"},
        "involvedObject": {"kind": kind, "name": name},
        "reason": reason,
        "message": message,
        "lastTimestamp": time,
    }


def facts(*pods: dict[str, Any], events: tuple[dict[str, Any], ...] = ()) -> PodFacts | None:
    return pod_facts(RunView(run={"metadata": {"name": "run-1"}}, job=JOB, pods=pods, events=events))


@pytest.mark.parametrize(
    ("words", "final"),
    [
        ('pods "x" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true', True),
        ('pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1', False),
        ('pods "x" is forbidden: error looking up service account n/x: serviceaccount "x" not found', False),
        ('pods "x" is forbidden: no PriorityClass with name urgent was found', True),
        ('pods "x" is forbidden: maximum memory usage per Container is 1Gi, but limit is 4Gi', True),
        ('admission webhook "policy.example.org" denied the request: no', True),
        ('Internal error occurred: failed calling webhook "w": connection refused', False),
        ('Pod "x" is invalid: spec.tolerations[0].key: Invalid value', True),
    ],
)
def test_a_pod_that_is_not_created(words: str, *, final: bool) -> None:
    assert facts(events=(event("Job", "run-1", "FailedCreate", words),)) == PodFacts(rejected=final, message=words)


def test_the_last_refusal_counts() -> None:
    events = (
        event("Job", "run-1", "FailedCreate", "exceeded quota: q", "2026-01-01T00:00:09Z"),
        event("Job", "run-1", "FailedCreate", "violates PodSecurity", "2026-01-01T00:00:01Z"),
    )
    assert facts(events=events) == PodFacts(rejected=False, message="exceeded quota: q")


def test_refusals_of_another_job_say_nothing() -> None:
    assert facts(events=(event("Job", "run-2", "FailedCreate", "violates PodSecurity"),)) == PodFacts(
        message="the Job has no pod yet"
    )


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (of(RUNNING), PodFacts(running=True)),
        (of(), PodFacts(message="pod run-1-a starts")),
        (
            pod(conditions=[UNSCHEDULABLE | {"message": "0/3 nodes are available"}]),
            PodFacts(message="Unschedulable: 0/3 nodes are available"),
        ),
        (
            pod(conditions=[UNSCHEDULABLE | {"message": 'persistentvolumeclaim "traces" not found'}]),
            PodFacts(message='Unschedulable: persistentvolumeclaim "traces" not found'),
        ),
        (of(waits("ImagePullBackOff")), PodFacts(message="sweeper: ImagePullBackOff: words")),
        (
            of(publisher=waits("InvalidImageName")),
            PodFacts(rejected=True, message="publisher: InvalidImageName: words"),
        ),
        (
            of(waits("CreateContainerConfigError", 'configmap "qwen" not found')),
            PodFacts(message='sweeper: CreateContainerConfigError: configmap "qwen" not found'),
        ),
        (
            of({"state": ended("OOMKilled", 137)}),
            PodFacts(message="sweeper ended: OOMKilled, exit code 137"),
        ),
        (
            of({"state": ended("Error", 4, "no performance data\n")}),
            PodFacts(message="sweeper ended: Error, exit code 4: no performance data"),
        ),
        (
            of(publisher=waits("CrashLoopBackOff") | {"lastState": ended("Error", 1, "boom")}, restarts=2),
            PodFacts(message="publisher ended: Error, exit code 1: boom; CrashLoopBackOff: words"),
        ),
        (
            of(
                publisher=waits("CrashLoopBackOff") | {"lastState": ended("OOMKilled", 137)},
                restarts=MOST_PUBLISHER_CRASHES,
            ),
            PodFacts(rejected=True, message="publisher ended: OOMKilled, exit code 137; CrashLoopBackOff: words"),
        ),
        (of(RUNNING, {"lastState": ended("Error", 1), "state": {}}, restarts=9), PodFacts(running=True)),
        (
            pod(phase="Failed", reason="Evicted", message="the node was low on memory"),
            PodFacts(message="Evicted: the node was low on memory"),
        ),
    ],
    ids=lambda value: value.message if isinstance(value, PodFacts) else "",
)
def test_a_pod_says_where_it_stands(found: dict[str, Any], expected: PodFacts) -> None:
    assert facts(found) == expected


def test_a_mount_that_fails() -> None:
    words = 'MountVolume.SetUp failed for volume "model-config": configmap "qwen" not found'
    waiting = of(waits("PodInitializing"), waits("PodInitializing"))

    assert facts(waiting, events=(event("Pod", "run-1-a", "FailedMount", words),)) == PodFacts(
        message=f"FailedMount: {words}"
    )


def test_the_newest_pod_that_stays_counts() -> None:
    old = pod("run-1-a", "2026-01-01T00:00:00Z", phase="Failed", reason="Evicted")
    going = pod("run-1-c", "2026-01-01T00:00:02Z", phase="Failed", reason="Preempted")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:03Z"
    new = of(RUNNING) | {"metadata": pod("run-1-b", "2026-01-01T00:00:01Z")["metadata"]}

    assert facts(old, going, new) == PodFacts(running=True)


def test_without_a_job_only_a_refusal_speaks() -> None:
    run = {"metadata": {"name": "run-1"}}
    assert pod_facts(RunView(run=run)) is None
    refused = RunView(run=run, refusal=Refusal("run-1", "exceeded quota", final=False))
    assert pod_facts(refused) == PodFacts(message="exceeded quota")
