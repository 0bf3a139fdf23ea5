"""`dgdr catalog`: what is known of GPU types, models and versions."""

import enum
from typing import Annotated, Any

import typer

from dgdr_cli.documents import Format, write_data
from dgdr_cli.exits import border

GIB = 1024**3


class Part(enum.StrEnum):
    """Parts of the catalog."""

    SKUS = "skus"
    MODELS = "models"
    VERSIONS = "versions"


def catalog(
    part: Annotated[Part, typer.Argument(help="What to show.")],
    output: Annotated[Format, typer.Option("-o", "--output", help="How to print it.")] = Format.TEXT,
) -> None:
    """Show what is known: GPU types with their aliases, shipped models, the version chain.

    Example: dgdr catalog skus
    """
    with border():
        rows = {Part.SKUS: _skus, Part.MODELS: _models, Part.VERSIONS: _versions}[part]()
        if output is not Format.TEXT:
            write_data(rows, output)
            return
        from dgdr_cli.tables import console, print_table

        names = list(rows[0])
        cells = [[_text(row[name]) for name in names] for row in rows]
        print_table(part.value, [(name, isinstance(rows[0][name], int | float)) for name in names], cells, console())


def _text(value: Any) -> str:  # noqa: ANN401 - any cell
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(map(str, value))
        case _:
            return str(value)


def _skus() -> list[dict[str, Any]]:
    from dgdr_api.skus import catalog as skus

    return [
        {
            "name": sku.name,
            "aliases": list(sku.aliases),
            "memoryGiB": round(sku.memory_bytes / GIB, 1),
            "gpusPerNode": sku.gpus_per_node,
            "performanceData": sku.performance_data,
        }
        for sku in skus().values()
    ]


def _models() -> list[dict[str, Any]]:
    from dgdr_cli.known import opened_catalog

    with opened_catalog() as known:
        return [{"model": name} for name in known.shipped_models()]


def _versions() -> list[dict[str, Any]]:
    from dgdr_api.terms import BACKENDS
    from dgdr_api.versions import table

    known = table()
    return [
        {
            "backend": backend,
            "runtime": runtime,
            "engine": engines[backend],
            "performanceData": [
                sku for sku, versions in known.performance_data.items() if engines[backend] in versions.get(backend, ())
            ],
        }
        for backend in BACKENDS
        for runtime, engines in known.runtimes.items()
        if backend in engines
    ]
