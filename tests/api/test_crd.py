"""The generated CRDs: current, bounded everywhere, described everywhere, without defaults."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dgdr_api.crd import RESOURCES, NotStructuralError, Resource, crd, file_names, main, structural
from pydantic import BaseModel

CRDS = Path(__file__).resolve().parents[2] / "crds"
FREE_FORM = {
    "spec",
    "spec.search.parameters",
    "spec.overrides.dgd",
    "spec.overrides.profilingJob",
    "status.evaluation.replaySpec",
}


def nodes(node: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}".removeprefix("."))
    for key, suffix in (("items", "[]"), ("additionalProperties", "{}")):
        if key in node:
            yield from nodes(node[key], path + suffix)


def schema_of(resource: Resource) -> dict[str, Any]:
    return crd(resource)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]  # type: ignore[no-any-return]


each_kind = pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.kind)


def test_the_checked_in_files_are_current() -> None:
    assert {file.name: file.read_text("utf-8") for file in CRDS.glob("*.yaml")} == file_names()


def test_check_names_the_stale_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--write", str(tmp_path)]) == 0
    assert main(["--check", str(tmp_path)]) == 0
    stale = tmp_path / f"{RESOURCES[1].name}.yaml"
    stale.write_text("old")

    assert main(["--check", str(tmp_path)]) == 1
    assert str(stale) in capsys.readouterr().err


@each_kind
def test_every_string_list_and_map_has_a_bound(resource: Resource) -> None:
    unbounded = []
    for path, node in nodes(schema_of(resource)):
        kind = node.get("type")
        if kind == "string" and "maxLength" not in node and "enum" not in node and path not in ("apiVersion", "kind"):
            unbounded.append(path)
        if kind == "array" and "maxItems" not in node:
            unbounded.append(path)
        if kind == "object" and "additionalProperties" in node and "maxProperties" not in node:
            unbounded.append(path)

    assert unbounded == []


@each_kind
def test_every_field_has_a_description(resource: Resource) -> None:
    silent = [
        path
        for path, node in nodes(schema_of(resource))
        if "description" not in node and path != "metadata" and not path.endswith(("[]", "{}"))
    ]

    assert silent == []


@each_kind
def test_nothing_has_a_default(resource: Resource) -> None:
    assert [path for path, node in nodes(schema_of(resource)) if "default" in node] == []


@each_kind
def test_only_free_form_parts_keep_unknown_fields(resource: Resource) -> None:
    open_parts = {path for path, node in nodes(schema_of(resource)) if "x-kubernetes-preserve-unknown-fields" in node}

    assert open_parts <= FREE_FORM
    assert ("spec" in open_parts) == (resource.kind == "DynamoGraphDeploymentCandidate")


@each_kind
def test_runs_and_candidates_are_immutable(resource: Resource) -> None:
    rules = [entry["rule"] for entry in schema_of(resource)["properties"]["spec"].get("x-kubernetes-validations", [])]

    assert ("self == oldSelf" in rules) == (resource.kind != "DynamoGraphDeploymentRequest")
    assert schema_of(resource)["required"] == ["spec"]


@each_kind
def test_conditions_are_a_map_by_type(resource: Resource) -> None:
    conditions = schema_of(resource)["properties"]["status"]["properties"]["conditions"]

    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]


def test_rules_stand_where_they_look() -> None:
    spec = schema_of(RESOURCES[0])["properties"]["spec"]["properties"]

    assert len(spec["objective"]["x-kubernetes-validations"]) == 5
    assert spec["hardware"]["properties"]["gpu"]["x-kubernetes-validations"] == [
        {
            "rule": "!has(self.minBudget) || self.minBudget <= self.budget",
            "message": "minBudget must not exceed budget",
            "fieldPath": ".minBudget",
        }
    ]


def test_a_set_a_range_and_an_integer_become_what_a_crd_knows() -> None:
    spec = schema_of(RESOURCES[0])["properties"]["spec"]["properties"]

    assert spec["backends"]["x-kubernetes-list-type"] == "set"
    assert spec["workload"]["properties"]["static"]["properties"]["requestRate"]["exclusiveMinimum"] is True
    assert spec["hardware"]["properties"]["gpu"]["properties"]["budget"]["format"] == "int64"


class _Union(BaseModel):
    value: int | str


class _Pair(BaseModel):
    value: tuple[int, int]


class _Tree(BaseModel):
    children: tuple["_Tree", ...]


@pytest.mark.parametrize(("model", "said"), [(_Union, "_Union.value: a union"), (_Pair, "a tuple"), (_Tree, "itself")])
def test_what_is_not_structural_is_refused_by_path(model: type[BaseModel], said: str) -> None:
    with pytest.raises(NotStructuralError, match=said):
        structural(model)
