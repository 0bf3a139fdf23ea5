"""`dgdr verify`: whether a DynamoGraphDeployment is what was evaluated."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from dgdr_cli.documents import Format, about, read_mapping, write_data
from dgdr_cli.exit_codes import HONEST_NO
from dgdr_cli.exits import border


def verify(
    dgd: Annotated[Path, typer.Argument(help="DynamoGraphDeployment file.")],
    candidate: Annotated[Path, typer.Argument(help="Candidate file.")],
    request: Annotated[
        Path | None,
        typer.Option(help="Request of the candidate, or its run.yaml: images, nodes and model files are compared too."),
    ] = None,
    output: Annotated[Format, typer.Option("-o", "--output", help="How to print it.")] = Format.TEXT,
) -> None:
    """Read a deployment back and compare it with a candidate. Exit 3 where they differ.

    Example: dgdr verify out/dgd.yaml out/candidates/best.yaml
    """
    with border():
        from dgdr_publisher.rendering import evaluated_from_document, verify_dgd

        from dgdr_cli.requests import asked_by

        document = read_mapping(candidate)
        with about(candidate):
            evaluated = evaluated_from_document(document)
        spec = None if request is None else asked_by(request).spec
        deployment = read_mapping(dgd)
        with about(dgd):
            differences = verify_dgd(deployment, evaluated, spec)
        if output is not Format.TEXT:
            write_data([str(difference) for difference in differences], output)
        elif differences:
            sys.stdout.write("".join(f"{difference}\n" for difference in differences))
        else:
            sys.stdout.write(f"{dgd} is the deployment that {candidate} evaluated\n")
        if differences:
            raise typer.Exit(HONEST_NO)
