"""`dgdr rerun`: another run of the same request."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dgdr_cli import program
from dgdr_cli.cluster.options import Cluster, Context, Kubeconfig, Namespace, Reason, connected
from dgdr_cli.exit_codes import WRONG_INPUT
from dgdr_cli.exits import border, fail, note

if TYPE_CHECKING:
    from dgdr_kube.resource import Object


def rerun(
    name: Annotated[str, typer.Argument(help="Name of the request.")],
    reason: Reason,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Ask for another run of a request. A run of it that is still going on is superseded; its candidates stay.

    Example: kubectl dgdr rerun qwen3-32b --reason "new performance data"
    """
    with border():
        from dgdr_cli.cluster.changing import check_reason, patched

        check_reason(reason)
        cluster = connected(namespace, context, kubeconfig)
        from dgdr_cli.cluster.kinds import REQUEST
        from dgdr_cli.cluster.lookup import request_named
        from dgdr_cli.cluster.objects import at, text_at

        def change(request: "Object") -> dict[str, Any]:
            holder = _who_has_it(cluster, request, reason)
            if holder is not None:
                fail(
                    WRONG_INPUT,
                    f"{holder} has the rerun reason {reason!r} already, and each new value asks for one run: "
                    "give another --reason",
                )
            return {"spec": {"rerun": {"reason": reason}}}

        changed = patched(cluster, REQUEST, lambda: request_named(cluster, name), change)
        live = text_at(changed, "status", "activeRunRef", "name")
        if at(changed, "spec", "suspend"):
            note(f"request {name} is suspended: nothing is started until spec.suspend is false")
        elif live:
            note(f"run {live} is still going on: it is superseded")
        generation = text_at(changed, "metadata", "generation")
        sys.stdout.write(
            f"request {name}: another run is asked for by generation {generation}; "
            f"follow it: {program.called()} watch {name}\n"
        )


def _who_has_it(cluster: Cluster, request: "Object", reason: str) -> str | None:
    """The request or its last run, where the operator would find the reason again and start nothing; else None.

    The run counts too: a request that was applied anew from its file has lost the reason. What a cancelled or
    superseded run was asked for may be asked for again.
    """
    from dgdr_api import reasons
    from dgdr_api.group import ANNOTATION_RERUN_REASON
    from dgdr_kube.errors import NotFound

    from dgdr_cli.cluster.kinds import RUN
    from dgdr_cli.cluster.objects import completed, name_of, refs, text_at

    if text_at(request, "spec", "rerun", "reason") == reason:
        return f"request {name_of(request)}"
    last = next(iter(refs(request, "recentRunRefs")), "")
    try:
        run = cluster.kube.get(RUN, cluster.namespace, last) if last else {}
    except NotFound:
        run = {}
    stopped = (reasons.CANCELLED.name, reasons.SUPERSEDED.name)
    if text_at(run, "metadata", "annotations", ANNOTATION_RERUN_REASON) != reason:
        return None
    return None if text_at(completed(run), "reason") in stopped else f"its last run {last}"
