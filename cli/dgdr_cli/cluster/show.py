"""`dgdr show`: a candidate as it would be deployed, and what the search found out about it."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dgdr_cli.cluster.options import Cluster, Context, Kubeconfig, Namespace, Output, connected
from dgdr_cli.documents import Format, write_data
from dgdr_cli.exits import border
from dgdr_cli.names import check_label

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console


def show(
    candidate: Annotated[str, typer.Argument(help="Name of the candidate.")],
    name: Annotated[str | None, typer.Option(help="Name of the deployment; by default made of the request's.")] = None,
    output: Output = Format.TEXT,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Show the deployment that a candidate becomes, its results, and where each evaluated value stands.

    Example: kubectl dgdr show qwen3-32b-g1-4f2a-1b9c42f9
    """
    with border():
        if name is not None:
            check_label("--name", name)
        cluster = connected(namespace, context, kubeconfig)
        from dgdr_cli.cluster.lookup import candidate_named
        from dgdr_cli.cluster.objects import at, list_at
        from dgdr_cli.cluster.promotion import promoted

        found = candidate_named(cluster, candidate)
        shown = {
            "dgd": promoted(found, name or _default_name(cluster, found)),
            "evaluation": at(found, "status", "evaluation", default={}),
            "materialization": list_at(found, "status", "materialization"),
            "conditions": list_at(found, "status", "conditions"),
        }
        if output is Format.TEXT:
            _print(shown)
        else:
            write_data(shown, output)


def _default_name(cluster: Cluster, candidate: dict[str, Any]) -> str:
    """The name that `dgdr search` would give the deployment: of the request, and of the point hash."""
    from dgdr_api.group import ANNOTATION_REQUEST_NAME, LABEL_POINT_HASH
    from dgdr_api.identity import safe_dgd_name
    from dgdr_kube.errors import NotFound

    from dgdr_cli.cluster.kinds import RUN
    from dgdr_cli.cluster.objects import controller, name_of, text_at

    point = text_at(candidate, "metadata", "labels", LABEL_POINT_HASH)
    owner, request = text_at(controller(candidate), "name"), ""
    if owner:
        try:
            run = cluster.kube.get(RUN, cluster.namespace, owner)
            request = text_at(run, "metadata", "annotations", ANNOTATION_REQUEST_NAME)
        except NotFound:
            pass
    return safe_dgd_name(request or name_of(candidate), point, cluster.namespace)


def _print(shown: dict[str, Any]) -> None:
    from dgdr_publisher.yaml_text import yaml_text

    from dgdr_cli.cluster.objects import text_at
    from dgdr_cli.plain_text import plain_data
    from dgdr_cli.tables import console, print_table

    sys.stdout.write(plain_data(yaml_text(shown["dgd"])) + "\n")
    target = console()
    _results(shown["evaluation"], target)
    rows = [
        [text_at(row, "parameter"), text_at(row, "value"), text_at(row, "destination") or text_at(row, "reason")]
        for row in shown["materialization"]
    ]
    columns = [("parameter", False), ("value", False), ("destination or reason", False)]
    print_table("Where each evaluated value stands", columns, rows, target)
    said = [[text_at(one, name) for name in ("type", "status", "reason", "message")] for one in shown["conditions"]]
    print_table("Conditions", [(name, False) for name in ("type", "status", "reason", "message")], said, target)


def _results(evaluation: "Mapping[str, Any]", target: "Console") -> None:
    """Score and objectives with their units, then every metric; the unit is part of a metric's name."""
    from dgdr_publisher.candidate_status import rounded

    from dgdr_cli.cluster.objects import at, text_at
    from dgdr_cli.summary import objective_text
    from dgdr_cli.tables import print_table

    rows = [["GPUs", text_at(evaluation, "usedGpus")], ["GPUs by role", text_at(evaluation, "gpusByRole")]]
    objectives = at(evaluation, "objectives", default={})
    rows += [[name, objective_text(name, value)] for name, value in objectives.items() if _is_number(value)]
    metrics = at(evaluation, "metrics", default={})
    rows += [[name, rounded(value)] for name, value in metrics.items() if _is_number(value)]
    print_table("Results", [("what", False), ("value", True)], rows, target)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
