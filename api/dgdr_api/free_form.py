"""Checks of what the schema leaves open: ``search.parameters``, ``overrides`` and a candidate's spec."""

from collections.abc import Iterator, Mapping
from typing import Any

from dgdr_api.bounds import MAX_OPEN_BYTES
from dgdr_api.canonical import NotCanonicalError, canonical_json
from dgdr_api.errors import Problem
from dgdr_api.group import DGD_API_VERSION, DGD_KIND, GROUP
from dgdr_api.pod_texts import is_label_name, is_label_value
from dgdr_api.request import SearchSpec

FRONTEND, PLANNER = "Frontend", "Planner"
COMPONENT_OF_ROLE = {"agg": "worker", "prefill": "prefill", "decode": "decode", "encode": "encode"}
"""Component names are fixed: overrides match them and hashes contain them."""

_TEXT_MAP = "a mapping of texts"
_LABEL_MAP = "a mapping of texts that are labels"
JOB_ALLOW_LIST: Mapping[str, str] = {
    "ttlSecondsAfterFinished": "a whole number of at least 0",
    "activeDeadlineSeconds": "a whole number of at least 1",
    "metadata.labels": _LABEL_MAP,
    "metadata.annotations": _TEXT_MAP,
    "template.metadata.labels": _LABEL_MAP,
    "template.metadata.annotations": _TEXT_MAP,
    "template.spec.tolerations": "a list",
    "template.spec.nodeSelector": _LABEL_MAP,
    "template.spec.affinity": "a mapping",
    "template.spec.priorityClassName": "a text",
    "template.spec.imagePullSecrets": "a list",
    "template.spec.containers": "a list of one entry: {name: sweeper, resources: {...}}",
}
"""What ``overrides.profilingJob`` may hold, with what it must be."""

_DGD_METADATA = ("labels", "annotations")


def size_problem(field: str, value: object) -> Problem | None:
    """Say if a free-form value is too large, or holds something that has no canonical JSON."""
    try:
        size = len(canonical_json(value).encode())
    except NotCanonicalError as error:
        return Problem(field, str(error))
    if size <= MAX_OPEN_BYTES:
        return None
    return Problem(field, f"has {size:,} bytes as JSON; at most {MAX_OPEN_BYTES:,} fit")


def job_problems(fragment: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what ``overrides.profilingJob`` may not hold, by name."""
    root = "overrides.profilingJob"
    if (too_large := size_problem(root, fragment)) is not None:
        yield too_large
        return
    for path, value in _leaves(fragment, ""):
        wanted = JOB_ALLOW_LIST.get(path)
        if wanted is None:
            yield Problem(f"{root}.{path}", f"may not be overridden; allowed are {', '.join(JOB_ALLOW_LIST)}", value)
        elif not _fits(wanted, value):
            yield Problem(f"{root}.{path}", f"must be {wanted}", value)
        elif wanted in (_TEXT_MAP, _LABEL_MAP) and any(str(key).startswith(f"{GROUP}/") for key in value):
            yield Problem(f"{root}.{path}", f"keys below {GROUP}/ belong to the sweeper", value)


def dgd_problems(fragment: Mapping[str, Any], spec: SearchSpec) -> Iterator[Problem]:
    """Yield what is wrong with ``overrides.dgd``: its form, and components that no topology of the search has."""
    root = "overrides.dgd"
    if (too_large := size_problem(root, fragment)) is not None:
        yield too_large
        return
    for name, wanted in (("apiVersion", DGD_API_VERSION), ("kind", DGD_KIND)):
        if fragment.get(name, wanted) != wanted:
            yield Problem(f"{root}.{name}", f"must be {wanted}", fragment[name])
    for name in fragment:
        if name not in ("apiVersion", "kind", "metadata", "spec"):
            yield Problem(f"{root}.{name}", "is no part of a DynamoGraphDeployment; fields of its spec go under spec")
    yield from _dgd_metadata(fragment.get("metadata", {}), f"{root}.metadata")
    body = fragment.get("spec", {})
    if not isinstance(body, dict):
        yield Problem(f"{root}.spec", "must be a mapping", body)
        return
    yield from _dgd_components(body.get("components", []), f"{root}.spec.components", component_names(spec))


def component_names(spec: SearchSpec) -> tuple[str, ...]:
    """Names of the components that a candidate of this search may have."""
    roles = tuple(COMPONENT_OF_ROLE[kind] for kind in spec.role_kinds)
    return (FRONTEND, *roles, *((PLANNER,) if spec.search.planner is not None else ()))


def _dgd_metadata(metadata: object, field: str) -> Iterator[Problem]:
    if not isinstance(metadata, dict):
        yield Problem(field, "must be a mapping", metadata)
        return
    for name, value in metadata.items():
        if name not in _DGD_METADATA:
            yield Problem(f"{field}.{name}", f"may not be overridden; allowed are {', '.join(_DGD_METADATA)}", value)
        elif not _fits(_TEXT_MAP, value):
            yield Problem(f"{field}.{name}", f"must be {_TEXT_MAP}", value)
        elif any(str(key).startswith(f"{GROUP}/") for key in value):
            yield Problem(f"{field}.{name}", f"keys below {GROUP}/ belong to the sweeper", value)


def _dgd_components(components: object, field: str, known: tuple[str, ...]) -> Iterator[Problem]:
    if not isinstance(components, list):
        yield Problem(field, "must be a list of components with a name", components)
        return
    seen: set[str] = set()
    for index, component in enumerate(components):
        name = component.get("name") if isinstance(component, dict) else None
        if not isinstance(name, str):
            yield Problem(f"{field}[{index}].name", "is required: an override finds its component by name", component)
        elif name not in known:
            yield Problem(
                f"{field}[{index}].name", f"{name} fits no topology of this search; it has {', '.join(known)}", name
            )
        elif name in seen:
            yield Problem(f"{field}[{index}].name", f"{name} stands twice", name)
        else:
            seen.add(name)


def _leaves(value: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    """Descend only where the allow-list has deeper entries; the rest is one leaf."""
    for key, item in value.items():
        below = f"{path}.{key}" if path else str(key)
        if isinstance(item, dict) and any(name.startswith(f"{below}.") for name in JOB_ALLOW_LIST):
            yield from _leaves(item, below)
        else:
            yield below, item


def _fits(wanted: str, value: Any) -> bool:  # noqa: ANN401
    if wanted in (_TEXT_MAP, _LABEL_MAP):
        return isinstance(value, dict) and all(
            isinstance(item, str) and (wanted == _TEXT_MAP or (is_label_name(key) and is_label_value(item)))
            for key, item in value.items()
        )
    if wanted.startswith("a whole number"):
        return isinstance(value, int) and not isinstance(value, bool) and value >= int(wanted[-1])
    if wanted == "a mapping":
        return isinstance(value, dict)
    if wanted == "a text":
        return isinstance(value, str) and value != ""
    if wanted == "a list":
        return isinstance(value, list) and all(isinstance(item, dict) for item in value)
    return (
        isinstance(value, list)
        and len(value) == 1
        and isinstance(value[0], dict)
        and set(value[0]) == {"name", "resources"}
        and value[0]["name"] == "sweeper"
        and isinstance(value[0]["resources"], dict)
    )
