"""Whatever is changed in a rendered deployment, the independent reader says so."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from dgdr_publisher.rendering import render_candidate, verify_dgd

from tests.publisher.cases import CASES

NOT_EVALUATED = ("/tolerations", "/sharedMemorySize")
"""Follow from the catalog of node types and change no evaluated value."""


def steps(pointer: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def parent_of(document: Any, pointer: str) -> tuple[Any, Any]:
    *path, last = steps(pointer)
    for step in path:
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document, int(last) if isinstance(document, list) else last


def other(value: Any) -> Any:
    """A value of the same kind that is not this one."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case dict():
            return {}
        case str() if value.isdecimal():
            return str(int(value) * 2)
        case str() if value.replace(".", "", 1).isdecimal():
            return str(float(value) / 2)
        case str():
            return f"{value}x"
    raise AssertionError(value)


def leaf_pointers(value: Any, pointer: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaf_pointers(item, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaf_pointers(item, f"{pointer}/{index}")
    else:
        yield pointer


@pytest.mark.parametrize("name", CASES)
def test_each_evaluated_value_that_is_changed_at_its_destination_is_found(name: str) -> None:
    candidate, request = CASES[name]
    rendered = render_candidate(candidate, request, "qwen")
    destinations = {row.destination: row.parameter for row in rendered.materialization if row.destination}
    assert len(destinations) > 15
    for pointer, parameter in destinations.items():
        changed = copy.deepcopy(rendered.dgd)
        parent, key = parent_of(changed, pointer)
        parent[key] = other(parent[key])
        assert verify_dgd(changed, candidate, request), f"{parameter} changed at {pointer} is not found"
        image_or_nodes = pointer.endswith("nodeSelector")
        assert image_or_nodes or verify_dgd(changed, candidate), f"{parameter} at {pointer} is not found alone"


@pytest.mark.parametrize("name", CASES)
def test_each_evaluated_value_that_is_left_out_is_found(name: str) -> None:
    candidate, request = CASES[name]
    rendered = render_candidate(candidate, request, "qwen")
    for row in rendered.materialization:
        if row.destination:
            changed = copy.deepcopy(rendered.dgd)
            parent, key = parent_of(changed, row.destination)
            if row.parameter == "decode.engine.enablePrefixCaching" and parent[key] == "--disable-radix-cache":
                continue  # a decode worker of SGLang caches only when told to: the deployment stays the same
            del parent[key]
            assert verify_dgd(changed, candidate, request), f"{row.parameter} missing at {row.destination}"


@pytest.mark.parametrize("name", CASES)
def test_each_leaf_of_the_deployment_that_is_changed_is_found(name: str) -> None:
    candidate, request = CASES[name]
    dgd = render_candidate(candidate, request, "qwen").dgd
    for pointer in leaf_pointers(dgd):
        if any(part in pointer for part in NOT_EVALUATED) or pointer == "/metadata/name":
            continue
        changed = copy.deepcopy(dgd)
        parent, key = parent_of(changed, pointer)
        parent[key] = other(parent[key])
        assert verify_dgd(changed, candidate, request), f"a change at {pointer} is not found"


@pytest.mark.parametrize("name", CASES)
def test_each_argument_given_twice_is_found(name: str) -> None:
    candidate, request = CASES[name]
    dgd = render_candidate(candidate, request, "qwen").dgd
    for index, component in enumerate(dgd["spec"]["components"]):
        arguments = component["podTemplate"]["spec"]["containers"][0]["args"]
        for flag in [item for item in arguments if item.startswith("--")]:
            changed = copy.deepcopy(dgd)
            target = changed["spec"]["components"][index]["podTemplate"]["spec"]["containers"][0]["args"]
            position = target.index(flag)
            following = target[position + 1 : position + 2]
            target += [flag, *(item for item in following if not item.startswith("--"))]
            assert verify_dgd(changed, candidate, request), f"{flag} given twice is not found"
