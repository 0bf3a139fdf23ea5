"""The CRD generator: pydantic models to ``crds/*.yaml``.

    python -m dgdr_api.crd --write crds     # after a change of a model
    python -m dgdr_api.crd --check crds     # what CI runs

A structural schema has no references, no unions and, here, no defaults: those are applied in code (see
`dgdr_api.defaults`), so that a minimal object comes back from the API server as it was written.
"""

import argparse
import copy
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from dgdr_api.candidate_resource import DynamoGraphDeploymentCandidate
from dgdr_api.documented import DocumentedSchema
from dgdr_api.group import GROUP, VERSION
from dgdr_api.request import DynamoGraphDeploymentRequest
from dgdr_api.rules import VALIDATIONS
from dgdr_api.run import DynamoGraphDeploymentRun

PRESERVE = "x-kubernetes-preserve-unknown-fields"
CATEGORY = "dgdr-all"
IMMUTABLE = {"rule": "self == oldSelf", "message": "spec is immutable"}
# A rule of the root cannot blame a field of metadata by fieldPath, so the message names it.
NAME_RULES = (
    {
        "rule": "size(self.metadata.name) <= 63",
        "message": "metadata.name must have at most 63 characters",
    },
    {
        "rule": "!self.metadata.name.contains('.')",
        "message": "metadata.name must be a DNS label: lower-case letters, digits and hyphens",
    },
)
_KEPT = dict.fromkeys(
    (
        "description", "type", "format", "enum", "pattern", "minimum", "maximum", "exclusiveMinimum", "minLength",
        "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "required", "properties", "items",
        "additionalProperties", PRESERVE, "x-kubernetes-list-type", "x-kubernetes-list-map-keys", VALIDATIONS,
    )
)  # fmt: skip
"""Keys of a structural schema, in the order in which they are written."""
_EXACT = 2**53
_DROPPED = frozenset({"title", "default", "discriminator", "uniqueItems", "const", "$ref", "anyOf", "allOf"})


class NotStructuralError(TypeError):
    """A model has a form that no CRD can state; named by its path."""


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One kind as the API server knows it."""

    model: type[BaseModel]
    plural: str
    short_names: tuple[str, ...]
    columns: tuple[tuple[str, str, str], ...]
    """Name, type and path of each printed column; Age follows."""
    immutable: bool

    @property
    def kind(self) -> str:
        """Kind, e.g. DynamoGraphDeploymentRun."""
        return self.model.__name__

    @property
    def name(self) -> str:
        """Name of the CRD."""
        return f"{self.plural}.{GROUP}"


def _reason(condition: str) -> str:
    return f'.status.conditions[?(@.type=="{condition}")].reason'


RESOURCES: tuple[Resource, ...] = (
    Resource(
        model=DynamoGraphDeploymentRequest,
        plural="dynamographdeploymentrequests",
        short_names=("dgdr", "dgdreq"),
        columns=(
            ("Model", "string", ".spec.modelRef.name"),
            ("SKU", "string", ".spec.hardware.gpu.sku"),
            ("Budget", "integer", ".spec.hardware.gpu.budget"),
            ("Active Run", "string", ".status.activeRunRef.name"),
            ("Accepted", "string", _reason("Accepted")),
        ),
        immutable=False,
    ),
    Resource(
        model=DynamoGraphDeploymentRun,
        plural="dynamographdeploymentruns",
        short_names=("dgdrrun",),
        columns=(
            ("Phase", "string", ".status.phase"),
            ("Done", "string", ".status.progress.summary"),
            ("Feasible", "integer", ".status.progress.evaluations.feasible"),
            ("Best", "string", ".status.best.display"),
            ("Candidates", "integer", ".status.progress.candidates.published"),
            ("Completed", "string", _reason("Completed")),
        ),
        immutable=True,
    ),
    Resource(
        model=DynamoGraphDeploymentCandidate,
        plural="dynamographdeploymentcandidates",
        short_names=("dgdc",),
        columns=(
            ("Rank", "integer", ".status.rank"),
            ("Mode", "string", ".status.evaluation.display.mode"),
            ("Backend", "string", ".spec.backendFramework"),
            ("GPUs", "integer", ".status.evaluation.usedGpus"),
            ("Score", "string", ".status.evaluation.display.score"),
            ("TTFT", "string", ".status.evaluation.display.ttft"),
            ("ITL", "string", ".status.evaluation.display.itl"),
            ("Tok/s/GPU", "string", ".status.evaluation.display.throughputPerGpu"),
        ),
        immutable=True,
    ),
)


def crd(resource: Resource) -> dict[str, Any]:
    """Build the CustomResourceDefinition of a kind."""
    schema = structural(resource.model)
    schema["properties"]["metadata"] = {"type": "object"}  # the API server allows nothing else here
    schema["required"] = ["spec"]
    schema[VALIDATIONS] = [dict(rule) for rule in NAME_RULES]
    if resource.immutable:
        spec = schema["properties"]["spec"]
        spec[VALIDATIONS] = [*spec.get(VALIDATIONS, []), dict(IMMUTABLE)]
    columns = [{"name": name, "type": kind, "jsonPath": path} for name, kind, path in resource.columns]
    columns.append({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"})
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.name},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                "shortNames": list(resource.short_names),
                "categories": [CATEGORY],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": columns,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def structural(model: type[BaseModel]) -> dict[str, Any]:
    """Turn a model's JSON Schema into a structural schema.

    Raises:
        NotStructuralError: a union, a recursion or a tuple of fixed length.
    """
    schema = model.model_json_schema(mode="validation", by_alias=True, schema_generator=DocumentedSchema)
    return _node(schema, schema.get("$defs", {}), model.__name__, ())


def _node(site: Mapping[str, Any], defs: Mapping[str, Any], path: str, open_refs: tuple[str, ...]) -> dict[str, Any]:
    merged, open_refs = _inlined(site, defs, path, open_refs)
    if "const" in merged:
        merged["enum"] = [merged["const"]]
    if merged.pop("uniqueItems", False):
        merged["x-kubernetes-list-type"] = "set"
    if isinstance(bound := merged.pop("exclusiveMinimum", None), int | float):
        merged |= {"minimum": bound, "exclusiveMinimum": True}
    if merged.get("type") == "integer":
        merged["format"] = "int64"
        if merged.get("maximum", 0) > _EXACT:
            del merged["maximum"]  # int64 is the bound; the API server would read the number as a negative one
    if "description" in merged:
        merged["description"] = " ".join(merged["description"].split())
    _children(merged, defs, path, open_refs)
    if unknown := sorted(set(merged) - set(_KEPT) - _DROPPED - {"$defs"}):
        raise NotStructuralError(f"{path}: {', '.join(unknown)} has no counterpart in a CRD")
    return {key: merged[key] for key in _KEPT if key in merged}


def _inlined(
    site: Mapping[str, Any], defs: Mapping[str, Any], path: str, open_refs: tuple[str, ...]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Replace references and optional branches by what they mean; keys of the site win, its rules are added."""
    merged = copy.deepcopy(dict(site))
    while "$ref" in merged or "anyOf" in merged:
        if "$ref" in merged:
            name = merged.pop("$ref").rpartition("/")[2]
            if name in open_refs:
                raise NotStructuralError(f"{path}: {name} contains itself")
            open_refs = (*open_refs, name)
            target = copy.deepcopy(dict(defs[name]))
        else:
            branches = [branch for branch in merged.pop("anyOf") if branch.get("type") != "null"]
            if len(branches) != 1:
                raise NotStructuralError(f"{path}: a union of {len(branches)} types")
            target = copy.deepcopy(dict(branches[0]))
        rules = target.get(VALIDATIONS, []) + merged.get(VALIDATIONS, [])
        merged = target | merged | ({VALIDATIONS: rules} if rules else {})
    return merged, open_refs


def _children(node: dict[str, Any], defs: Mapping[str, Any], path: str, open_refs: tuple[str, ...]) -> None:
    if "prefixItems" in node:
        raise NotStructuralError(f"{path}: a tuple of fixed length")
    if "properties" in node:
        node["properties"] = {
            name: _node(child, defs, f"{path}.{name}", open_refs) for name, child in node["properties"].items()
        }
    if "items" in node:
        node["items"] = _node(node["items"], defs, f"{path}[]", open_refs)
    values = node.pop("additionalProperties", False)
    if values is True:
        node[PRESERVE] = True
    elif values:
        node["additionalProperties"] = _node(values, defs, f"{path}{{}}", open_refs)


def text(resource: Resource) -> str:
    """The YAML file of a kind."""
    made = yaml.dump(crd(resource), Dumper=_NoAliases, sort_keys=False, width=118, allow_unicode=True)
    return f"---\n# Generated by `python -m dgdr_api.crd --write crds`; do not edit.\n{made}"


class _NoAliases(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ANN401, ARG002
        return True


def file_names() -> dict[str, str]:
    """Text of each file by its name."""
    return {f"{resource.name}.yaml": text(resource) for resource in RESOURCES}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, or say which are stale; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m dgdr_api.crd", description="Generate the CRDs from the models.")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", metavar="DIR", type=Path, help="write the files into DIR")
    action.add_argument("--check", metavar="DIR", type=Path, help="fail if a file in DIR is not current")
    chosen = parser.parse_args(arguments)
    folder: Path = chosen.write or chosen.check
    stale = []
    for name, made in file_names().items():
        file = folder / name
        if chosen.write is not None:
            file.write_text(made, "utf-8")
        elif not file.is_file() or file.read_text("utf-8") != made:
            stale.append(str(file))
    if stale:
        sys.stderr.write(f"stale: {', '.join(stale)}; run python -m dgdr_api.crd --write {folder}\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
