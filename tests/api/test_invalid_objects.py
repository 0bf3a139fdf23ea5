"""A laptop refuses what the API server refuses (see test_crds_on_api_server), in the same words where rules speak."""

from collections.abc import Iterator

import pytest
from dgdr_api.base import wire
from dgdr_api.crd import RESOURCES, crd
from dgdr_api.defaults import run_spec
from dgdr_api.errors import InvalidRequest
from dgdr_api.parse import request_of
from dgdr_api.rules import VALIDATIONS
from dgdr_api.run import RunSpec

from tests.api.invalid import Invalid
from tests.api.invalid_objects import INVALID, RULES
from tests.api.invalid_texts import TEXTS
from tests.api.valid_objects import VALID


@pytest.mark.parametrize("invalid", INVALID, ids=lambda invalid: f"{invalid.id}-{invalid.field}")
def test_is_refused_with_field_and_message(invalid: Invalid) -> None:
    with pytest.raises(InvalidRequest) as refused:
        request_of(invalid.object)

    said = {problem.field: problem.message for problem in refused.value.problems}
    assert invalid.laptop in said.get(invalid.field, ""), str(refused.value)
    assert len(said) == 1, str(refused.value)


@pytest.mark.parametrize("name", VALID)
def test_a_valid_object_near_a_rule_is_accepted(name: str) -> None:
    assert wire(request_of(VALID[name]), given_only=True) == VALID[name]


@pytest.mark.parametrize("name", VALID)
def test_what_a_rule_accepts_it_accepts_with_every_default_explicit(name: str) -> None:
    spec = run_spec(request_of(VALID[name]).spec)

    assert run_spec(RunSpec.model_validate(wire(spec))) == spec


def test_every_rule_of_the_request_has_an_invalid_object() -> None:
    messages = {entry["message"] for entry in _validations(crd(RESOURCES[0])) if "metadata" not in entry["rule"]}

    uncovered = {message for message in messages if not any(invalid.laptop in message for invalid in RULES + TEXTS)}

    assert uncovered == set()
    assert len(INVALID) >= 45


def _validations(node: object) -> Iterator[dict[str, str]]:
    if isinstance(node, dict):
        yield from node.get(VALIDATIONS, ())
        for child in node.values():
            yield from _validations(child)
    elif isinstance(node, list):
        for child in node:
            yield from _validations(child)
