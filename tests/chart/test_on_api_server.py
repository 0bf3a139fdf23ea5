"""The chart on a real API server: it takes every object, and each account may do what it needs and no more."""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from dgdr_api.base import wire
from dgdr_kube.client import KubeClient, configuration
from dgdr_kube.resource import JOB
from dgdr_operator.job_builder import build_role_binding, build_service_account
from dgdr_operator.kinds import RUN
from dgdr_operator.settings import settings_from
from dgdr_publisher.cluster.store import read_run

from tests.chart.rendering import CASES, CHART, RELEASE, SYSTEM, Helm, Objects, environment, operator_pod
from tests.controlplane.kubectl import Kubectl
from tests.controlplane.plane import ControlPlane, start_control_plane
from tests.operator.conftest import StartOperator, client
from tests.operator.hands import Hands
from tests.publisher.cluster.test_store import publication, store_of
from tests.publisher.samples import AGG, DISAGG, points, run
from tests.publisher.waiting import until

REQUESTS, RUNS, CANDIDATES = (
    f"dynamographdeployment{kind}.sweeper.dgdr.dev" for kind in ("requests", "runs", "candidates")
)
ROLE_BINDINGS, CLUSTER_ROLES = (f"{kind}.rbac.authorization.k8s.io" for kind in ("rolebindings", "clusterroles"))
DEPLOYMENTS = "dynamographdeployments.nvidia.com"
OPERATOR = f"system:serviceaccount:{SYSTEM}:dgdr-operator"
NAMESPACES = ("team-a", "team-b", "2024")

MAY: dict[str, list[tuple[str, str]]] = {
    "operator": [
        *(("list", kind) for kind in (REQUESTS, RUNS, "jobs.batch", "pods", "events")),
        ("create", RUNS),
        ("delete", RUNS),
        ("patch", f"{REQUESTS}/status"),
        ("patch", f"{RUNS}/status"),
        ("create", "jobs.batch"),
        ("delete", "jobs.batch"),
        ("create", "serviceaccounts"),
        ("create", ROLE_BINDINGS),
    ],
    "publisher": [
        ("get", RUNS),
        ("patch", f"{RUNS}/status"),
        *((verb, CANDIDATES) for verb in ("get", "list", "create", "delete")),
        ("patch", f"{CANDIDATES}/status"),
        *((verb, "configmaps") for verb in ("list", "create", "patch", "delete")),
    ],
    "edit": [("create", REQUESTS), ("delete", REQUESTS), ("patch", RUNS), ("list", CANDIDATES)],
    "view": [("get", REQUESTS), ("watch", RUNS), ("list", CANDIDATES)],
}
MAY_NOT: dict[str, list[tuple[str, str]]] = {
    "operator": [
        ("get", "secrets"),
        ("create", "pods"),
        ("create", "pods/exec"),
        ("get", "pods/log"),
        ("update", REQUESTS),
        ("patch", REQUESTS),
        ("delete", REQUESTS),
        ("patch", RUNS),
        ("create", CANDIDATES),
        ("patch", "jobs.batch"),
        ("create", "serviceaccounts/token"),
        ("create", "clusterrolebindings.rbac.authorization.k8s.io"),
        ("create", CLUSTER_ROLES),
        ("bind", CLUSTER_ROLES),
        ("escalate", CLUSTER_ROLES),
        ("create", "roles.rbac.authorization.k8s.io"),
        ("list", "leases.coordination.k8s.io"),
        ("create", DEPLOYMENTS),
    ],
    "publisher": [
        ("get", "secrets"),
        ("create", "pods"),
        ("create", "jobs.batch"),
        ("patch", REQUESTS),
        ("patch", RUNS),
        ("delete", RUNS),
        ("patch", CANDIDATES),
        ("update", CANDIDATES),
        ("create", ROLE_BINDINGS),
        ("create", DEPLOYMENTS),
    ],
    "edit": [("patch", f"{RUNS}/status"), ("create", RUNS), ("create", CANDIDATES), ("create", DEPLOYMENTS)],
    "view": [("create", REQUESTS), ("patch", RUNS), ("delete", CANDIDATES)],
}
"""What each may do in a namespace that is served; what it is called here."""


@dataclass(frozen=True)
class Installed:
    """The chart's objects on the API server."""

    kubectl: Kubectl
    objects: Objects

    def allowed(self, user: str, pairs: Sequence[tuple[str, str]], namespace: str) -> list[tuple[str, str]]:
        """The verbs and resources that a user may use in a namespace, by the server's own word, in one request."""
        reviews = [review(user, verb, resource, namespace) for verb, resource in pairs]
        asked = ("create", '--output=jsonpath={.status.allowed}{"\\n"}', "-f", "-")
        answers = self.kubectl(*asked, input=yaml.safe_dump_all(reviews)).stdout.split()
        assert set(answers) <= {"true", "false"}
        return [pair for pair, answer in zip(pairs, answers, strict=True) if answer == "true"]

    def may(self, user: str, verb: str, resource: str, namespace: str) -> bool:
        """Whether a user may do one thing."""
        return bool(self.allowed(user, [(verb, resource)], namespace))

    def check(self, who: str, user: str, namespace: str) -> None:
        """Compare with the tables above."""
        assert self.allowed(user, MAY[who], namespace) == MAY[who]
        assert self.allowed(user, MAY_NOT[who], namespace) == []


def review(user: str, verb: str, resource: str, namespace: str) -> dict[str, Any]:
    """Ask whether a user may do something; a resource is ``plural.group/subresource``."""
    kind, _, subresource = resource.partition("/")
    plural, _, group = kind.partition(".")
    asked = {"verb": verb, "group": group, "resource": plural, "subresource": subresource, "namespace": namespace}
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "resourceAttributes": asked},
    }


@pytest.fixture(scope="module")
def plane(controlplane_binaries: dict[str, Path]) -> Iterator[ControlPlane]:
    """A server that also asks for the right to hold up an owner's deletion, as some clusters do."""
    plugin = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"
    with start_control_plane(controlplane_binaries, apiserver_arguments=[plugin]) as started:
        yield started


@pytest.fixture(scope="module")
def kubectl(plane: ControlPlane, install: Callable[[ControlPlane], Kubectl]) -> Kubectl:
    """kubectl on a server with our CRDs and the namespaces of the cases, which take restricted pods alone."""
    kubectl = install(plane)
    labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    namespaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        for name in (SYSTEM, *NAMESPACES)
    ]
    kubectl("apply", "-f", "-", input=yaml.safe_dump_all(namespaces))
    kinds = f"{REQUESTS},{RUNS},{CANDIDATES}"
    until(lambda: kubectl("get", kinds, check=False).returncode == 0, "lists of kinds that were just made")
    return kubectl


@pytest.fixture(params=["default", "namespaced"])
def installed(request: pytest.FixtureRequest, kubectl: Kubectl, chart: Helm) -> Iterator[Installed]:
    """The chart, serving all namespaces or two."""
    text = chart.text(values=CASES[request.param])
    kubectl("apply", "-f", "-", input=text)
    yield Installed(kubectl, [value for value in yaml.safe_load_all(text) if value])
    kubectl("delete", "--wait=false", "-f", "-", input=text)


@pytest.mark.parametrize("case", CASES)
def test_the_server_takes_every_object_without_a_warning(kubectl: Kubectl, chart: Helm, case: str) -> None:
    objects = [value for value in chart.objects(values=CASES[case]) if value["kind"] != "ServiceMonitor"]
    done = kubectl(
        "apply", "--dry-run=server", "--validate=strict", "-f", "-", input=yaml.safe_dump_all(objects), check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == len(objects)


def test_the_operators_pod_is_a_restricted_one(installed: Installed) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod"} | operator_pod(installed.objects)
    pod["metadata"] |= {"name": "operator", "namespace": SYSTEM}

    installed.kubectl("create", "--dry-run=server", "-f", "-", input=json.dumps(pod))


def test_the_operators_rights(installed: Installed) -> None:
    served = [value for value in installed.objects if value["kind"] == "ClusterRoleBinding"]
    installed.check("operator", OPERATOR, "team-a")

    assert installed.may(OPERATOR, "create", "jobs.batch", "default") is bool(served)
    assert installed.may(OPERATOR, "list", REQUESTS, "kube-system") is bool(served)
    assert installed.may(OPERATOR, "create", "leases.coordination.k8s.io", SYSTEM)
    assert not installed.may(OPERATOR, "update", "leases.coordination.k8s.io", SYSTEM)
    for namespace in ("default", "team-a"):
        assert not installed.may(OPERATOR, "create", "leases.coordination.k8s.io", namespace)


def test_the_operator_works_as_the_chart_starts_it(
    installed: Installed, plane: ControlPlane, start_operator: StartOperator
) -> None:
    """Its variables and its rights, in a namespace that is served; then the rights of the run that it made."""
    kubeconfig = plane.write_kubeconfig("chart-operator", OPERATOR, ["system:serviceaccounts"])
    variables = environment(installed.objects) | {"KUBECONFIG": str(kubeconfig), "DGDR_HTTP_PORT": "0"}
    operator = start_operator(plane, "chart", *(f"{name}={value}" for name, value in variables.items()))
    operator.wait_until_ready()
    hands = Hands(installed.kubectl, client(plane, "test"), operator)
    try:
        hands.submit("team-b", name="chart")
        job = hands.job("team-b", name="chart")
        installed.check("publisher", f"system:serviceaccount:team-b:{job['metadata']['name']}", "team-b")
        for namespace in ("team-a", SYSTEM):
            account = f"system:serviceaccount:team-b:{job['metadata']['name']}"
            assert not installed.may(account, "list", CANDIDATES, namespace)
        made = job["spec"]["template"]["spec"]
        assert [container["image"] for container in (*made["initContainers"], *made["containers"])] == [
            "dgdr-publisher:0.1.0",
            "dgdr-sweeper:0.1.0",
        ]
        assert operator.metric('dgdr_api_errors_total{kind="Forbidden"}') == 0
        assert "forbidden" not in operator.process.log.read_text().lower()
    finally:
        operator.process.stop()
        installed.kubectl("delete", REQUESTS, "chart", "--namespace=team-b")
        for value in hands.names(JOB, "team-b"):
            installed.kubectl("delete", "job", value, "--namespace=team-b", "--wait=false", "--cascade=orphan")


def test_a_publisher_writes_all_it_has_with_the_rights_of_its_run(installed: Installed, plane: ControlPlane) -> None:
    body = wire(run())
    body["metadata"] |= {"namespace": "team-a"}
    made = client(plane, "dgdr-operator").create(RUN, body)
    settings = settings_from(environment(installed.objects)).job
    for value in (build_service_account(made), build_role_binding(made, settings)):
        installed.kubectl("apply", "-f", "-", input=json.dumps(value))
    name = made["metadata"]["name"]
    account = plane.write_kubeconfig("chart-publisher", f"system:serviceaccount:team-a:{name}")
    kube = KubeClient(configuration(account), "dgdr-publisher")

    of = read_run(kube, "team-a", name)
    found, store = publication(of), store_of(kube, of)
    store.candidates.load()
    assert store.report.load() == ()
    store.write_candidates(found.candidates or ())
    store.write_run(of.model_copy(update={"status": found.status}))
    store.write_points([points(DISAGG, AGG)], {DISAGG.id: "name"})
    store.report.write_logs({"sweeper": ["a line"]}, {})
    written = installed.kubectl("get", f"{CANDIDATES},configmaps", "--namespace=team-a", "--output=name").stdout
    assert written.count("candidate") == len(found.candidates or ()) == 2
    assert written.count("configmap/qwen") == 2
    store.candidates.delete_others([])

    installed.kubectl("delete", RUNS, name, "--namespace=team-a")
    installed.kubectl("delete", "configmaps", "--all", "--namespace=team-a")


@pytest.mark.parametrize("role", ["view", "edit"])
def test_people_with_the_clusters_roles(kubectl: Kubectl, installed: Installed, role: str) -> None:
    """Aggregation is the work of a controller that is not here, so its result is bound by hand."""
    for name in ("view", role):
        bind = ["create", "rolebinding", f"chart-{role}-{name}", f"--clusterrole=dgdr-{name}", f"--user=chart-{role}"]
        made = kubectl(*bind, "--namespace=team-a", "--dry-run=client", "--output=yaml").stdout
        kubectl("apply", "-f", "-", input=made)

    installed.check(role, f"chart-{role}", "team-a")


def test_helm_installs_crds_once_and_kubectl_upgrades_them(
    chart: Helm, controlplane_binaries: dict[str, Path], make_kubectl: Callable[[Path], Kubectl], tmp_path: Path
) -> None:
    newer = shutil.copytree(CHART / "crds", tmp_path / "crds")
    for file in newer.iterdir():
        file.write_text(file.read_text().replace("categories:\n", "categories:\n    - newer\n"))
    with start_control_plane(controlplane_binaries) as plane:
        kubectl = make_kubectl(plane.kubeconfig)
        cluster = ("--kubeconfig", str(plane.kubeconfig), "--namespace", SYSTEM)
        said = chart("install", RELEASE, str(CHART), *cluster, "--create-namespace").stdout
        assert "serves all namespaces" in said
        assert "networkPolicy.searchNamespaces" in said

        chart("upgrade", RELEASE, str(CHART), *cluster, "--set=replicas=2")
        kubectl("get", "poddisruptionbudget", "dgdr-operator", f"--namespace={SYSTEM}")
        assert categories(kubectl) == [["dgdr-all"]] * 3
        kubectl("apply", "--server-side", "--force-conflicts", "-f", f"{newer}/")
        assert categories(kubectl) == [["newer", "dgdr-all"]] * 3

        chart("uninstall", RELEASE, *cluster)
        assert len(categories(kubectl)) == 3
        left = kubectl("get", "clusterroles,clusterrolebindings", "-l", "app.kubernetes.io/name=dgdr", "--output=name")
        assert left.stdout == ""


def categories(kubectl: Kubectl) -> list[Any]:
    crds = json.loads(kubectl("get", "crd", "--output=json").stdout)["items"]
    return [crd["spec"]["names"]["categories"] for crd in crds]
