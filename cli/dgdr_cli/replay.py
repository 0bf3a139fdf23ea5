"""`dgdr replay`: one ReplaySpec played through, and its figures."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from dgdr_cli.documents import Format, read_mapping, write_data
from dgdr_cli.exits import border, note
from dgdr_cli.known import opened_catalog


def replay(
    spec: Annotated[Path, typer.Argument(help="ReplaySpec file, or a candidate whose own is replayed.")],
    requests_out: Annotated[
        Path | None, typer.Option("--requests-out", help="Write one row a request to this file, as JSON.")
    ] = None,
    output: Annotated[Format, typer.Option("-o", "--output", help="How to print it.")] = Format.TEXT,
) -> None:
    """Replay one deployment under one workload, event by event, and print what its users would see.

    Paths in the document are relative to its folder.

    Example: dgdr replay spec.yaml --requests-out requests.json -o json
    """
    with border():
        from dgdr_job.replay.replaying import replay_spec
        from dgdr_job.replay.report import report, request_rows

        document = parsed(spec)
        folder = Path() if str(spec) == "-" else spec.parent
        with opened_catalog() as catalog:
            plan, requests, outcome = replay_spec(
                document,
                folder,
                progress=lambda lines: note(f"{lines:,} lines of the trace are read"),
                catalog=catalog,
                told=note,
            )
        figures = report(plan, requests, outcome, document.sla)
        if requests_out is not None:
            write_rows(requests_out, request_rows(requests, outcome, disaggregated=plan.disaggregated))
        if output is Format.TEXT:
            print_figures(figures)
        else:
            write_data(figures, output)


def parsed(path: Path) -> Any:  # noqa: ANN401 - a model of a module that is imported when it is needed
    """The document in a file. Ends with exit 2, naming every field that is wrong."""
    from dgdr_api.group import CANDIDATE_KIND
    from dgdr_api.parse import read
    from dgdr_api.replay_spec import ReplaySpec

    from dgdr_cli.documents import about

    document = read_mapping(path)
    if document.get("kind") == CANDIDATE_KIND:
        document = _scored(document)
    with about(path):
        return read(ReplaySpec, document)


def _scored(candidate: Mapping[str, Any]) -> dict[str, Any]:
    """The spec that a candidate's numbers belong to."""
    from dgdr_api.errors import InvalidRequest, Problem

    found: Any = candidate
    for key in ("status", "evaluation", "replaySpec"):
        found = found.get(key) if isinstance(found, dict) else None
    if not isinstance(found, dict):
        raise InvalidRequest([Problem("status.evaluation.replaySpec", "is missing: the candidate was not evaluated")])
    return found


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """One JSON array, a row a line."""
    import json

    text = ",\n".join(json.dumps(row) for row in rows)
    path.write_text(f"[{text}]\n")


def print_figures(figures: dict[str, Any]) -> None:
    """A table of the figures."""
    from rich.table import Table

    from dgdr_cli.tables import console

    counts = Table(box=None, show_header=False)
    latencies = Table("", "mean", "p50", "p90", "p99", "max", box=None)
    for name, value in figures.items():
        if isinstance(value, dict) and "mean" in value:
            cells = (value[key] for key in ("mean", "p50", "p90", "p99", "max"))
            latencies.add_row(name, *("-" if one is None else f"{one:,.3f}" for one in cells))
        elif isinstance(value, dict):
            for part, one in value.items():
                counts.add_row(f"{name}.{part}", _number(one))
        else:
            counts.add_row(name, _number(value))
    console().print(counts)
    console().print(latencies)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"
