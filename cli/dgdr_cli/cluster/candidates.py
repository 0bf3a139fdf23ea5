"""`dgdr candidates`: what a run found, best first."""

from typing import Annotated, Any

import typer

from dgdr_cli.cluster.options import Context, Kubeconfig, Namespace, Output, connected
from dgdr_cli.documents import Format, write_data
from dgdr_cli.exits import border, note

_DISPLAY = ("status", "evaluation", "display")
COLUMNS: tuple[tuple[str, bool, tuple[str, ...]], ...] = (
    ("rank", True, ("status", "rank")),
    ("mode", False, (*_DISPLAY, "mode")),
    ("backend", False, ("spec", "backendFramework")),
    ("GPUs", True, ("status", "evaluation", "usedGpus")),
    ("score", True, (*_DISPLAY, "score")),
    ("TTFT", True, (*_DISPLAY, "ttft")),
    ("ITL", True, (*_DISPLAY, "itl")),
    ("tok/s/GPU", True, (*_DISPLAY, "throughputPerGpu")),
)
"""Name, whether it is aligned to the right, and place of each column: those that kubectl prints."""


def candidates(
    run: Annotated[str, typer.Argument(help="Name of the run.")],
    output: Output = Format.TEXT,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """List the candidates of a run, best first. Points of a front have no rank.

    Example: kubectl dgdr candidates qwen3-32b-run-1-4f2a
    """
    with border():
        cluster = connected(namespace, context, kubeconfig)
        from dgdr_cli.cluster.listing import candidates_of
        from dgdr_cli.cluster.lookup import run_named
        from dgdr_cli.cluster.objects import without_managed_fields
        from dgdr_cli.cluster.outcome import outcome_text

        of = run_named(cluster, run)
        found = candidates_of(cluster, of)
        if output is not Format.TEXT:
            write_data([without_managed_fields(one) for one in found], output)
        elif found:
            _print(found, run)
        else:
            note(f"run {run} has no candidate: {outcome_text(of)}")


def _print(found: list[dict[str, Any]], run: str) -> None:
    from dgdr_cli.cluster.objects import age, name_of, text_at
    from dgdr_cli.tables import console, print_table

    columns = [("name", False), *((name, right) for name, right, _ in COLUMNS), ("age", True)]
    rows = [[name_of(one), *(text_at(one, *place) for _, _, place in COLUMNS), age(one)] for one in found]
    print_table(f"Candidates of {run}", columns, rows, console())
