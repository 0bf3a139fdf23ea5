"""`dgdr cancel`: the end of a run, keeping what it has published."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dgdr_cli.cluster.options import Context, Kubeconfig, Namespace, Reason, connected
from dgdr_cli.exit_codes import OK, WRONG_INPUT
from dgdr_cli.exits import border, fail, note

if TYPE_CHECKING:
    from dgdr_kube.resource import Object


def cancel(
    run: Annotated[str, typer.Argument(help="Name of the run.")],
    reason: Reason,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Cancel a run; the candidates that it has published stay.

    Example: kubectl dgdr cancel qwen3-32b-run-1-4f2a --reason "too dear"
    """
    with border():
        from dgdr_cli.cluster.changing import check_reason, patched

        check_reason(reason)
        cluster = connected(namespace, context, kubeconfig)
        from dgdr_api.group import ANNOTATION_CANCEL

        from dgdr_cli.cluster.kinds import RUN
        from dgdr_cli.cluster.lookup import run_named
        from dgdr_cli.cluster.objects import at, completed
        from dgdr_cli.cluster.outcome import outcome_text

        def change(found: "Object") -> dict[str, Any]:
            if completed(found) is not None:
                fail(WRONG_INPUT, f"run {run} has ended already: {outcome_text(found)}; there is nothing to cancel")
            before = at(found, "metadata", "annotations", ANNOTATION_CANCEL)
            if before is not None:
                note(f"run {run} is being cancelled already: {before}")
                raise typer.Exit(OK)
            return {"metadata": {"annotations": {ANNOTATION_CANCEL: reason}}}

        patched(cluster, RUN, lambda: run_named(cluster, run), change)
        sys.stdout.write(f"run {run} is being cancelled; what it has published stays\n")
