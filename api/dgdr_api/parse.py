"""Text to a request, with errors that a person can act on: field, value, bound, what would do."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from dgdr_api.annotations import without_nulls
from dgdr_api.canonical import NotCanonicalError, canonical_json
from dgdr_api.document import read_document
from dgdr_api.errors import InvalidRequest, Problem
from dgdr_api.group import API_VERSION, REQUEST_KIND, UPSTREAM_API_VERSION
from dgdr_api.request import DynamoGraphDeploymentRequest
from dgdr_api.sentences import path_of, problems, shown

M = TypeVar("M", bound=BaseModel)


def parse_request(text: str) -> DynamoGraphDeploymentRequest:
    """Read a request from YAML or JSON.

    ``apiVersion: nvidia.com/v1beta2`` is read as ours. A typed field that is null counts as absent, as for
    the API server.

    Raises:
        InvalidRequest: with everything that is wrong.
    """
    return request_of(read_document(text))


def request_of(value: Mapping[str, Any]) -> DynamoGraphDeploymentRequest:
    """Read a request from a mapping, e.g. what the API server answered.

    Raises:
        InvalidRequest: with everything that is wrong.
    """
    found = dict(value)
    wrong = []
    if found.get("apiVersion") not in (API_VERSION, UPSTREAM_API_VERSION):
        wrong.append(_one_of("apiVersion", f"{API_VERSION} (or {UPSTREAM_API_VERSION})", found.get("apiVersion")))
    if found.get("kind") != REQUEST_KIND:
        wrong.append(_one_of("kind", REQUEST_KIND, found.get("kind")))
    if wrong:
        raise InvalidRequest(wrong)
    found = without_nulls(DynamoGraphDeploymentRequest, found)
    return read(DynamoGraphDeploymentRequest, found | {"apiVersion": API_VERSION})


def read(model: type[M], value: object) -> M:
    """Validate a plain value strictly: no text becomes a number, no number a text.

    Raises:
        InvalidRequest: with everything that is wrong, in camelCase paths.
    """
    try:
        text = canonical_json(value)
    except NotCanonicalError as error:
        raise InvalidRequest([Problem(path_of(_location(error.pointer)), error.problem)]) from error
    try:
        return model.model_validate_json(text, strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        raise InvalidRequest(problems(model, error.errors(include_url=False))) from error


def _one_of(field: str, wanted: str, found: object) -> Problem:
    return Problem(field, f"must be {wanted}, found {shown(found) if found is not None else 'nothing'}", found)


def _location(pointer: str) -> tuple[int | str, ...]:
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    return tuple(int(part) if part.isdigit() else part for part in parts)
