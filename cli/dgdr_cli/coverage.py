"""`dgdr coverage`: which tuples of model, GPU type, backend and topology can be evaluated, and why not the others."""

import enum
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from dgdr_cli.documents import Format, about, write_data
from dgdr_cli.exit_codes import HONEST_NO, WRONG_INPUT
from dgdr_cli.exits import border, fail
from dgdr_cli.matrix import COLUMNS, EXPECTED, MOST_GPUS, MOST_TOKENS, NOT_MODELLED


class BackendName(enum.StrEnum):
    """Backends."""

    VLLM = "vllm"
    SGLANG = "sglang"
    TRTLLM = "trtllm"


class TopologyName(enum.StrEnum):
    """Topologies."""

    AGG = "agg"
    DISAGG = "disagg"


class CoverageFormat(enum.StrEnum):
    """How coverage is printed."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"
    MARKDOWN = "markdown"


def coverage(
    model: Annotated[
        str | None, typer.Option(help="Model id, e.g. Qwen/Qwen3-32B, or a directory with a config.json.")
    ] = None,
    sku: Annotated[list[str] | None, typer.Option(help="GPU type or alias; may be repeated.")] = None,
    prefill_sku: Annotated[str | None, typer.Option(help="GPU type of prefill workers; default: --sku.")] = None,
    decode_sku: Annotated[str | None, typer.Option(help="GPU type of decode workers; default: --sku.")] = None,
    backend: Annotated[list[BackendName] | None, typer.Option(help="Backend; may be repeated; default all.")] = None,
    topology: Annotated[list[TopologyName] | None, typer.Option(help="Topology; may be repeated; default all.")] = None,
    data_version: Annotated[str | None, typer.Option(help="Version of the performance data.")] = None,
    isl: Annotated[int, typer.Option(min=1, max=MOST_TOKENS, help="Input tokens of a request.")] = 3000,
    osl: Annotated[int, typer.Option(min=1, max=MOST_TOKENS, help="Output tokens of a request.")] = 300,
    budget: Annotated[int, typer.Option(min=1, max=MOST_GPUS, help="GPUs of one deployment.")] = 64,
    matrix: Annotated[
        Path | None,
        typer.Option(help=f"CSV of tuples: {', '.join(COLUMNS)}; optional: {NOT_MODELLED}, {EXPECTED}."),
    ] = None,
    output: Annotated[CoverageFormat, typer.Option("-o", "--output", help="How to print it.")] = CoverageFormat.TEXT,
) -> None:
    """Check what the performance data covers, with one real estimate per role. Exit 3 where nothing is supported.

    Example: dgdr coverage --model Qwen/Qwen3-32B --sku H200 --backend vllm
    """
    with border():
        from dgdr_api.skus import resolve_sku
        from dgdr_job.search.coverage import Tuple, tuple_coverage

        from dgdr_cli.coverage_table import markdown, print_text, row_of
        from dgdr_cli.known import opened_catalog
        from dgdr_cli.matrix import Probe, read_matrix

        roles = {"--prefill-sku": prefill_sku, "--decode-sku": decode_sku}
        if matrix is not None:
            _alone(model=model, sku=sku, backend=backend, topology=topology, data_version=data_version, **roles)
            asked = read_matrix(matrix)
        elif model is None or not sku:
            fail(WRONG_INPUT, "give --model and --sku, or --matrix FILE.csv")
        else:
            # a value that is given twice, or under two names, is asked once
            asked = [
                Probe(
                    Tuple(
                        *(model, each_sku, each_backend.value, each_topology.value, isl, osl, budget, data_version),
                        prefill_sku=prefill_sku if each_topology == TopologyName.DISAGG else None,
                        decode_sku=decode_sku if each_topology == TopologyName.DISAGG else None,
                    )
                )
                for each_sku in dict.fromkeys(resolve_sku(name).name for name in sku)
                for each_backend in dict.fromkeys(backend or BackendName)
                for each_topology in dict.fromkeys(topology or TopologyName)
            ]
            given = [name for name, value in roles.items() if value is not None]
            if given and topology == [TopologyName.AGG]:
                fail(WRONG_INPUT, f"{given[0]}: aggregated workers do both; it needs topology disagg")
        with opened_catalog() as known, about(matrix) if matrix is not None else nullcontext():
            rows = [row_of(probe, tuple_coverage(known, probe.tuple)) for probe in asked]
        if output is CoverageFormat.TEXT:
            print_text(rows)
        elif output is CoverageFormat.MARKDOWN:
            sys.stdout.write(markdown(rows))
        else:
            write_data([row.data for row in rows], Format(output.value))
        if not any(row.verdict.supported for row in rows):
            raise typer.Exit(HONEST_NO)


def _alone(**others: object) -> None:
    """A matrix names its tuples itself."""
    given = [f"--{name.removeprefix('--').replace('_', '-')}" for name, value in others.items() if value]
    if given:
        fail(WRONG_INPUT, f"--matrix names its tuples itself; leave out {', '.join(given)}")
