"""The CRDs on a real API server: they apply, they explain themselves, they refuse and keep what they should."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from dgdr_api.base import wire
from dgdr_api.canonical import canonical_json
from dgdr_api.defaults import run_spec
from dgdr_api.identity import input_hash
from dgdr_api.parse import request_of
from dgdr_api.run import RunSpec

from tests.api.invalid import Invalid
from tests.api.invalid_objects import INVALID
from tests.api.objects import DGD_SPEC, candidate, changed, minimal_request, request, run
from tests.api.test_worst_case_status import worst_run_status
from tests.api.valid_objects import VALID
from tests.controlplane.kubectl import Kubectl

CRDS = Path(__file__).resolve().parents[2] / "crds"
Create = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def cluster(kubectl: Kubectl) -> Kubectl:
    for file in sorted(CRDS.glob("*.yaml")):
        kubectl.install_crds(file)
    return kubectl


@pytest.fixture
def create(cluster: Kubectl, namespace: str) -> Create:
    def created(value: dict[str, Any]) -> dict[str, Any]:
        made = cluster("create", "-n", namespace, "--validate=strict", "-f", "-", "-o", "json", input=json.dumps(value))
        return json.loads(made.stdout)  # type: ignore[no-any-return]

    return created


@pytest.mark.parametrize("invalid", INVALID, ids=lambda invalid: f"{invalid.id}-{invalid.field}")
def test_invalid_objects_are_refused_with_field_and_message(cluster: Kubectl, invalid: Invalid) -> None:
    refused = cluster(
        "create", "--dry-run=server", "--validate=strict", "-f", "-", input=json.dumps(invalid.object), check=False
    )

    assert refused.returncode != 0, refused.stdout
    assert (invalid.cluster_field or invalid.field) in refused.stderr
    assert invalid.cluster in refused.stderr


@pytest.mark.parametrize("made", [minimal_request(), run(), candidate()], ids=["request", "run", "candidate"])
def test_minimal_objects_come_back_unchanged(create: Create, made: dict[str, Any]) -> None:
    assert create(made)["spec"] == made["spec"]


@pytest.mark.parametrize("name", VALID)
def test_a_valid_object_near_a_rule_is_stored_as_it_is(create: Create, name: str) -> None:
    assert create(VALID[name])["spec"] == VALID[name]["spec"]


@pytest.mark.parametrize("name", VALID)
def test_a_defaulted_run_is_stored_with_its_hash(create: Create, name: str) -> None:
    spec = run_spec(request_of(VALID[name]).spec, sweeper_image="example.org/sweeper:1")

    stored = create(run() | {"spec": wire(spec)})["spec"]

    assert canonical_json(stored) == canonical_json(wire(spec))
    assert input_hash(RunSpec.model_validate(stored)) == input_hash(spec)


def test_free_form_parts_are_kept(create: Create) -> None:
    parameters = {"sweep": {"seed": 7}, "unknown": [{"deep": None}, 1.5]}
    overrides = {
        "dgd": {"spec": {"components": [{"name": "worker", "x": {"y": 1}}]}},
        "profilingJob": {"template": {"spec": {"tolerations": [{"key": "a"}]}}},
    }

    spec = create(request(("search", {"parameters": parameters}), ("overrides", overrides)))["spec"]

    assert spec["search"]["parameters"] == parameters
    assert spec["overrides"] == overrides
    assert create(candidate())["spec"] == DGD_SPEC


@pytest.mark.parametrize(
    ("made", "change"),
    [
        (run(), ("spec.hardware.gpu.budget", 8)),
        (run(), ("spec.search", {"parameters": {"sweep": {"seed": 1}}})),
        (run(), ("spec", ...)),
        (candidate(), ("spec.components", [])),
        (candidate(), ("spec.parameters.concurrency", 65)),
        (candidate(), ("spec.parameters.added", 1)),
        (candidate(), ("spec", ...)),
    ],
    ids=["run-typed", "run-free-form", "run-unset", "dgd", "parameters", "added", "candidate-unset"],
)
def test_an_update_of_an_immutable_spec_is_refused(
    cluster: Kubectl, create: Create, namespace: str, made: dict[str, Any], change: tuple[str, Any]
) -> None:
    stored = create(made)

    refused = cluster("replace", "-n", namespace, "-f", "-", input=json.dumps(changed(stored, change)), check=False)

    assert refused.returncode != 0
    assert "spec is immutable" in refused.stderr or "spec: Required value" in refused.stderr
    labelled = changed(stored, ("metadata.labels", {"a": "b"}))
    assert cluster("replace", "-n", namespace, "-f", "-", input=json.dumps(labelled)).returncode == 0


def test_a_request_may_change(cluster: Kubectl, create: Create, namespace: str) -> None:
    stored = create(minimal_request())

    cluster("replace", "-n", namespace, "-f", "-", input=json.dumps(changed(stored, ("spec.hardware.gpu.budget", 8))))

    assert _get(cluster, namespace, "dgdreq", "qwen")["metadata"]["generation"] == 2


def test_status_is_a_subresource(cluster: Kubectl, create: Create, namespace: str) -> None:
    stored = create(minimal_request() | {"status": {"observedGeneration": 9}})
    assert "status" not in stored

    _patch_status(cluster, namespace, "dgdreq", "qwen", {"observedGeneration": 1})

    found = _get(cluster, namespace, "dgdreq", "qwen")
    assert found["status"] == {"observedGeneration": 1}
    assert found["metadata"]["generation"] == 1


def test_printed_columns_of_a_request(cluster: Kubectl, create: Create, namespace: str) -> None:
    create(minimal_request())
    _patch_status(cluster, namespace, "dgdreq", "qwen", {
        "activeRunRef": {"name": "qwen-run-1-abcd"},
        "conditions": [_condition("Accepted", "True", "RunCreated")],
    })  # fmt: skip

    header, row = _table(cluster, namespace, "dgdreq")

    assert header == ["NAME", "MODEL", "SKU", "BUDGET", "ACTIVE", "RUN", "ACCEPTED", "AGE"]
    assert row[:6] == ["qwen", "Qwen/Qwen3-32B", "h200_sxm", "16", "qwen-run-1-abcd", "RunCreated"]


def test_printed_columns_of_a_run(cluster: Kubectl, create: Create, namespace: str) -> None:
    create(run())
    _patch_status(cluster, namespace, "dgdrrun", "qwen-run-1-abcd", {
        "phase": "Running",
        "progress": {"summary": "120/340", "evaluations": {"feasible": 7}, "candidates": {"published": 5}},
        "best": {"score": 1.5, "display": "583.7 tok/s/GPU", "usedGpus": 8, "mode": "agg", "backend": "sglang"},
        "conditions": [
            _condition("Supported", "True", "AllTuples"),
            _condition("Completed", "False", "EvaluatingCandidates"),
        ],
    })  # fmt: skip

    header, row = _table(cluster, namespace, "dgdrrun")

    assert header == ["NAME", "PHASE", "DONE", "FEASIBLE", "BEST", "CANDIDATES", "COMPLETED", "AGE"]
    assert row[:8] == ["qwen-run-1-abcd", "Running", "120/340", "7", "583.7", "tok/s/GPU", "5", "EvaluatingCandidates"]


def test_printed_columns_of_a_candidate(cluster: Kubectl, create: Create, namespace: str) -> None:
    create(candidate())
    display = {"mode": "agg", "score": "583.7", "ttft": "331 ms", "itl": "27.2 ms", "throughputPerGpu": "583.7"}
    _patch_status(cluster, namespace, "dgdc", "qwen-g1-abcd-01234567", {
        "rank": 1, "evaluation": {"score": 583.72, "usedGpus": 8, "display": display},
    })  # fmt: skip

    header, row = _table(cluster, namespace, "dgdc")

    assert header == ["NAME", "RANK", "MODE", "BACKEND", "GPUS", "SCORE", "TTFT", "ITL", "TOK/S/GPU", "AGE"]
    assert row[1:11] == ["1", "agg", "sglang", "8", "583.7", "331", "ms", "27.2", "ms", "583.7"]


def test_the_category_lists_all_kinds(cluster: Kubectl, create: Create, namespace: str) -> None:
    for made in (minimal_request(), run(), candidate()):
        create(made)

    listed = cluster("get", "-n", namespace, "dgdr-all", "-o", "name").stdout.split()

    assert [name.partition(".")[0] for name in listed] == [
        "dynamographdeploymentcandidate",
        "dynamographdeploymentrequest",
        "dynamographdeploymentrun",
    ]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("spec.hardware.gpu.budget", "Hard cap on all GPUs of one candidate, encoders included"),
        ("spec.search.router.overlapCredit", "Weight of cached blocks"),
        ("status.conditions.reason", "Why, as one word"),
    ],
)
def test_kubectl_explain_is_the_manual(cluster: Kubectl, path: str, text: str) -> None:
    said = cluster("explain", f"dynamographdeploymentrequests.{path}", "--api-version=sweeper.dgdr.dev/v1beta2")

    assert text in " ".join(said.stdout.split())


def test_conditions_are_a_map_by_type(cluster: Kubectl, create: Create, namespace: str) -> None:
    create(run())
    owner = {"apiVersion": "sweeper.dgdr.dev/v1beta2", "kind": "DynamoGraphDeploymentRun"}
    for manager, entry in (
        ("operator", _condition("Completed", "False", "Pending")),
        ("publisher", _condition("Supported", "True", "AllTuples")),
    ):
        applied = owner | {"metadata": {"name": "qwen-run-1-abcd"}, "status": {"conditions": [entry]}}
        cluster(
            "apply", "-n", namespace, "--server-side", f"--field-manager={manager}", "--subresource=status", "-f", "-",
            input=yaml.safe_dump(applied),
        )  # fmt: skip

    stored = _get(cluster, namespace, "dgdrrun", "qwen-run-1-abcd")

    assert sorted(entry["type"] for entry in stored["status"]["conditions"]) == ["Completed", "Supported"]


def test_the_worst_status_of_a_run_fits(cluster: Kubectl, create: Create, namespace: str) -> None:
    create(run())
    worst = worst_run_status()

    _patch_status(cluster, namespace, "dgdrrun", "qwen-run-1-abcd", worst)

    assert _get(cluster, namespace, "dgdrrun", "qwen-run-1-abcd")["status"] == worst


NULLS = {"planner": None, "sla": {"ttftMs": None, "e2eMs": 9000}, "roles": [{"timing": {"path": None}}]}


@pytest.mark.parametrize("written", ["apply", "replace"])
def test_nulls_of_a_replay_spec_are_kept(cluster: Kubectl, create: Create, namespace: str, written: str) -> None:
    stored = create(candidate())
    status = {"evaluation": {"score": 1, "usedGpus": 8, "replaySpec": NULLS}}
    if written == "replace":
        text, arguments = stored | {"status": status}, ["replace"]
    else:
        text = {name: stored[name] for name in ("apiVersion", "kind")} | {"status": status}
        text["metadata"] = {"name": stored["metadata"]["name"]}
        arguments = ["apply", "--server-side", "--field-manager=publisher"]

    cluster(*arguments, "-n", namespace, "--subresource=status", "-f", "-", input=json.dumps(text))

    found = _get(cluster, namespace, "dgdc", stored["metadata"]["name"])["status"]["evaluation"]["replaySpec"]
    assert found == NULLS


def test_a_merge_patch_drops_nulls_so_nothing_may_write_a_replay_spec_by_one(
    cluster: Kubectl, create: Create, namespace: str
) -> None:
    name = create(candidate())["metadata"]["name"]

    _patch_status(cluster, namespace, "dgdc", name, {"evaluation": {"score": 1, "usedGpus": 8, "replaySpec": NULLS}})

    found = _get(cluster, namespace, "dgdc", name)["status"]["evaluation"]["replaySpec"]
    assert found["sla"] == {"e2eMs": 9000}


def test_an_invalid_status_is_refused(cluster: Kubectl, create: Create, namespace: str) -> None:
    create(candidate())
    both = {"parameter": "a", "value": "1", "destination": "/a", "reason": "b"}
    patch = json.dumps({"status": {"materialization": [both]}})

    refused = cluster(
        "patch", "-n", namespace, "dgdc", "qwen-g1-abcd-01234567", "--subresource=status", "--type=merge", "-p", patch,
        check=False,
    )  # fmt: skip

    assert "status.materialization[0]" in refused.stderr
    assert "give exactly one of destination and reason" in refused.stderr


def _condition(type: str, status: str, reason: str) -> dict[str, Any]:  # noqa: A002
    return {
        "type": type,
        "status": status,
        "reason": reason,
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


def _get(cluster: Kubectl, namespace: str, kind: str, name: str) -> dict[str, Any]:
    return json.loads(cluster("get", "-n", namespace, kind, name, "-o", "json").stdout)  # type: ignore[no-any-return]


def _patch_status(cluster: Kubectl, namespace: str, kind: str, name: str, status: dict[str, Any]) -> None:
    patch = json.dumps({"status": status})
    cluster("patch", "-n", namespace, kind, name, "--subresource=status", "--type=merge", "-p", patch)


def _table(cluster: Kubectl, namespace: str, kind: str) -> list[list[str]]:
    return [line.split() for line in cluster("get", "-n", namespace, kind).stdout.splitlines()]
