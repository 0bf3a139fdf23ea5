"""`dgdr coverage`: which tuples of model, GPU type, backend and topology can be evaluated, and why not the others."""

import csv
import enum
import re
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dgdr_cli.documents import Format, about, read_text, write_data
from dgdr_cli.exit_codes import HONEST_NO, WRONG_INPUT
from dgdr_cli.exits import border, fail

if TYPE_CHECKING:
    from dgdr_api.events import TupleCoverage
    from dgdr_job.search.coverage import Tuple

MOST_GPUS = 65_536
MOST_TOKENS = 2**31 - 1
MATRIX_COLUMNS = ("model_path", "backend", "mode", "sku", "gpu_budget", "isl", "osl")


class BackendName(enum.StrEnum):
    """Backends."""

    VLLM = "vllm"
    SGLANG = "sglang"
    TRTLLM = "trtllm"


class TopologyName(enum.StrEnum):
    """Topologies."""

    AGG = "agg"
    DISAGG = "disagg"


def coverage(
    model: Annotated[str | None, typer.Option(help="Model id, e.g. Qwen/Qwen3-32B.")] = None,
    sku: Annotated[list[str] | None, typer.Option(help="GPU type or alias; may be repeated.")] = None,
    backend: Annotated[list[BackendName] | None, typer.Option(help="Backend; may be repeated; default all.")] = None,
    topology: Annotated[list[TopologyName] | None, typer.Option(help="Topology; may be repeated; default all.")] = None,
    data_version: Annotated[str | None, typer.Option(help="Version of the performance data.")] = None,
    isl: Annotated[int, typer.Option(min=1, max=MOST_TOKENS, help="Input tokens of a request.")] = 3000,
    osl: Annotated[int, typer.Option(min=1, max=MOST_TOKENS, help="Output tokens of a request.")] = 300,
    budget: Annotated[int, typer.Option(min=1, max=MOST_GPUS, help="GPUs of one deployment.")] = 64,
    matrix: Annotated[Path | None, typer.Option(help=f"CSV of tuples: {', '.join(MATRIX_COLUMNS)}.")] = None,
    output: Annotated[Format, typer.Option("-o", "--output", help="How to print it.")] = Format.TEXT,
) -> None:
    """Check what the performance data covers, with one real estimate per role. Exit 3 where nothing is supported.

    Example: dgdr coverage --model Qwen/Qwen3-32B --sku H200 --backend vllm
    """
    with border():
        from dgdr_api.skus import resolve_sku
        from dgdr_job.search.coverage import Tuple, tuple_coverage

        from dgdr_cli.known import opened_catalog

        if matrix is not None:
            asked = _matrix(matrix)
        elif model is None or not sku:
            fail(WRONG_INPUT, "give --model and --sku, or --matrix FILE.csv")
        else:
            # a value that is given twice, or under two names, is asked once
            asked = [
                Tuple(model, each_sku, each_backend.value, each_topology.value, isl, osl, budget, data_version)
                for each_sku in dict.fromkeys(resolve_sku(name).name for name in sku)
                for each_backend in dict.fromkeys(backend or BackendName)
                for each_topology in dict.fromkeys(topology or TopologyName)
            ]
        with opened_catalog() as known, about(matrix) if matrix is not None else nullcontext():
            found = [tuple_coverage(known, each) for each in asked]
        if output is Format.TEXT:
            _print(asked, found)
        else:
            rows = [
                {"model": each.model, **verdict.model_dump(mode="json")}
                for each, verdict in zip(asked, found, strict=True)
            ]
            write_data(rows, output)
        if not any(verdict.supported for verdict in found):
            raise typer.Exit(HONEST_NO)


def _matrix(path: Path) -> "list[Tuple]":
    """The tuples of a CSV file."""
    from dgdr_job.search.coverage import Tuple

    reader = csv.DictReader(read_text(path).splitlines(), restval="")
    missing = [name for name in MATRIX_COLUMNS if name not in (reader.fieldnames or [])]
    if missing:
        fail(WRONG_INPUT, f"{path}: columns {', '.join(missing)} are missing; needed are {', '.join(MATRIX_COLUMNS)}")
    tuples = []
    for line, row in _rows(reader, path):
        for name, most in (("gpu_budget", MOST_GPUS), ("isl", MOST_TOKENS), ("osl", MOST_TOKENS)):
            if re.fullmatch("[0-9]{1,10}", row[name]) is None or not 1 <= int(row[name]) <= most:
                fail(
                    WRONG_INPUT,
                    f"{path}:{line}: {name} is {row[name][:60]!r}, must be a whole number from 1 to {most:,}",
                )
        if row["backend"] not in list(BackendName) or row["mode"] not in list(TopologyName):
            fail(WRONG_INPUT, f"{path}:{line}: backend {row['backend']!r} or mode {row['mode']!r} is not known")
        tuples.append(
            Tuple(
                _model(row["model_path"], path),
                row["sku"],
                BackendName(row["backend"]).value,
                TopologyName(row["mode"]).value,
                int(row["isl"]),
                int(row["osl"]),
                int(row["gpu_budget"]),
            )
        )
    return tuples


def _rows(reader: "csv.DictReader[str]", path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows with their lines."""
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        fail(WRONG_INPUT, f"{path}:{reader.line_num + 1}: {error}")


def _model(name: str, matrix: Path) -> str:
    """A model id, or a directory with a config.json: relative to here, then to the folders above the CSV."""
    for folder in (Path(), *matrix.resolve().parents):
        with suppress(OSError):  # a name that no file can have
            if (folder / name / "config.json").is_file():
                return str(folder / name)
    return name


def _print(asked: "list[Tuple]", found: "list[TupleCoverage]") -> None:
    from dgdr_cli.tables import console, print_table

    rows = []
    for each, verdict in zip(asked, found, strict=True):
        shares = verdict.shares
        rows.append(
            [
                each.model,
                next(iter(verdict.skus.values())),
                each.backend,
                each.topology,
                verdict.data_version or "",
                "yes" if verdict.supported else verdict.reason,
                "" if shares is None else f"{shares.silicon:.0%}",
                verdict.message,
            ]
        )
    names = ("model", "GPU", "backend", "topology", "data", "supported", "silicon", "why")
    print_table("Coverage", [(name, name == "silicon") for name in names], rows, console())
