"""`dgdr diff`: in what two candidates differ."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from dgdr_cli.cluster.options import Context, Kubeconfig, Namespace, Output, connected
from dgdr_cli.documents import Format, write_data
from dgdr_cli.exits import border, note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dgdr_cli.cluster.differences import CandidateDifferences, Difference

NOTHING = "-"


def diff(
    left: Annotated[str, typer.Argument(help="Name of a candidate.")],
    right: Annotated[str, typer.Argument(help="Name of another.")],
    output: Output = Format.TEXT,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Show in what two candidates differ: evaluation inputs, fields of the deployment, results.

    Example: kubectl dgdr diff qwen3-32b-g1-4f2a-1b9c42f9 qwen3-32b-g1-4f2a-0c22e1d7
    """
    with border():
        cluster = connected(namespace, context, kubeconfig)
        from dgdr_cli.cluster.differences import candidate_differences
        from dgdr_cli.cluster.lookup import candidate_named

        found = candidate_differences(candidate_named(cluster, left), candidate_named(cluster, right))
        if output is Format.TEXT:
            _print(found, left, right)
        else:
            write_data(asdict(found), output)


def _print(found: "CandidateDifferences", left: str, right: str) -> None:
    if not (found.parameters or found.dgd or found.metrics):
        note(f"candidates {left} and {right} do not differ")
    for title, rows in (
        ("Evaluation inputs", found.parameters),
        ("Deployment", found.dgd),
        ("Results", found.metrics),
    ):
        _table(title, rows, left, right)


def _table(title: str, rows: "Sequence[Difference]", left: str, right: str) -> None:
    from dgdr_cli.tables import console, print_table

    if not rows:
        return
    columns = [("place", False), ("option", False), (left, False), (right, False)]
    cells = [(row.pointer, row.option, row.left or NOTHING, row.right or NOTHING) for row in rows]
    kept = [index for index, _ in enumerate(columns) if index != 1 or any(row[1] for row in cells)]
    print_table(title, [columns[at] for at in kept], [[row[at] for at in kept] for row in cells], console())
