"""The chart's roles are the rights that the programs were seen to need, and docs/rbac.md lists them."""

from collections.abc import Iterable
from typing import Any

import pytest

from docs.rbac import ROLES, rbac_page, rules
from tests.chart.rendering import CASES, Helm, Objects, one
from tests.conftest import ROOT
from tests.operator import test_rights as tested

Right = tuple[str, str, str, str]
"""API group, resource, verb, and the name of the one object; empty: all."""


def rights(given: Iterable[dict[str, Any]]) -> set[Right]:
    return {
        (group, resource, verb, name)
        for rule in given
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    }


def of_operator(objects: Objects, kind: str, namespace: str | None = None) -> set[Right]:
    """Its role with the Lease's; the tests that found the rights have no name for the Lease."""
    lease = rights(one(objects, "Role", "dgdr-operator-lease")["rules"])
    assert {name for *_, verb, name in lease if verb != "create"} == {"dgdr-operator"}
    return rights(one(objects, kind, "dgdr-operator", namespace)["rules"]) | {(*right[:3], "") for right in lease}


def test_the_operator_has_the_rights_it_was_tested_with(chart: Helm) -> None:
    needed = rights(tested.role("any")["rules"])

    assert of_operator(chart.objects(), "ClusterRole") == needed
    for namespace in ("team-a", "team-b"):
        objects = chart.objects(values=CASES["namespaced"])
        assert of_operator(objects, "Role", namespace) == needed


def test_an_operator_of_some_namespaces_is_bound_to_nothing_in_the_cluster(chart: Helm) -> None:
    objects = chart.objects(values=CASES["namespaced"])
    bindings = [value for value in objects if value["kind"].endswith("RoleBinding")]

    assert {value["kind"] for value in bindings} == {"RoleBinding"}
    assert {value["roleRef"]["kind"] for value in bindings} == {"Role"}
    assert {value["metadata"]["name"] for value in objects if value["kind"] == "ClusterRole"} == {
        "dgdr-publisher",
        "dgdr-view",
        "dgdr-edit",
        "dgdr-promote",
    }


@pytest.mark.parametrize("case", CASES)
def test_every_binding_is_of_the_operators_account_and_a_role_that_is_there(chart: Helm, case: str) -> None:
    objects = chart.objects(values=CASES[case])
    name = "sweeps-operator" if case == "everything" else "dgdr-operator"
    account = one(objects, "ServiceAccount", name)
    for binding in (value for value in objects if value["kind"].endswith("RoleBinding")):
        role = one(
            objects, binding["roleRef"]["kind"], binding["roleRef"]["name"], binding["metadata"].get("namespace")
        )
        assert role["rules"]
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": name, "namespace": "dgdr-system"}]
    assert account["automountServiceAccountToken"] is False


def test_nobody_may_read_a_secret_or_do_everything(chart: Helm) -> None:
    for value in chart.objects():
        for _, resource, verb, _ in rights(value.get("rules", ())):
            assert "*" not in (resource, verb)
            assert not resource.startswith("secrets")


def test_people_get_their_roles_by_aggregation_but_the_right_to_deploy(chart: Helm) -> None:
    labels = {
        role: {
            label
            for label in one(chart.objects(), "ClusterRole", f"dgdr-{role}")["metadata"]["labels"]
            if label.startswith("rbac.authorization.k8s.io/")
        }
        for role in ("view", "edit", "promote")
    }

    assert labels == {
        "view": {"rbac.authorization.k8s.io/aggregate-to-view"},
        "edit": {"rbac.authorization.k8s.io/aggregate-to-edit"},
        "promote": set(),
    }
    assert not [value for value in chart.objects("userRoles=false") if value["metadata"]["name"] == "dgdr-edit"]


def test_the_page_of_rights_is_current() -> None:
    assert (ROOT / "docs" / "rbac.md").read_text() == rbac_page()


@pytest.mark.parametrize("role", ROLES)
def test_the_page_has_exactly_the_rights_that_are_rendered(chart: Helm, role: str) -> None:
    name = {"lease": "dgdr-operator-lease"}.get(role, f"dgdr-{role}")
    listed = {
        (rule.group, resource, verb, named.replace("NAME", "dgdr"))
        for rule in rules(role)
        for resource in rule.resources
        for verb in rule.verbs
        for named in rule.names or ("",)
    }

    assert listed == rights(one(chart.objects(), "Role" if role == "lease" else "ClusterRole", name)["rules"])
