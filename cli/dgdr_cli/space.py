"""`dgdr space`: how big a search is, before running it."""

from typing import Annotated, Any

import typer

from dgdr_cli.documents import Format, about, write_data
from dgdr_cli.exits import border
from dgdr_cli.search_inputs import ConfigFile, ConfigMaps, Mounts, RequestFile, asked_of


def space(
    request: RequestFile = None,
    config: ConfigFile = None,
    config_map: ConfigMaps = None,
    mount: Mounts = None,
    no_kv_gate: Annotated[  # noqa: FBT002
        bool, typer.Option("--no-kv-gate", help="Count shapes without room for the longest request too.")
    ] = False,
    output: Annotated[Format, typer.Option("-o", "--output", help="How to print it.")] = Format.TEXT,
) -> None:
    """Show how big a search is, before running it, and what each gate removes and why.

    Example: dgdr space examples/qwen3-32b.yaml
    """
    with border():
        from dgdr_job.search.space_report import space_report

        from dgdr_cli.known import opened_catalog

        path, asked = asked_of(request, config, config_map, mount)
        with opened_catalog(asked) as known, about(path):
            report = space_report(known, asked.spec, kv_gated=not no_kv_gate)
        if output is Format.TEXT:
            _print(report)
        else:
            write_data(report, output)


def _print(report: dict[str, Any]) -> None:
    from dgdr_cli.tables import console, print_table

    target = console()
    print_table(
        "Search space",
        [("branch", False), ("shapes", False), ("pairs", True), ("pool", True)],
        [
            [
                branch["name"],
                "; ".join(f"{kind}: {', '.join(labels)}" for kind, labels in branch.get("shapeLabels", {}).items()),
                f"{branch['pairs']:,}",
                f"{branch['pool']:,}",
            ]
            for branch in report["branches"]
        ],
        target,
    )
    removed = [
        [branch["name"], each["reason"], f"{each['count']:,}", each["detail"]]
        for branch in report["branches"]
        for each in branch["removed"]
    ]
    if removed:
        print_table(
            "Removed", [("branch", False), ("reason", False), ("count", True), ("detail", False)], removed, target
        )
    target.print(report["note"], soft_wrap=True)
