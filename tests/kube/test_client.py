"""The client on a real API server: what each method does, and which error says what went wrong."""

import socket
from typing import Any

import pytest
from dgdr_kube.client import KubeClient, configuration
from dgdr_kube.errors import AlreadyExists, FieldConflict, Forbidden, Invalid, NotFound, Retryable, Stale, TooLarge
from dgdr_kube.event import build_event
from dgdr_kube.resource import CONFIG_MAP, EVENT, JOB, LEASE, POD, Resource
from kubernetes.client import Configuration

from tests.controlplane.plane import ControlPlane

NOW = "2026-01-02T03:04:05Z"


def client(plane: ControlPlane, manager: str) -> KubeClient:
    return KubeClient(configuration(plane.kubeconfig), manager)


@pytest.fixture
def kube(control_plane: ControlPlane) -> KubeClient:
    return client(control_plane, "one")


@pytest.fixture
def other(control_plane: ControlPlane) -> KubeClient:
    return client(control_plane, "two")


def config_map(namespace: str, name: str = "a", **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def job(namespace: str) -> dict[str, Any]:
    container = {"name": "main", "image": "x"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    metadata = {"name": "job", "namespace": namespace}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}


def job_status(namespace: str, **status: Any) -> dict[str, Any]:
    metadata = {"name": "job", "namespace": namespace}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "status": status}


def test_create_and_get(kube: KubeClient, namespace: str) -> None:
    made = kube.create(CONFIG_MAP, config_map(namespace, k="v"))

    assert kube.get(CONFIG_MAP, namespace, "a") == made
    assert made["metadata"]["managedFields"][0]["manager"] == "one"
    with pytest.raises(AlreadyExists):
        kube.create(CONFIG_MAP, config_map(namespace))
    with pytest.raises(NotFound):
        kube.get(CONFIG_MAP, namespace, "b")


def test_a_dry_run_leaves_nothing(kube: KubeClient, namespace: str) -> None:
    kube.create(CONFIG_MAP, config_map(namespace), dry_run=True)

    with pytest.raises(NotFound):
        kube.get(CONFIG_MAP, namespace, "a")


def test_a_list_has_all_pages_and_the_kind_of_each(
    kube: KubeClient, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dgdr_kube.client.PAGE_SIZE", 2)
    for index in range(5):
        made = config_map(namespace, f"m{index}")
        made["metadata"]["labels"] = {"even": str(index % 2 == 0).lower()}
        kube.create(CONFIG_MAP, made)

    found = kube.list(CONFIG_MAP, namespace, label_selector="even")
    even = kube.list(CONFIG_MAP, namespace, label_selector="even=true")
    named = kube.list(CONFIG_MAP, None, field_selector=f"metadata.name=m3,metadata.namespace={namespace}")
    assert [value["metadata"]["name"] for value in found.items] == [f"m{index}" for index in range(5)]
    assert {(value["apiVersion"], value["kind"]) for value in found.items} == {("v1", "ConfigMap")}
    assert int(found.resource_version) > 0
    assert len(even.items) == 3
    assert [value["metadata"]["name"] for value in named.items] == ["m3"]


def test_apply_deletes_what_is_left_out_and_never_takes_a_field(
    kube: KubeClient, other: KubeClient, namespace: str
) -> None:
    kube.apply(CONFIG_MAP, config_map(namespace, a="1", b="1"))
    assert kube.apply(CONFIG_MAP, config_map(namespace, a="1"))["data"] == {"a": "1"}
    with pytest.raises(FieldConflict, match="one"):
        other.apply(CONFIG_MAP, config_map(namespace, a="2"))
    assert other.apply(CONFIG_MAP, config_map(namespace, c="2"))["data"] == {"a": "1", "c": "2"}


@pytest.mark.parametrize(
    "text", ["a\u00e9\u4e2d\U0001f600", "\x07\x1b[31m", "\x7f\x85\x9f\u2028\ufeff\uffff", "\\ud83d \"'\\"]
)
def test_apply_keeps_every_character(kube: KubeClient, namespace: str, text: str) -> None:
    assert kube.apply(CONFIG_MAP, config_map(namespace, a=text))["data"] == {"a": text}
    assert kube.get(CONFIG_MAP, namespace, config_map(namespace)["metadata"]["name"])["data"] == {"a": text}


def test_replace_is_refused_on_an_old_version(kube: KubeClient, namespace: str) -> None:
    made = kube.create(CONFIG_MAP, config_map(namespace, k="1"))
    kube.replace(CONFIG_MAP, made | {"data": {"k": "2"}})

    with pytest.raises(Stale):
        kube.replace(CONFIG_MAP, made | {"data": {"k": "3"}})


def test_a_status_goes_only_onto_the_object_that_it_was_made_from(kube: KubeClient, namespace: str) -> None:
    meta = kube.create(JOB, job(namespace))["metadata"]
    status = job_status(namespace, active=1)
    changed = kube.apply_status(JOB, status, uid=meta["uid"], resource_version=meta["resourceVersion"])

    assert changed["status"]["active"] == 1
    with pytest.raises(Stale):
        kube.apply_status(JOB, status | {"status": {}}, uid=meta["uid"], resource_version=meta["resourceVersion"])
    version = changed["metadata"]["resourceVersion"]
    with pytest.raises(Stale, match="uid"):
        kube.apply_status(JOB, status, uid="another", resource_version=version)


def test_a_status_is_never_put_onto_a_recreated_object(kube: KubeClient, namespace: str) -> None:
    old = kube.create(JOB, job(namespace))["metadata"]
    kube.delete(JOB, namespace, "job", uid=old["uid"], propagation="Background")
    kube.create(JOB, job(namespace))

    with pytest.raises(Stale):
        kube.apply_status(JOB, job_status(namespace, active=1), uid=old["uid"], resource_version=old["resourceVersion"])
    assert "active" not in kube.get(JOB, namespace, "job").get("status", {})


def test_a_merge_patch_changes_parts_of_exactly_one_object(kube: KubeClient, namespace: str) -> None:
    meta = kube.create(CONFIG_MAP, config_map(namespace, a="1", b="1"))["metadata"]
    patch = {"metadata": {"resourceVersion": meta["resourceVersion"]}, "data": {"a": None, "c": "\u00e9\U0001f600"}}

    assert kube.merge_patch(CONFIG_MAP, namespace, "a", patch)["data"] == {"b": "1", "c": "\u00e9\U0001f600"}
    with pytest.raises(Stale):
        kube.merge_patch(CONFIG_MAP, namespace, "a", patch)
    with pytest.raises(NotFound):
        kube.merge_patch(CONFIG_MAP, namespace, "absent", {"data": {}})
    with pytest.raises(Invalid, match="unknown field"):
        kube.merge_patch(CONFIG_MAP, namespace, "a", {"typo": 1})


def test_a_watch_yields_what_changes_after_a_state(kube: KubeClient, namespace: str) -> None:
    kube.create(CONFIG_MAP, config_map(namespace))
    version = kube.list(CONFIG_MAP, namespace, field_selector="metadata.name=a").resource_version
    kube.create(CONFIG_MAP, config_map(namespace, "b"))
    uid = kube.merge_patch(CONFIG_MAP, namespace, "a", {"data": {"k": "\u00e9" * 100_000}})["metadata"]["uid"]
    kube.delete(CONFIG_MAP, namespace, "a", uid=uid, propagation="Background")

    changes = kube.watch(CONFIG_MAP, namespace, resource_version=version, field_selector="metadata.name=a")
    modified, deleted = next(changes), next(changes)
    assert (modified.type, modified.object["data"]) == ("MODIFIED", {"k": "\u00e9" * 100_000})
    assert (deleted.type, deleted.object["metadata"]["name"]) == ("DELETED", "a")
    assert int(deleted.resource_version) > int(modified.resource_version)
    again = kube.watch(
        CONFIG_MAP, namespace, resource_version=modified.resource_version, field_selector="metadata.name=a"
    )
    assert next(again).type == "DELETED"


def test_a_watch_ends_when_the_server_ends_it(
    kube: KubeClient, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dgdr_kube.client.WATCH_S", 1)
    version = kube.list(CONFIG_MAP, namespace).resource_version

    changes = kube.watch(CONFIG_MAP, namespace, resource_version=version, field_selector="metadata.name=a")

    assert {change.type for change in changes} <= {"BOOKMARK"}


def test_a_watch_that_may_not_be(control_plane: ControlPlane, namespace: str) -> None:
    nobody = KubeClient(configuration(control_plane.write_kubeconfig("nobody", "nobody")), "nobody")
    with pytest.raises(Forbidden, match="nobody"):
        next(nobody.watch(CONFIG_MAP, namespace, resource_version="1"))


def test_requests_share_a_connection(kube: KubeClient, namespace: str) -> None:
    kube.create(CONFIG_MAP, config_map(namespace))
    for _ in range(3):
        kube.get(CONFIG_MAP, namespace, "a")
    with pytest.raises(NotFound):
        kube.get(CONFIG_MAP, namespace, "absent")
    kube.get(CONFIG_MAP, namespace, "a")

    pools = kube._client.rest_client.pool_manager.pools
    assert [pools[key].num_connections for key in pools.keys()] == [1]  # noqa: SIM118 - it is no mapping


def test_a_deletion_meets_exactly_one_object(kube: KubeClient, namespace: str) -> None:
    made = kube.create(CONFIG_MAP, config_map(namespace))["metadata"]
    with pytest.raises(Stale):
        kube.delete(CONFIG_MAP, namespace, "a", uid="another")
    with pytest.raises(Stale):
        kube.delete(CONFIG_MAP, namespace, "a", uid=made["uid"], resource_version="1")
    kube.delete(
        CONFIG_MAP, namespace, "a", uid=made["uid"], resource_version=made["resourceVersion"], propagation="Background"
    )
    with pytest.raises(NotFound):
        kube.delete(CONFIG_MAP, namespace, "a", uid=made["uid"])


def test_a_foreground_deletion_waits_for_what_belongs_to_the_object(kube: KubeClient, namespace: str) -> None:
    made = kube.create(JOB, job(namespace))["metadata"]
    kube.delete(JOB, namespace, "job", uid=made["uid"])

    assert kube.get(JOB, namespace, "job")["metadata"]["finalizers"] == ["foregroundDeletion"]


def test_errors_have_their_kind(kube: KubeClient, control_plane: ControlPlane, namespace: str) -> None:
    with pytest.raises(Invalid):
        kube.create(CONFIG_MAP, config_map(namespace, "No-Name"))
    with pytest.raises(Invalid, match="unknown field"):
        kube.create(CONFIG_MAP, config_map(namespace) | {"typo": 1})
    with pytest.raises(TooLarge):
        kube.create(CONFIG_MAP, config_map(namespace, k="x" * 4_000_000))
    with pytest.raises(NotFound):
        kube.list(Resource("example.org/v1", "Nothing", "nothings"), None)
    nobody = KubeClient(configuration(control_plane.write_kubeconfig("nobody", "nobody")), "nobody")
    with pytest.raises(Forbidden, match="nobody"):
        nobody.list(POD, namespace)


def test_no_answer_in_time_may_be_asked_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = Configuration(host=f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(Retryable, match="no answer"):
            KubeClient(where, "x", timeout_s=0.2).get(POD, "n", "a")
    with pytest.raises(Retryable, match="no answer"):
        KubeClient(where, "x", timeout_s=0.2).get(POD, "n", "a")


def test_an_event_about_an_object_is_written_once(kube: KubeClient, namespace: str) -> None:
    about = kube.create(JOB, job(namespace))
    event = build_event(about, type="Warning", reason="Why", message="w" * 2000, now=NOW, component="one")
    kube.create(EVENT, event)

    with pytest.raises(AlreadyExists):
        kube.create(EVENT, event)
    (found,) = kube.list(EVENT, namespace, field_selector=f"involvedObject.uid={about['metadata']['uid']}").items
    assert (found["reason"], found["type"], len(found["message"])) == ("Why", "Warning", 1024)


@pytest.mark.parametrize(
    ("resource", "namespace", "name", "subresource", "path"),
    [
        (POD, "n", "a", None, "/api/v1/namespaces/n/pods/a"),
        (JOB, "n", "a", "status", "/apis/batch/v1/namespaces/n/jobs/a/status"),
        (LEASE, None, None, None, "/apis/coordination.k8s.io/v1/leases"),
        (POD, "n", "../b", None, "/api/v1/namespaces/n/pods/..%2Fb"),
    ],
)
def test_paths(resource: Resource, namespace: str | None, name: str | None, subresource: str | None, path: str) -> None:
    assert resource.path(namespace, name, subresource) == path
