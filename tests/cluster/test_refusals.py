"""A search that cannot start says so, in the cluster's own words, or never becomes a Job."""

import json
from typing import Any

import pytest
from dgdr_kube.resource import JOB, POD
from dgdr_operator.kinds import REQUEST, RUN

from tests.cluster.team import Team, completed, document, eventually

NAME = "qwen3-32b"
WITHIN_S = 60.0


def words(team: Team, text: str) -> tuple[str, str, str]:
    """Wait until the run says this, in its time."""

    def said() -> tuple[str, str, str] | None:
        found = completed(team.status(NAME))
        return found if text in found[2] else None

    return eventually(said, f"{text!r} in the message of the run", WITHIN_S)


def put(team: Team, kind: str, version: str, name: str, **fields: Any) -> None:
    value = {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": team.namespace}, **fields}
    team.kubectl("create", "-f", "-", input=json.dumps(value))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (("hardware.gpu.budget", 0), "budget"),
        (("objective.metric", "speed"), "metric"),
        (("workload.static.concurrency", 4), "exactly one"),
        (("hardware.gpu.badget", 16), "badget"),
        (("image", "Sweeper:9:9"), "image reference"),
    ],
)
def test_the_api_server_refuses_what_its_rules_know(team: Team, change: tuple[str, Any], word: str) -> None:
    made = document(NAME, change)
    made["metadata"]["namespace"] = team.namespace
    done = team.kubectl("create", "-f", "-", input=json.dumps(made), check=False)

    assert done.returncode != 0
    assert word in done.stderr
    assert team.names(REQUEST) == []


@pytest.mark.parametrize(
    ("change", "reason", "word"),
    [
        (("hardware.gpu.sku", "H2000"), "UnknownHardware", "H2000"),
        (("runtime.performanceDataVersion", ...), "VersionChainBroken", "performanceDataVersion"),
        (
            ("overrides", {"profilingJob": {"template": {"spec": {"hostNetwork": True}}}}),
            "InvalidOverride",
            "hostNetwork",
        ),
    ],
)
def test_what_only_the_catalog_knows_is_not_accepted(
    team: Team, change: tuple[str, Any], reason: str, word: str
) -> None:
    team.apply(document(NAME, change))

    assert word in team.accepted(NAME, reason)["message"]
    assert team.names(RUN) == team.names(JOB) == []


def test_a_quota_is_waited_for(team: Team) -> None:
    put(team, "ResourceQuota", "v1", "none", spec={"hard": {"pods": "0"}})
    team.apply(document(NAME))
    assert words(team, "exceeded quota")[:2] == ("False", "Pending")
    assert team.status(NAME)["phase"] == "Pending"

    team.kubectl("delete", "resourcequota", "none", "-n", team.namespace)
    team.kubectl("annotate", "dgdreq", NAME, "-n", team.namespace, "quota=gone")
    assert completed(team.end(NAME)["status"])[1] == "SearchSucceeded"


def test_a_limit_that_no_pod_of_ours_fits_ends_the_run(team: Team) -> None:
    put(team, "LimitRange", "v1", "small", spec={"limits": [{"type": "Container", "max": {"memory": "16Mi"}}]})
    team.apply(document(NAME))

    assert words(team, "maximum memory usage per Container")[:2] == ("True", "PodRejected")
    assert team.names(POD) == []


def test_a_claim_that_is_not_there_is_named(team: Team) -> None:
    team.apply(document(NAME, ("modelRef.cache", {"pvc": {"name": "models"}})))

    assert words(team, 'persistentvolumeclaim "models" not found')[:2] == ("False", "Pending")


def test_a_config_map_that_is_not_there_is_named(team: Team) -> None:
    team.apply(document(NAME, ("modelRef.config", {"configMap": {"name": "facts"}})))

    assert words(team, 'configmap "facts" not found')[:2] == ("False", "Pending")


def test_an_image_that_cannot_be_pulled_is_named(team: Team) -> None:
    team.apply(document(NAME, ("image", "registry.invalid/sweeper:9")))

    status, reason, _ = words(team, "registry.invalid/sweeper:9")
    assert (status, reason) in {("False", "Pending"), ("True", "PodRejected")}


def test_more_than_a_node_has_is_waited_for(team: Team) -> None:
    containers = [{"name": "sweeper", "resources": {"requests": {"cpu": "1000"}}}]
    team.apply(document(NAME, ("overrides", {"profilingJob": {"template": {"spec": {"containers": containers}}}})))

    assert words(team, "Insufficient cpu")[:2] == ("False", "Pending")


def test_a_sweeper_without_memory_ends_with_the_clusters_words(team: Team) -> None:
    resources = {"requests": {"memory": "32Mi"}, "limits": {"memory": "32Mi"}}
    containers = [{"name": "sweeper", "resources": resources}]
    team.apply(document(NAME, ("overrides", {"profilingJob": {"template": {"spec": {"containers": containers}}}})))
    run = team.end(NAME)

    status, reason, message = completed(run["status"])
    assert (status, reason) == ("True", "SearchFailed")
    assert "died" in message or "OOMKilled" in message
