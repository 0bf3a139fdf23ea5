"""`dgdr render`: one candidate as a DynamoGraphDeployment."""

from pathlib import Path
from typing import Annotated

import typer

from dgdr_cli.documents import Format, about, read_mapping, write_data
from dgdr_cli.exit_codes import WRONG_INPUT
from dgdr_cli.exits import border, fail
from dgdr_cli.names import check_label


def render(
    candidate: Annotated[Path, typer.Argument(help="Candidate file: one of out/candidates, or kind Candidate.")],
    request: Annotated[Path, typer.Option(help="Request of the candidate, or the run.yaml of its search.")],
    dgd_name: Annotated[
        str | None, typer.Option(help="Name of the deployment; by default made of the request's.")
    ] = None,
    materialization: Annotated[  # noqa: FBT002
        bool, typer.Option("--materialization", help="Print where each evaluated value stands instead.")
    ] = False,
    output: Annotated[Format, typer.Option("-o", "--output", help="How to print it.")] = Format.YAML,
) -> None:
    """Render a candidate through its version-bound template, and read the result back before it is printed.

    Example: dgdr render out/candidates/best.yaml --request examples/qwen3-32b.yaml
    """
    with border():
        from dgdr_publisher.rendering import evaluated_from_document, render_candidate
        from dgdr_publisher.selection import choose

        from dgdr_cli.requests import asked_by

        if dgd_name is not None:
            check_label("--dgd-name", dgd_name)
        asked = asked_by(request)
        meta = asked.request.metadata
        if dgd_name is not None:
            _check_length(dgd_name, meta.namespace)
        document = read_mapping(candidate)
        with about(candidate):
            evaluated = evaluated_from_document(document)
        if dgd_name is None:
            rendered = choose(evaluated, asked.spec, meta.name, meta.namespace).rendered
        else:
            rendered = render_candidate(evaluated, asked.spec, dgd_name, meta.namespace)
        if not materialization:
            write_data(rendered.dgd, Format.JSON if output is Format.JSON else Format.YAML)
            return
        rows = [row.model_dump(mode="json", exclude_none=True) for row in rendered.materialization]
        if output is not Format.TEXT:
            write_data(rows, output)
            return
        from dgdr_cli.tables import console, print_table

        print_table(
            "Where each evaluated value stands",
            [("parameter", False), ("value", False), ("destination or reason", False)],
            [[row["parameter"], str(row["value"]), row.get("destination") or row["reason"]] for row in rows],
            console(),
        )


def _check_length(name: str, namespace: str) -> None:
    from dgdr_api.identity import dgd_name_problems

    problems = dgd_name_problems(namespace, name, [])
    if problems:
        fail(WRONG_INPUT, f"--dgd-name {name!r}: " + "; ".join(problems))
