"""Every kind of pydantic error that a model of the contract can raise has a sentence of ours."""

from typing import Any

import pytest
from dgdr_api.candidate_resource import DynamoGraphDeploymentCandidate
from dgdr_api.errors import InvalidRequest
from dgdr_api.parse import read
from dgdr_api.replay_spec import ReplaySpec
from dgdr_api.request import DynamoGraphDeploymentRequest
from dgdr_api.run import DynamoGraphDeploymentRun
from dgdr_api.sentences import path_of, shown
from pydantic import BaseModel

from tests.api.objects import MINIMAL_REQUEST, candidate, run
from tests.api.test_candidate import replay_spec

WRONG: tuple[Any, ...] = (
    None,
    True,
    "x",
    "",
    -1,
    0,
    1.5,
    2**40,
    10**18,
    [],
    [None],
    ["a", "a"],
    {},
    {"a": 1},
    {"type": "x"},
)


def everywhere(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place of a value."""
    places = [path]
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in entries:
        places += everywhere(item, (*path, key))
    return places


def replaced(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    if not path:
        return new
    copied = dict(value) if isinstance(value, dict) else list(value)
    copied[path[0]] = replaced(value[path[0]], path[1:], new)  # type: ignore[index]
    return copied


@pytest.mark.parametrize(
    ("model", "valid"),
    [
        (DynamoGraphDeploymentRequest, MINIMAL_REQUEST),
        (DynamoGraphDeploymentRun, run()),
        (DynamoGraphDeploymentCandidate, candidate()),
        (ReplaySpec, replay_spec()),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_any_wrong_value_anywhere_is_refused_in_our_words(model: type[BaseModel], valid: dict[str, Any]) -> None:
    said = [
        words
        for place in everywhere(valid)
        for wrong in WRONG
        if (words := refusal(model, replaced(valid, place, wrong))) is not None
    ]

    assert len(said) > len(everywhere(valid))
    for leaked in ("Input should", "Input tag", "Field required", "valid ", "https://"):
        assert [words for words in said if leaked in words] == []


def refusal(model: type[BaseModel], value: object) -> str | None:
    try:
        read(model, value)
    except InvalidRequest as error:
        return str(error)
    return None


def test_paths_and_values_as_a_user_writes_them() -> None:
    assert path_of(("spec", "backends", 1)) == "spec.backends[1]"
    assert path_of((0, "a", "[key]")) == "[0].a"
    assert shown("x" * 100) == '"' + "x" * 56 + "..."
    assert shown({"a": True}) == '{"a": true}'
