"""Values: documented, complete in the schema, and refused by name where they are wrong."""

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
import yaml

from tests.chart.rendering import CASES, CHART, VALUES, Helm


def test_lint_finds_nothing(chart: Helm) -> None:
    for values in CASES.values():
        said = chart("lint", "--strict", str(CHART), *(["--values", str(values)] if values else [])).stdout
        assert "[WARNING]" not in said
        assert "[ERROR]" not in said


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("replica=2", "additional properties 'replica' not allowed"),
        ("replicas=0", "/replicas': minimum: got 0, want 1"),
        ("replicas=two", "/replicas': got string, want integer"),
        ("operator.imag.tag=x", "/operator': additional properties 'imag' not allowed"),
        ("operator.image.tag=1", "/operator/image/tag': got number, want string"),
        ("sweeper.image.repository=null", "/sweeper/image': missing property 'repository'"),
        ("sweeper.image.digest=sha256:12", "/sweeper/image/digest'"),
        ("operator.logLevel=LOUD", "must be one of 'DEBUG', 'INFO', 'WARNING', 'ERROR'"),
        ("imagePullPolicy=Sometimes", "must be one of 'Always', 'IfNotPresent', 'Never'"),
        ("imagePullSecrets={registry}", "/imagePullSecrets/0': got string, want object"),
        ("global.imageRegistry=https://registry.example.com", "/global/imageRegistry'"),
        ("namespaces=team-a", "/namespaces': got string, want array"),
        ("namespaces={Team}", "/namespaces/0': 'Team' does not match"),
        ("namespaces={a,a}", "/namespaces': items at 0 and 1 are equal"),
        ("limits.searchesPerNamespace=-1", "/limits/searchesPerNamespace': minimum"),
        ("job.workspace.medium=ram", "must be one of 'Disk', 'Memory'"),
        ("job.workspace.size=2GB", "/job/workspace/size': '2GB' does not match"),
        ("job.gracePeriodSeconds=20", "/job/gracePeriodSeconds': minimum: got 20, want 30"),
        ("job.activeDeadlineSeconds=0", "/job/activeDeadlineSeconds': minimum"),
        ("sweeper.resources.request.cpu=1", "/sweeper/resources': additional properties 'request' not allowed"),
        ("networkPolicy.apiServer.cidrs={10.0.0.1}", "/networkPolicy/apiServer/cidrs/0'"),
        ("networkPolicy.apiServer.ports=null", "/networkPolicy/apiServer': missing property 'ports'"),
        ("networkPolicy.apiServer.ports={0}", "/networkPolicy/apiServer/ports/0'"),
        ("operator=null", "missing property 'operator'"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(chart: Helm, setting: str, told: str) -> None:
    assert told in chart.refusal(setting)


def test_values_that_contradict_each_other_are_refused(chart: Helm) -> None:
    assert "networkPolicy.searchNamespaces" in chart.refusal("namespaces={a}", "networkPolicy.searchNamespaces={b}")
    assert "metrics.service: true" in chart.refusal("metrics.service=false", "metrics.serviceMonitor.enabled=true")


def test_a_cluster_that_is_too_old_is_refused(chart: Helm) -> None:
    asked = ("template", "dgdr", str(CHART), "--kube-version")

    assert "1.29" in chart(*asked, "1.29.9", check=False).stderr
    assert chart(*asked, "v1.30.2-eks-1234").returncode == 0


def test_a_chart_that_contains_this_one_may_have_global_values(chart: Helm) -> None:
    assert chart.objects("global.storageClass=fast") == chart.objects()


@pytest.mark.parametrize(
    "setting",
    [
        "operator.podLabels=null",
        "operator.podAnnotations=null",
        "operator.nodeSelector=null",
        "operator.tolerations=null",
        "operator.affinity=null",
        "operator.priorityClassName=null",
        "operator.image.tag=null",
        "fullnameOverride=null",
    ],
)
def test_a_value_that_is_taken_away_is_an_empty_one(chart: Helm, setting: str) -> None:
    assert chart.objects(setting) == chart.objects()


def test_a_monitor_needs_no_labels(chart: Helm) -> None:
    enabled = "metrics.serviceMonitor.enabled=true"

    assert chart.objects(enabled, "metrics.serviceMonitor.labels=null") == chart.objects(enabled)


def test_the_schema_knows_exactly_the_values() -> None:
    values: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())

    assert sorted(path for path, _ in leaves(values)) == sorted(schema_paths(schema, schema["$defs"]))


def test_every_group_of_values_has_a_comment() -> None:
    lines = (CHART / "values.yaml").read_text().splitlines()
    commented = {
        line.split(":")[0] for before, line in pairwise(lines) if before.startswith("# ") and line[:1].isalpha()
    }

    assert commented == set(yaml.safe_load("\n".join(lines)))


def test_the_case_everything_changes_every_value() -> None:
    default = dict(leaves(yaml.safe_load((CHART / "values.yaml").read_text())))
    changed = yaml.safe_load((VALUES / "everything.yaml").read_text())
    same = {".".join(path) for path, value in default.items() if at(changed, path, value) == value}

    assert {path for path in same if not path.endswith((".registry", ".tag", ".digest"))} == {
        "namespaces",  # the case namespaced
        "metrics.service",
        "networkPolicy.enabled",
        "userRoles",
    }


@pytest.mark.parametrize(
    ("setting", "kind"),
    [
        ("metrics.service=false", "Service"),
        ("networkPolicy.enabled=false", "NetworkPolicy"),
    ],
)
def test_what_is_switched_off_is_not_there(chart: Helm, setting: str, kind: str) -> None:
    assert kind in {value["kind"] for value in chart.objects()}
    assert kind not in {value["kind"] for value in chart.objects(setting)}


def leaves(value: dict[str, Any], start: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Paths with their values; resources are one value, as are maps that users fill."""
    for name, inner in value.items():
        path = (*start, name)
        if isinstance(inner, dict) and inner and name != "resources":
            yield from leaves(inner, path)
        else:
            yield path, inner


def at(value: dict[str, Any], path: tuple[str, ...], default: Any) -> Any:
    """The value at a path."""
    found: Any = value
    for name in path:
        if name not in found:
            return default
        found = found[name]
    return found


def schema_paths(
    schema: dict[str, Any], definitions: dict[str, Any], start: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """Paths of the schema's properties, as far as `leaves` goes."""
    for name, inner in schema["properties"].items():
        path = (*start, name)
        target = definitions[inner["$ref"].rpartition("/")[2]] if "$ref" in inner else inner
        if "properties" in target and name != "resources":
            yield from schema_paths(target, definitions, path)
        else:
            yield path
