"""JSON Schema of the contract's documents, for `dgdr schema`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, TypeAdapter

from dgdr_api.candidate_resource import DynamoGraphDeploymentCandidate
from dgdr_api.documented import DocumentedSchema
from dgdr_api.events import Event
from dgdr_api.replay_spec import ReplaySpec
from dgdr_api.request import DynamoGraphDeploymentRequest
from dgdr_api.run import DynamoGraphDeploymentRun

DIALECT = "https://json-schema.org/draft/2020-12/schema"

DOCUMENTS: Mapping[str, type[BaseModel] | TypeAdapter[Any]] = MappingProxyType(
    {
        "request": DynamoGraphDeploymentRequest,
        "run": DynamoGraphDeploymentRun,
        "candidate": DynamoGraphDeploymentCandidate,
        "replay-spec": ReplaySpec,
        "events": TypeAdapter(Event),
    }
)
"""Documents of this room by name; another room adds its own by a mapping of its own."""


def json_schema(name: str, documents: Mapping[str, type[BaseModel] | TypeAdapter[Any]] = DOCUMENTS) -> dict[str, Any]:
    """Return the JSON Schema of a document.

    Raises:
        KeyError: there is no document of that name; the message lists them.
    """
    if name not in documents:
        raise KeyError(f"no document {name}; there are {', '.join(documents)}")
    document = documents[name]
    if isinstance(document, TypeAdapter):
        made: dict[str, Any] = document.json_schema(by_alias=True, schema_generator=DocumentedSchema)
    else:
        made = document.model_json_schema(by_alias=True, schema_generator=DocumentedSchema)
    return {"$schema": DIALECT} | made
