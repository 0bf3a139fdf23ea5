"""`dgdr runs`: the runs of a request."""

from typing import Annotated, Any

import typer

from dgdr_cli.cluster.options import Context, Kubeconfig, Namespace, Output, connected
from dgdr_cli.documents import Format, write_data
from dgdr_cli.exits import border, note

COLUMNS = (("name", False), ("phase", False), ("reason", False), ("best", False), ("candidates", True), ("age", True))


def runs(
    name: Annotated[str, typer.Argument(help="Name of the request.")],
    output: Output = Format.TEXT,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """List the runs of a request, newest first.

    Example: kubectl dgdr runs qwen3-32b
    """
    with border():
        cluster = connected(namespace, context, kubeconfig)
        from dgdr_cli.cluster.listing import runs_of
        from dgdr_cli.cluster.lookup import request_named
        from dgdr_cli.cluster.objects import without_managed_fields

        request = request_named(cluster, name)
        found = runs_of(cluster, request)
        if output is not Format.TEXT:
            write_data([without_managed_fields(run) for run in found], output)
        elif found:
            _print(found, name)
        else:
            note(f"request {name} has no run: {_why(request)}")


def _print(found: list[dict[str, Any]], request: str) -> None:
    from dgdr_cli.cluster.objects import age, condition, name_of, refs, text_at
    from dgdr_cli.tables import console, print_table

    rows = [
        (
            name_of(run),
            text_at(run, "status", "phase"),
            text_at(condition(run, "Completed"), "reason"),
            text_at(run, "status", "best", "display"),
            str(len(refs(run, "candidateRefs"))),
            age(run),
        )
        for run in found
    ]
    print_table(f"Runs of {request}", COLUMNS, rows, console())


def _why(request: dict[str, Any]) -> str:
    from dgdr_cli.cluster.answer import Answered, answer_of

    found = answer_of(request)
    return "it is gone" if isinstance(found, Answered) else found.why
