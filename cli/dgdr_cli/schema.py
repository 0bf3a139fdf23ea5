"""`dgdr schema`: the JSON Schema of a document."""

import enum
from typing import Annotated

import typer

from dgdr_cli.documents import Format, write_data
from dgdr_cli.exits import border


class Document(enum.StrEnum):
    """Documents that have a schema."""

    REQUEST = "request"
    RUN = "run"
    CANDIDATE = "candidate"
    REPLAY_SPEC = "replay-spec"
    EVENTS = "events"
    CONFIG = "config"


def schema(
    document: Annotated[Document, typer.Argument(help="Which document.")],
    output: Annotated[Format, typer.Option("-o", "--output", help="json (text is the same) or yaml.")] = Format.JSON,
) -> None:
    """Print the JSON Schema of a document.

    Example: dgdr schema request > request.schema.json
    """
    with border():
        from dgdr_api.schema import DOCUMENTS, json_schema
        from dgdr_job.search.config import SmartSearchConfig

        made = json_schema(document.value, {**DOCUMENTS, "config": SmartSearchConfig})
        write_data(made, Format.YAML if output is Format.YAML else Format.JSON)
