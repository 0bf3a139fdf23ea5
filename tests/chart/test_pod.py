"""The operator's pod: probed where the program answers, and selected by what is meant for it."""

import tomllib
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml
from dgdr_operator.probes import Probes

from tests.chart.rendering import CASES, CHART, Helm, Objects, environment, one, operator_pod
from tests.conftest import ROOT

GOLDEN_JOBS = Path(__file__).parents[1] / "operator" / "golden"


def search_pod() -> dict[str, Any]:
    """Template of a search's pods, as the operator makes it."""
    objects = yaml.safe_load_all((GOLDEN_JOBS / "minimal.yaml").read_text())
    (job,) = [value for value in objects if value["kind"] == "Job"]
    template: dict[str, Any] = job["spec"]["template"]
    return template


def search_labels() -> dict[str, str]:
    """Labels of a search pod."""
    labels: dict[str, str] = search_pod()["metadata"]["labels"]
    return labels


def selects(selector: dict[str, str], labels: dict[str, str]) -> bool:
    return selector.items() <= labels.items()


@pytest.fixture(params=CASES)
def objects(request: pytest.FixtureRequest, chart: Helm) -> Objects:
    return chart.objects(values=CASES[request.param])


def test_the_program_is_one_that_the_image_has(objects: Objects) -> None:
    (container,) = operator_pod(objects)["spec"]["containers"]
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]

    assert container["command"] == ["dgdr-operator"]
    assert "dgdr-operator" in scripts


def test_the_operator_is_as_confined_as_a_search(objects: Objects) -> None:
    pod = operator_pod(objects)["spec"]
    (container,) = pod["containers"]
    search = search_pod()
    for_volumes = {"fsGroup", "fsGroupChangePolicy"}

    assert container["securityContext"] == search["spec"]["containers"][0]["securityContext"]
    assert pod["securityContext"] == {
        name: value for name, value in search["spec"]["securityContext"].items() if name not in for_volumes
    }
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_probes_ask_what_the_program_answers(objects: Objects) -> None:
    (container,) = operator_pod(objects)["spec"]["containers"]
    (port,) = container["ports"]
    asked = {container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("liveness", "readiness", "startup")}
    probes = Probes(0, alive=lambda: None, ready=lambda: None, metrics=lambda: b"")
    probes.start()
    try:
        for path in (*asked, "/metrics"):
            with urllib.request.urlopen(f"http://127.0.0.1:{probes.port}{path}", timeout=5) as answer:
                assert answer.status == 200
    finally:
        probes.stop()

    assert asked == {"/healthz", "/readyz"}
    assert str(port["containerPort"]) == environment(objects)["DGDR_HTTP_PORT"]


def test_selectors_find_the_operator_and_no_search(objects: Objects) -> None:
    labels = operator_pod(objects)["metadata"]["labels"]
    for value in objects:
        spec: dict[str, Any] = value.get("spec") or {}
        search = value["kind"] == "NetworkPolicy" and value["metadata"]["name"].endswith("-search")
        selector = {
            "Deployment": lambda spec: spec["selector"]["matchLabels"],
            "PodDisruptionBudget": lambda spec: spec["selector"]["matchLabels"],
            "NetworkPolicy": lambda spec: spec["podSelector"]["matchLabels"],
            "Service": lambda spec: spec["selector"],
        }.get(value["kind"])
        if selector is not None:
            assert selects(selector(spec), labels) is not search
            assert selects(selector(spec), search_labels()) is search


def test_a_label_of_a_user_never_replaces_one_that_selects(chart: Helm) -> None:
    labels = operator_pod(chart.objects(r"operator.podLabels.app\.kubernetes\.io/name=mine"))["metadata"]["labels"]

    assert labels["app.kubernetes.io/name"] == "dgdr"


def test_replicas_are_spread_and_not_all_evicted_at_once(chart: Helm) -> None:
    single, several = chart.objects(), chart.objects("replicas=2")

    assert "PodDisruptionBudget" not in {value["kind"] for value in single}
    assert "topologySpreadConstraints" not in operator_pod(single)["spec"]
    assert one(several, "PodDisruptionBudget", "dgdr-operator")["spec"]["maxUnavailable"] == 1
    assert operator_pod(several)["spec"]["topologySpreadConstraints"][0]["whenUnsatisfiable"] == "ScheduleAnyway"


def test_namespaces_that_look_like_numbers_stay_text(chart: Helm) -> None:
    found = chart("template", "7", str(CHART), "-n", "42", "--set-json", 'namespaces=["2024"]', check=False)
    objects = [value for value in yaml.safe_load_all(found.stdout) if value]

    assert {value["metadata"].get("namespace") for value in objects} == {None, "42", "2024"}
    assert all(isinstance(text, str) for text in environment(objects).values())


def test_network_policies(chart: Helm) -> None:
    objects = chart.objects(
        "networkPolicy.apiServer.cidrs={10.0.0.1/32}", "networkPolicy.apiServer.ports={8443}", "namespaces={a,b}"
    )
    server = {"ports": [{"protocol": "TCP", "port": 8443}], "to": [{"ipBlock": {"cidr": "10.0.0.1/32"}}]}
    dns = {"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]}

    operator = one(objects, "NetworkPolicy", "dgdr-operator")["spec"]
    assert operator["ingress"] == [{"ports": [{"protocol": "TCP", "port": 8080}]}]
    assert operator["egress"] == [server, dns]
    for namespace in ("a", "b"):
        search = one(objects, "NetworkPolicy", "dgdr-search", namespace)["spec"]
        assert (search["ingress"], search["egress"]) == ([], [server])
        assert search["policyTypes"] == ["Ingress", "Egress"]


def test_search_namespaces_get_their_policy_when_all_are_served(chart: Helm) -> None:
    objects = chart.objects("networkPolicy.searchNamespaces={a,b}")
    policies = [value["metadata"] for value in objects if value["kind"] == "NetworkPolicy"]

    assert {(each["namespace"], each["name"]) for each in policies} == {
        ("dgdr-system", "dgdr-operator"),
        ("a", "dgdr-search"),
        ("b", "dgdr-search"),
    }
