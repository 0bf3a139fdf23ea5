"""`dgdr create`: a request file becomes a request in a cluster, checked here first in the words of `dgdr search`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dgdr_cli import program
from dgdr_cli.cluster.options import Context, DryRunOption, Kubeconfig, Namespace, Output, connected
from dgdr_cli.documents import Format, named, write_data
from dgdr_cli.exit_codes import FAILED, WRONG_INPUT
from dgdr_cli.exits import border, fail

if TYPE_CHECKING:
    from dgdr_api.request import DynamoGraphDeploymentRequest

_AUTHORS = ("name", "labels", "annotations", "finalizers", "ownerReferences")
"""Metadata that an author writes; the rest is the API server's, and stands in a file that was read from one."""


def create(
    file: Annotated[Path, typer.Option("-f", "--filename", help="Request file; - reads standard input.")],
    dry_run: DryRunOption = None,
    output: Output = Format.TEXT,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Create a request in a cluster; a request of that name is never changed.

    Example: kubectl dgdr create -f examples/qwen3-32b.yaml
    """
    with border():
        from dgdr_cli.requests import admitted

        request = admitted(file).request
        cluster = connected(namespace, context, kubeconfig)
        from dgdr_kube.errors import AlreadyExists, Invalid, NotFound

        from dgdr_cli.cluster.errors import is_kind_missing
        from dgdr_cli.cluster.kinds import REQUEST

        body = _body(request, file, namespace, cluster.namespace)
        name, where = body["metadata"]["name"], body["metadata"]["namespace"]
        try:
            made = cluster.kube.create(REQUEST, body, dry_run=dry_run is not None)
        except AlreadyExists:
            change = f"`kubectl edit dgdreq {name} -n {where}` changes it, `{program.called()} rerun {name}` repeats it"
            fail(WRONG_INPUT, f"request {name} exists in namespace {where} and is left as it is; {change}")
        except Invalid as error:
            fail(WRONG_INPUT, f"{named(file)}: the API server refuses it: {error.message}")
        except NotFound as error:
            if is_kind_missing(error):
                fail(FAILED, f"the cluster has no {REQUEST.kind}: install the operator's CustomResourceDefinitions")
            fail(WRONG_INPUT, f"there is no namespace {where}; create it, or name another with -n")
        _print(made, output, tried_only=dry_run is not None)


def _body(request: "DynamoGraphDeploymentRequest", file: Path, given: str | None, default: str) -> dict[str, Any]:
    """The object as its author wrote it: defaults are the operator's to add."""
    from dgdr_api.base import wire

    body = wire(request, given_only=True) | {"apiVersion": request.api_version, "kind": request.kind}
    body.pop("status", None)
    written = body["metadata"].get("namespace")
    if given is not None and written not in (None, given):
        fail(WRONG_INPUT, f"{named(file)}: metadata.namespace is {written}, --namespace is {given}: leave out one")
    meta = {name: value for name, value in body["metadata"].items() if name in _AUTHORS}
    body["metadata"] = {**meta, "namespace": given or written or default}
    return body


def _print(made: dict[str, Any], output: Format, *, tried_only: bool) -> None:
    from dgdr_cli.cluster.objects import name_of, without_managed_fields

    if output is not Format.TEXT:
        write_data(without_managed_fields(made), output)
    elif tried_only:
        sys.stdout.write(f"request {name_of(made)} would be created (server dry run)\n")
    else:
        name = name_of(made)
        sys.stdout.write(f"request {name} created; follow it: {program.called()} watch {name}\n")
