"""The Job of a run, byte for byte, and what must hold of every one. ``DGDR_GOLDEN=write`` writes the files anew."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from dgdr_api.base import wire
from dgdr_api.defaults import run_spec
from dgdr_api.free_form import job_problems
from dgdr_api.group import GROUP
from dgdr_api.parse import request_of
from dgdr_api.run import DynamoGraphDeploymentRun
from dgdr_api.run_object import run_of
from dgdr_operator.job_builder import build_job, build_role_binding, build_service_account
from dgdr_operator.settings import JobSettings

from tests.api.objects import request

GOLDEN = Path(__file__).parent / "golden"
SETTINGS = JobSettings(sweeper_image="example.org/sweeper:1", publisher_image="example.org/publisher:1")
OVERRIDE: dict[str, Any] = {
    "ttlSecondsAfterFinished": 60,
    "activeDeadlineSeconds": 600,
    "metadata": {"labels": {"team": "a"}, "annotations": {"why": "test"}},
    "template": {
        "metadata": {"labels": {"team": "a"}, "annotations": {"sidecar.istio.io/inject": "false"}},
        "spec": {
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "nodeSelector": {"pool": "cpu"},
            "affinity": {"nodeAffinity": {}},
            "priorityClassName": "low",
            "imagePullSecrets": [{"name": "registry"}],
            "containers": [{"name": "sweeper", "resources": {"requests": {"cpu": "16"}, "limits": {"memory": "32Gi"}}}],
        },
    },
}
PVC_TRACE = {"trace": {"source": {"pvc": {"claimName": "traces", "path": "a.jsonl"}}}}
CASES: dict[str, tuple[list[tuple[str, Any]], JobSettings]] = {
    "minimal": ([], SETTINGS),
    "everything": (
        [
            ("image", "example.org/mine:2"),
            ("workload", PVC_TRACE),
            ("modelRef.cache", {"pvc": {"name": "models"}}),
            ("modelRef.config", {"configMap": {"name": "qwen"}}),
            ("overrides", {"profilingJob": OVERRIDE}),
        ],
        JobSettings(
            sweeper_image="example.org/sweeper:1",
            publisher_image="example.org/publisher:1",
            publisher_cluster_role="mine",
            image_pull_policy="Never",
            image_pull_secrets=("base",),
            workspace_medium="Memory",
            workspace_size="1Gi",
            active_deadline_s=3600,
            ttl_s=10,
            grace_period_s=30,
        ),
    ),
}


def run(*changes: tuple[str, Any]) -> dict[str, Any]:
    metadata = {"name": "qwen", "namespace": "team-a", "uid": "12345678-0000-4000-8000-000000000000", "generation": 3}
    made = request_of(request(*changes) | {"metadata": metadata})
    value = wire(run_of(made, run_spec(made.spec, sweeper_image=SETTINGS.sweeper_image)))
    value["metadata"] |= {"uid": "87654321-0000-4000-8000-000000000000", "resourceVersion": "7", "managedFields": []}
    return value


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str) -> None:
    changes, settings = CASES[name]
    made = run(*changes)
    objects = [build_service_account(made), build_role_binding(made, settings), build_job(made, settings)]
    text = yaml.safe_dump_all(objects, sort_keys=True, width=1_000_000)
    file = GOLDEN / f"{name}.yaml"
    if os.environ.get("DGDR_GOLDEN") == "write":
        file.write_text(text, "utf-8")

    assert text == file.read_text("utf-8")


@pytest.fixture(params=CASES)
def pod(request: pytest.FixtureRequest) -> dict[str, Any]:
    changes, settings = CASES[request.param]
    return build_job(run(*changes), settings)["spec"]["template"]["spec"]  # type: ignore[no-any-return]


def test_only_the_publisher_has_a_token(pod: dict[str, Any]) -> None:
    (publisher,), (sweeper,) = pod["initContainers"], pod["containers"]
    tokens = [
        volume["name"]
        for volume in pod["volumes"]
        if any("serviceAccountToken" in source for source in volume.get("projected", {}).get("sources", ()))
    ]

    assert pod["automountServiceAccountToken"] is False
    assert tokens == ["token"]
    assert "token" in [mount["name"] for mount in publisher["volumeMounts"]]
    assert "token" not in [mount["name"] for mount in sweeper["volumeMounts"]]


def test_what_the_request_names_is_read_only(pod: dict[str, Any]) -> None:
    named = {volume["name"] for volume in pod["volumes"] if {"persistentVolumeClaim", "configMap"} & set(volume)}
    for container in pod["initContainers"] + pod["containers"]:
        assert all(mount.get("readOnly") for mount in container["volumeMounts"] if mount["name"] in named)
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
    for volume in pod["volumes"]:
        assert volume.get("persistentVolumeClaim", {"readOnly": True})["readOnly"]


def test_the_override_is_one_that_admission_takes() -> None:
    assert list(job_problems(OVERRIDE)) == []


def test_the_sweeper_reads_its_run_and_nothing_of_other_writers() -> None:
    made = run()
    made["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = "x" * 1000
    annotations = build_job(made, SETTINGS)["spec"]["template"]["metadata"]["annotations"]
    found = json.loads(annotations[f"{GROUP}/run-object"])

    assert found["spec"] == made["spec"]
    assert all(name.startswith(GROUP) for name in found["metadata"]["annotations"])
    assert DynamoGraphDeploymentRun.model_validate(found).metadata.uid == made["metadata"]["uid"]


def test_a_trace_uri_brings_its_secret_to_the_sweeper_alone() -> None:
    uri = {"trace": {"source": {"uri": {"url": "s3://bucket/a.jsonl", "secret": "s3"}}}}
    pod = build_job(run(("workload", uri)), SETTINGS)["spec"]["template"]["spec"]

    assert pod["containers"][0]["envFrom"] == [{"secretRef": {"name": "s3"}}]
    assert "envFrom" not in pod["initContainers"][0]


def test_one_claim_for_trace_and_model_is_mounted_once() -> None:
    made = run(("workload", PVC_TRACE), ("modelRef.cache", {"pvc": {"name": "traces"}}))
    volumes = build_job(made, SETTINGS)["spec"]["template"]["spec"]["volumes"]

    assert len([volume for volume in volumes if "persistentVolumeClaim" in volume]) == 1


def test_the_token_of_a_gated_model_never_reaches_the_job() -> None:
    made = run(("modelRef.tokenSecret", {"name": "hf-secret"}))
    pod = build_job(made, SETTINGS)["spec"]["template"]["spec"]

    assert "hf-secret" not in json.dumps(pod)
