"""From ``kubectl apply`` to a promoted deployment, on a real kubelet, with PodSecurity ``restricted``."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from dgdr_api import reasons
from dgdr_api.candidate_resource import DynamoGraphDeploymentCandidate
from dgdr_api.canonical import canonical_json
from dgdr_api.run import DynamoGraphDeploymentRun
from dgdr_kube.resource import CONFIG_MAP, EVENT, JOB, POD, ROLE_BINDING, SERVICE_ACCOUNT
from dgdr_operator.kinds import RUN
from dgdr_publisher.cluster.kinds import CANDIDATE

from tests.cluster.conftest import LARGE
from tests.cluster.engine import hold
from tests.cluster.laptop import Laptop, assert_the_same
from tests.cluster.promotion import DGD, Dynamo
from tests.cluster.team import Team, completed, document, eventually

MAX_STATUS_BYTES = 32 * 1024


@pytest.mark.parametrize("example", ["qwen3-32b", "qwen3-32b-pareto", "unsupported"])
def test_an_example_ends_as_on_a_laptop(team: Team, laptop: Callable[..., Laptop], example: str) -> None:
    team.apply(document(example))
    team.accepted(example, "RunCreated")
    run = team.end(example)

    assert_the_same(team, run, laptop(example))
    assert_status(team, run)
    assert_request(team, example, run)
    assert_one_pod(team, example)
    assert_columns(team, run)


def test_candidates_appear_while_the_search_runs(team: Team, laptop: Callable[..., Laptop]) -> None:
    name = LARGE[0]
    team.apply(document(*LARGE))
    team.until(name, lambda status: status.get("candidateRefs"), "the first candidates")
    held = hold(team, name)

    status = team.status(name)
    run = team.run(name)
    assert status["phase"] == "Running"
    assert completed(status)[:2] == ("False", "EvaluatingCandidates")
    done, total = map(int, status["progress"]["summary"].split("/"))
    assert 0 < done < total
    assert set(team.candidates(run)) == {ref["name"] for ref in status["candidateRefs"]}
    assert all("rank" not in item["status"] for item in team.candidates(run).values())
    assert "completionTime" not in status
    held.release()

    run = team.end(name)
    assert_the_same(team, run, laptop(*LARGE))
    assert [item["status"]["rank"] for item in by_rank(team, run)] == [1, 2, 3, 4, 5]


def test_a_candidate_is_promoted_and_outlives_its_request(team: Team, dynamo: Dynamo) -> None:
    team.apply(document("qwen3-32b"))
    run = team.end("qwen3-32b")
    best = by_rank(team, run)[0]
    name = best["metadata"]["name"]

    shown = dynamo.dgdr("promote", name, "--name", "chat", "--dry-run=server", "-n", team.namespace)
    assert shown.returncode == 0, shown.stderr
    assert team.names(DGD) == []
    done = dynamo.dgdr("promote", name, "--name", "chat", "-n", team.namespace)
    assert done.returncode == 0, done.stderr
    again = dynamo.dgdr("promote", name, "--name", "chat", "-n", team.namespace)
    assert again.returncode == 2
    assert "chat" in again.stderr
    promoted = team.kube.get(DGD, team.namespace, "chat")
    simulated = {field: value for field, value in best["spec"].items() if field != "parameters"}
    assert canonical_json(promoted["spec"]) == canonical_json(simulated)
    told = canonical_json(promoted["metadata"]["annotations"])
    assert name in told
    assert best["metadata"]["labels"]["sweeper.dgdr.dev/dgd-spec-hash"] in told

    team.kubectl("delete", "dgdreq", "qwen3-32b", "-n", team.namespace)
    gone = (RUN, JOB, POD, CANDIDATE, ROLE_BINDING)
    eventually(lambda: not any(team.names(kind) for kind in gone) or None, "everything of the request goes")
    assert team.names(SERVICE_ACCOUNT) == ["default"]
    assert team.names(CONFIG_MAP) == ["kube-root-ca.crt"]
    assert team.kube.get(DGD, team.namespace, "chat")["metadata"]["uid"] == promoted["metadata"]["uid"]


def by_rank(team: Team, run: dict[str, Any]) -> list[dict[str, Any]]:
    """The candidates in the order in which the run names them."""
    found = team.candidates(run)
    return [found[ref["name"]] for ref in run["status"]["candidateRefs"]]


def assert_status(team: Team, run: dict[str, Any]) -> None:
    """Every field of a finished run's status is there, is of its form, and says what the others say."""
    status = run["status"]
    DynamoGraphDeploymentRun.model_validate(run)
    for candidate in team.candidates(run).values():
        DynamoGraphDeploymentCandidate.model_validate(candidate)
        assert candidate["metadata"]["ownerReferences"][0]["uid"] == run["metadata"]["uid"]
    assert status["phase"] == "Succeeded"
    said = {one["type"]: one for one in status["conditions"]}
    assert set(said) == {reasons.SUPPORTED, reasons.VERSION_BOUND, reasons.PUBLISHED, reasons.COMPLETED}
    for kind, one in said.items():
        assert reasons.reason_named(kind, one["reason"]).status == one["status"]
    assert said["Completed"]["reason"] == status["outcome"]["reason"]
    assert status["jobRef"] == {"name": run["metadata"]["name"], "uid": uid_of(team, JOB, run["metadata"]["name"])}
    counters = status["progress"]["evaluations"]
    assert counters["running"] == counters["remaining"] == 0
    assert status["progress"]["summary"] == f"{counters['scheduled']}/{counters['scheduled']}"
    assert status["progress"]["candidates"]["published"] == len(status.get("candidateRefs", ()))
    assert all(branch["rounds"]["completed"] == branch["rounds"]["total"] for branch in status["progress"]["branches"])
    assert status["reportRef"]["name"] in {item["metadata"]["name"] for item in team.shards(run)}
    times = [status[name] for name in ("startTime", "lastProgressTime", "completionTime")]
    moments = [datetime.fromisoformat(text) for text in times]
    assert moments == sorted(moments)
    assert len(canonical_json(status).encode()) < MAX_STATUS_BYTES
    assert writers(run) == {"dgdr-operator", "dgdr-publisher"}
    told = {event["reason"] for event in team.kube.list(EVENT, team.namespace).items}
    assert {"RunCreated", status["outcome"]["reason"]} <= told


def assert_request(team: Team, name: str, run: dict[str, Any]) -> None:
    """Nothing was written into the user's object but its status."""
    eventually(lambda: "activeRunRef" not in team.request(name)["status"] or None, "no active run")
    request = team.request(name)
    assert request["status"]["recentRunRefs"] == [{"name": run["metadata"]["name"]}]
    assert request["status"]["observedGeneration"] == request["metadata"]["generation"] == 1
    assert set(request["metadata"]["annotations"]) == {"kubectl.kubernetes.io/last-applied-configuration"}
    assert not {"finalizers", "labels"} & set(request["metadata"])
    assert writers(request) == {"dgdr-operator"}
    assert run["metadata"]["ownerReferences"][0]["uid"] == request["metadata"]["uid"]
    assert "finalizers" not in run["metadata"]


def assert_one_pod(team: Team, name: str) -> None:
    """One Job, one pod, one attempt, and no token in the sweeper."""

    def complete() -> dict[str, Any] | None:
        job = team.job(name)
        assert job is not None
        ended = {one["type"] for one in job.get("status", {}).get("conditions", ()) if one["status"] == "True"}
        return job if "Complete" in ended else None

    eventually(complete, "the Job is complete")
    (pod,) = team.pods(name)
    (sweeper,) = pod["status"]["containerStatuses"]
    assert sweeper["state"]["terminated"]["exitCode"] == 0
    assert sweeper["restartCount"] == 0
    mounts = [mount["mountPath"] for mount in pod["spec"]["containers"][0]["volumeMounts"]]
    assert not [path for path in mounts if "serviceaccount" in path]
    assert pod["spec"]["automountServiceAccountToken"] is False


def assert_columns(team: Team, run: dict[str, Any]) -> None:
    """What ``kubectl get`` shows are values, not gaps."""
    shown = team.kubectl("get", "dgdrrun", run["metadata"]["name"], "-n", team.namespace).stdout.splitlines()
    assert shown[0].split() == ["NAME", "PHASE", "DONE", "FEASIBLE", "BEST", "CANDIDATES", "COMPLETED", "AGE"]
    row = shown[1].split()
    assert row[:3] == [run["metadata"]["name"], "Succeeded", run["status"]["progress"]["summary"]]
    assert run["status"]["outcome"]["reason"] in row


def uid_of(team: Team, kind: Any, name: str) -> str:
    return str(team.kube.get(kind, team.namespace, name)["metadata"]["uid"])


def writers(value: dict[str, Any]) -> set[str]:
    """Who wrote the status, by server-side apply."""
    entries = [entry for entry in value["metadata"]["managedFields"] if entry.get("subresource") == "status"]
    assert all(entry["operation"] == "Apply" for entry in entries)
    return {entry["manager"] for entry in entries}
