"""Promotion on a real API server: exactly what was simulated is created, or nothing is, and why."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dgdr_api import reasons
from dgdr_api.group import LABEL_DGD_SPEC_HASH, LABEL_INPUT_HASH, LABEL_POINT_HASH, LABEL_RUN_UID
from dgdr_api.identity import dgd_spec_hash, point_hash
from dgdr_cli.cluster.kinds import CANDIDATE, DGD, RUN
from dgdr_kube.client import KubeClient
from dgdr_kube.errors import Forbidden, Retryable
from dgdr_kube.resource import Resource
from typer.testing import Result

from tests.cli.cluster.conftest import Ask, install_kinds, world_of
from tests.cli.cluster.world import World
from tests.conftest import ROOT
from tests.controlplane.kubectl import Kubectl
from tests.controlplane.plane import ControlPlane, start_control_plane
from tests.publisher.waiting import until

STAND_IN = ROOT / "tests/cluster/dgd-crd.yaml"
"""Dynamo's kind where its own CRD is not at hand."""
ENDS = [reason for reason in reasons.reasons_of("Completed") if reason.status == "True"]
STANDS = [reason for reason in reasons.reasons_of("Completed") if reason.status == "False"]


def test_what_was_simulated_is_created(ask: Ask, world: World) -> None:
    found = world.ended()
    candidate = world.get(CANDIDATE, found.candidates[0])

    ended = ask("promote", found.candidates[0], "--name", "qwen")

    assert (ended.exit_code, ended.stderr) == (0, "")
    assert ended.stdout == f"deployment qwen created from candidate {found.candidates[0]}\n"
    made = world.get(DGD, "qwen")
    spec = {name: value for name, value in candidate["spec"].items() if name != "parameters"}
    labels = candidate["metadata"]["labels"]
    assert made["apiVersion"] == "nvidia.com/v1beta1"
    assert made["spec"] == spec
    assert dgd_spec_hash(made["spec"]) == labels[LABEL_DGD_SPEC_HASH]
    assert made["metadata"]["annotations"] == {
        "sweeper.dgdr.dev/run": found.run,
        "sweeper.dgdr.dev/candidate": found.candidates[0],
        "sweeper.dgdr.dev/input-hash": labels[LABEL_INPUT_HASH],
        "sweeper.dgdr.dev/point-hash": labels[LABEL_POINT_HASH],
        "sweeper.dgdr.dev/dgd-spec-hash": labels[LABEL_DGD_SPEC_HASH],
    }
    assert "ownerReferences" not in made["metadata"]
    assert [(one["manager"], one["operation"]) for one in made["metadata"]["managedFields"]] == [
        ("kubectl-dgdr", "Update")
    ]


def test_a_server_dry_run_creates_nothing(ask: Ask, world: World) -> None:
    found = world.ended()

    ended = ask("promote", found.candidates[1], "--name", "qwen", "--dry-run=server", "-o", "json")

    assert (ended.exit_code, ended.stderr) == (0, "")
    assert json.loads(ended.stdout)["metadata"]["name"] == "qwen"
    assert world.names(DGD) == []
    text = ask("promote", found.candidates[1], "--name", "qwen", "--dry-run=server")
    assert text.stdout == f"deployment qwen would be created (server dry run) from candidate {found.candidates[1]}\n"


def test_the_server_is_asked_to_try_first(ask: Ask, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    found, asked = world.ended(), []
    create = KubeClient.create

    def observed(kube: KubeClient, resource: Resource, value: Any, *, dry_run: bool = False) -> dict[str, Any]:
        asked.append((resource.kind, dry_run))
        return create(kube, resource, value, dry_run=dry_run)

    monkeypatch.setattr(KubeClient, "create", observed)
    assert ask("promote", found.candidates[0], "--name", "qwen").exit_code == 0
    assert asked == [("DynamoGraphDeployment", True), ("DynamoGraphDeployment", False)]


def test_a_deployment_that_exists_is_left_as_it_is(ask: Ask, world: World) -> None:
    found = world.ended()
    assert ask("promote", found.candidates[0], "--name", "qwen").exit_code == 0
    before = world.get(DGD, "qwen")

    ended = ask("promote", found.candidates[1], "--name", "qwen")

    assert ended.exit_code == 2
    assert f"deployment qwen exists in namespace {world.namespace} and is left as it is" in ended.stderr
    assert world.get(DGD, "qwen") == before


@pytest.mark.parametrize("reason", ENDS, ids=lambda reason: reason.name)
def test_every_ended_run_may_be_promoted_from(ask: Ask, world: World, reason: reasons.Reason) -> None:
    found = world.ended(reason)

    ended = ask("promote", found.candidates[0], "--name", "qwen")

    assert ended.exit_code == 0, ended.stderr
    said = "" if reason is reasons.SEARCH_SUCCEEDED else f"dgdr: run {found.run} ended {reason.name}: 2 candidates\n"
    assert ended.stderr == said


@pytest.mark.parametrize("reason", STANDS, ids=lambda reason: reason.name)
def test_a_run_that_has_not_ended_is_waited_for(ask: Ask, world: World, reason: reasons.Reason) -> None:
    found = world.publish(world.run())
    world.stand(found.run, reason, "120/340")
    refused(ask, world, found.candidates[0], 2, f"run {found.run} has not ended ({reason.name}: 120/340)")


def test_a_run_that_never_started(ask: Ask, world: World) -> None:
    found = world.publish(world.run())
    refused(ask, world, found.candidates[0], 2, "has not ended (it has not started)")


def refused(ask: Ask, world: World, candidate: str, code: int, *words: str, name: str = "qwen") -> None:
    """Nothing is created, not even tried, and the message says why."""
    ended = ask("promote", candidate, "--name", name)
    assert ended.exit_code == code, ended.output
    assert ended.stdout == ""
    for word in (*words, "dgdr: "):
        assert word in ended.stderr
    assert "Traceback" not in ended.stderr
    assert world.names(DGD) == []


def test_a_run_that_is_gone_or_another_one(ask: Ask, world: World) -> None:
    found = world.ended()
    world.copy_of(RUN, found.run)
    refused(ask, world, found.candidates[0], 2, f"it belongs to another run of the name {found.run}")
    world.delete(RUN, found.run)
    refused(ask, world, found.candidates[0], 2, f"its run {found.run} is gone")


def test_a_candidate_that_no_run_owns(ask: Ask, world: World) -> None:
    found = world.ended()
    world.copy_of(CANDIDATE, found.candidates[0], metadata={"ownerReferences": []})
    refused(ask, world, found.candidates[0], 2, "no run owns it")


def test_a_candidate_with_the_label_of_another_run(ask: Ask, world: World) -> None:
    found = world.ended()
    world.label(found.candidates[0], LABEL_RUN_UID, "another")
    refused(ask, world, found.candidates[0], 2, "another run", "another")


def test_a_candidate_that_the_run_does_not_name(ask: Ask, world: World) -> None:
    found = world.ended()
    world.progress(found.run, candidateRefs=[{"name": found.candidates[1]}])
    refused(ask, world, found.candidates[0], 2, f"run {found.run} does not name it")


def test_a_candidate_that_is_being_deleted(ask: Ask, world: World) -> None:
    found = world.ended()
    name = found.candidates[0]
    world.user.merge_patch(CANDIDATE, world.namespace, name, {"metadata": {"finalizers": ["example.org/keep"]}})
    world.delete(CANDIDATE, name)
    refused(ask, world, name, 2, "it is being deleted")
    world.user.merge_patch(CANDIDATE, world.namespace, name, {"metadata": {"finalizers": None}})


@pytest.mark.parametrize("label", [LABEL_DGD_SPEC_HASH, LABEL_POINT_HASH, LABEL_INPUT_HASH])
def test_a_hash_that_is_not_that_of_the_spec(ask: Ask, world: World, label: str) -> None:
    found = world.ended()
    world.label(found.candidates[0], label, "0123456789abcdef")
    refused(ask, world, found.candidates[0], 3, label)


def more_replicas(spec: dict[str, Any]) -> None:
    spec["components"][1]["replicas"] += 1


def another_image(spec: dict[str, Any]) -> None:
    for component in spec["components"]:
        component["podTemplate"]["spec"]["containers"][0]["image"] = "example.org/mine:1.4.2"


def an_argument_more(spec: dict[str, Any]) -> None:
    spec["components"][1]["podTemplate"]["spec"]["containers"][0]["args"] += ["--enforce-eager"]


def no_component(spec: dict[str, Any]) -> None:
    spec["components"] = []


def components_that_are_none(spec: dict[str, Any]) -> None:
    spec["components"] = [None, 7, {"name": {"a": 1}}]


def a_number_of_nodes_that_is_none(spec: dict[str, Any]) -> None:
    spec["components"][1]["multinode"] = {"nodeCount": "two"}


FORGED = [
    more_replicas,
    another_image,
    an_argument_more,
    no_component,
    components_that_are_none,
    a_number_of_nodes_that_is_none,
]


@pytest.mark.parametrize("tamper", FORGED)
def test_a_forged_candidate_with_fitting_hashes(
    ask: Ask, world: World, tamper: Callable[[dict[str, Any]], None]
) -> None:
    """Whoever makes a candidate anew under its name, labels included, still cannot pass it off as evaluated."""
    found = world.ended()
    name = found.candidates[0]
    spec = world.get(CANDIDATE, name)["spec"]
    tamper(spec)
    labels = world.get(CANDIDATE, name)["metadata"]["labels"]
    labels |= {LABEL_DGD_SPEC_HASH: dgd_spec_hash(spec), LABEL_POINT_HASH: point_hash(spec)}
    world.copy_of(CANDIDATE, name, spec=spec, metadata={"labels": labels})
    refused(ask, world, name, 3, "it is not what was evaluated")
    for words in (("show", name), ("diff", *found.candidates), ("candidates", found.run)):
        assert ask(*words).exit_code == 0


def test_a_number_that_has_no_hash(ask: Ask, world: World) -> None:
    found = world.ended()
    name = found.candidates[0]
    spec = world.get(CANDIDATE, name)["spec"] | {"big": 1e20}
    labels = world.get(CANDIDATE, name)["metadata"]["labels"]
    world.copy_of(CANDIDATE, name, spec=spec, metadata={"labels": labels})
    refused(ask, world, name, 3, "its spec has no hash: /big")
    assert ask("diff", *found.candidates).exit_code == 0


def test_a_candidate_without_its_evaluation(ask: Ask, world: World) -> None:
    found = world.ended()
    name = found.candidates[0]
    kept = world.get(CANDIDATE, name)
    world.copy_of(CANDIDATE, name, status={"conditions": kept["status"]["conditions"]})
    refused(ask, world, name, 3, "cannot be compared with what was evaluated", "status.evaluation")


LONGEST = "Frontend"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Qwen", ["--name 'Qwen'", "DNS label"]),
        ("../x", ["--name '../x'", "DNS label"]),
        ("", ["--name ''"]),
        ("q" * 64, ["DNS label", "1 to 63"]),
        ("9qwen", ["must begin with a letter"]),
        ("q" * 46, ["Frontend", "at most 54"]),
    ],
)
def test_names_that_do_not_fit(ask: Ask, world: World, name: str, words: list[str]) -> None:
    refused(ask, world, world.ended().candidates[0], 2, *words, name=name)


def test_the_namespace_counts_too(ask: Ask, world: World) -> None:
    """With the namespace and a separator a name takes one label of 63 characters."""
    candidate = world.ended().candidates[0]
    room = 63 - 1 - len(world.namespace)
    bound = min(room, 54 - 1 - len(LONGEST))
    too_long = "q" * (bound + 1)
    refused(ask, world, candidate, 2, "at most 54" if bound < room else "label nvidia.com", name=too_long)
    assert ask("promote", candidate, "--name", "q" * bound, "--dry-run=server").exit_code == 0


def test_what_is_not_there(ask: Ask, world: World) -> None:
    refused(ask, world, "absent", 2, f"there is no candidate absent in namespace {world.namespace}", "-n names another")
    refused(ask, world, "../pods", 2, "candidate '../pods'", "DNS label")
    found = world.ended()
    elsewhere = ask("promote", found.candidates[0], "--name", "qwen", namespace="default")
    assert elsewhere.exit_code == 2
    assert f"there is no candidate {found.candidates[0]} in namespace default" in elsewhere.stderr


def test_a_cluster_without_dynamo(ask: Ask, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    found = world.ended()
    monkeypatch.setattr("dgdr_cli.cluster.kinds.DGD", Resource("nvidia.com/v9", DGD.kind, DGD.plural))
    refused(ask, world, found.candidates[0], 4, "the cluster has no DynamoGraphDeployment of nvidia.com/v9", "install")


RULES = [
    {"apiGroups": ["sweeper.dgdr.dev"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
]


def test_without_the_right_to_create_deployments(
    ask: Ask, world: World, control_plane: ControlPlane, kubectl: Kubectl
) -> None:
    found = world.ended()
    reader = control_plane.write_kubeconfig("promotion-reader", "promotion-reader")
    denied = ask("promote", found.candidates[0], "--name", "qwen", kubeconfig=reader)
    assert denied.exit_code == 4
    assert 'User "promotion-reader" cannot get resource "dynamographdeploymentcandidates"' in denied.stderr
    assert "ask an administrator" in denied.stderr

    namespace = world.namespace
    meta = {"name": "reader", "namespace": namespace}
    group = "rbac.authorization.k8s.io"
    role = {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": meta, "rules": RULES}
    user = {"kind": "User", "name": "promotion-reader", "apiGroup": group}
    ref = {"kind": "Role", "name": "reader", "apiGroup": group}
    binding = role | {"kind": "RoleBinding", "subjects": [user], "roleRef": ref}
    binding.pop("rules")
    kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": [role, binding]}))

    def may_read() -> Result | None:
        ended = ask("promote", found.candidates[0], "--name", "qwen", kubeconfig=reader)
        return None if "dynamographdeploymentcandidates" in ended.stderr else ended

    ended = until(may_read, "the authorizer hears of the role")
    assert ended.exit_code == 4
    assert 'cannot create resource "dynamographdeployments"' in ended.stderr
    needed = f"the right to create dynamographdeployments.nvidia.com in namespace {namespace}"
    assert f"nothing was created, ask an administrator for {needed}\n" in ended.stderr
    assert world.names(DGD) == []


def test_a_quota_is_no_lack_of_rights(ask: Ask, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    found, words = world.ended(), 'deployments "qwen" is forbidden: exceeded quota: dgd, requested: 1, limited: 0'
    create = KubeClient.create

    def full(kube: KubeClient, resource: Resource, value: Any, *, dry_run: bool = False) -> dict[str, Any]:
        if resource == DGD:
            raise Forbidden("POST", words, status=403, reason="Forbidden")
        return create(kube, resource, value, dry_run=dry_run)

    monkeypatch.setattr(KubeClient, "create", full)
    refused(ask, world, found.candidates[0], 4, words, "nothing was created, a rule of the cluster refuses it")

    def expired(kube: KubeClient, resource: Resource, value: Any, *, dry_run: bool = False) -> dict[str, Any]:
        raise Forbidden("POST", "Unauthorized", status=401, reason="Unauthorized")

    monkeypatch.setattr(KubeClient, "create", expired)
    refused(ask, world, found.candidates[0], 4, "does not accept the credentials", "log in again")


def test_beside_another_version_of_dynamo(
    controlplane_binaries: dict[str, Path], make_kubectl: Callable[[Path], Kubectl], ask: Ask
) -> None:
    """A kind that takes everything: promotion depends on its name, not on Dynamo's schema."""
    with start_control_plane(controlplane_binaries) as plane:
        install_kinds(make_kubectl(plane.kubeconfig), plane.kubeconfig, STAND_IN)
        world = world_of(plane.kubeconfig, "default")
        name = world.ended().candidates[0]
        ended = ask("promote", name, "--name", "qwen", namespace="default", kubeconfig=plane.kubeconfig)
        assert (ended.exit_code, ended.stderr) == (0, "")
        assert dgd_spec_hash(world.get(DGD, "qwen")["spec"]) == dgd_spec_hash(world.get(CANDIDATE, name)["spec"])


def test_a_server_that_would_store_something_else(ask: Ask, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a webhook that rewrites deployments: fields may come, none may change or go."""
    found = world.ended()
    create = KubeClient.create

    def rewritten(kube: KubeClient, resource: Resource, value: Any, *, dry_run: bool = False) -> dict[str, Any]:
        made = create(kube, resource, value, dry_run=dry_run)
        made["spec"]["components"][1]["replicas"] = 7
        made["spec"]["added"] = True
        return made

    monkeypatch.setattr(KubeClient, "create", rewritten)
    refused(ask, world, found.candidates[0], 3, "/spec/components/1/replicas would be 7, not 2")


def test_an_answer_that_is_lost(ask: Ask, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    found = world.ended()
    create = KubeClient.create

    def lost(kube: KubeClient, resource: Resource, value: Any, *, dry_run: bool = False) -> dict[str, Any]:
        made = create(kube, resource, value, dry_run=dry_run)
        if not dry_run:
            raise Retryable("POST", "no answer: connection reset")
        return made

    monkeypatch.setattr(KubeClient, "create", lost)
    ended = ask("promote", found.candidates[0], "--name", "qwen")
    assert ended.exit_code == 4
    assert f"kubectl get dynamographdeployments.nvidia.com qwen -n {world.namespace}" in ended.stderr
